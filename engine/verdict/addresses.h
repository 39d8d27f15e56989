/* From where in memory rows of Q, K or V come that are not the sequence's: pages, and sequences one behind the other.
 */
#ifndef VERDICT_ADDRESSES_H
#define VERDICT_ADDRESSES_H

#include "engine/verdict/case.h"
#include "engine/verdict/judgement.h"
#include <stdbool.h>
#include <stdint.h>

enum { ADDRESS_BYTES = 240 };

/* Looks rows of a stage up among all rows of its kv head, and asks of which place in the page table, or at which begin
   of a sequence, they were read: "the page table is read at [batch][i + 1]". What is said has to hold for every row of
   the slots that are looked at. "": nothing does. -1 without memory. */
int addresses_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char out[ADDRESS_BYTES]);

/* Between the two files of it: how rows lie, and ways to go wrong between a row of a sequence and where in memory it is
   read, solved from where rows were found (address_rules.c). */

/* Where rows lie in memory, counted through all pages, or through all sequences. */
struct memory {
    const struct trace *t;
    const struct asc_problem *p;
    enum asc_channel ch;
    bool paged;
    int heads, rows, table_pages;
    int64_t n;      /* rows of memory */
    int64_t *owner; /* owned, [n]: batch * rows + row of the sequence; -1: no sequence's */
    int64_t *begin; /* owned, [batch + 1]: of the sequences, without pages */
    bool turned;    /* what was captured is a row that RoPE has turned by the position it is used at */
    double *row;    /* owned: one, so turned */
    bool coded;     /* rows are codes; what was captured has the scales of its place, or of where the codes are from */
    struct case_sources all; /* owned */
};

/* A row of a sequence, and where it was found. */
struct sight {
    int batch, row;
    int64_t at; /* -1: nowhere */
};

enum reading {
    TABLE_OWN,
    TABLE_PACKED,
    TABLE_AT,
    PAGE_NUMBER,
    PAGE_ROWS,
    PAGE_BITS,
    ROW_MASKED,
    ROW_BY_TILE,
    PAGE_BY_TILE,
    PAGE_OF_TILE,
    TILE_IN_PAGE,
    ENTRY_ROWS,
    ROW_MODULO,
    BEGIN_NEXT,
    BEGIN_OTHERS,
    BEGIN_PREVIOUS,
    BEGIN_STEPS,
    RULES
};

/* TABLE_OWN: the entry is batch * n + i for page i of a sequence, which has n pages. TABLE_PACKED: a sequence's entries
   begin behind those of the one before. TABLE_AT and PAGE_NUMBER: the entry, or the page itself, is by_batch * batch +
   by_page * i + plus. PAGE_ROWS: a page has `rows` rows; ENTRY_ROWS, ROW_MODULO: for the entry alone, or the row
   within the page alone.
   PAGE_BITS: of the page's number the low 8 bits are left.
   ROW_MASKED: that is row & (page size - 1). ROW_BY_TILE, PAGE_BY_TILE: the row within the page, or the page, is that
   of the row's number in its kv tile. PAGE_OF_TILE: the page is that of the kv tile's first row. TILE_IN_PAGE: and the
   rows are those behind it, as memory lies. BEGIN_STEPS: sequences begin at by_batch * batch + plus. */
struct address {
    enum reading rule;
    int64_t by_batch, by_page, plus;
    int rows;
};

/* Rows of a sequence. */
int64_t memory_length(const struct memory *m, int batch);
/* Where a row of a sequence lies. */
int64_t memory_place(const struct memory *m, int batch, int64_t row);

/* Where the rule reads a row; -1: outside of everything. */
int64_t address_reads(const struct memory *m, const struct address *a, int batch, int64_t row);
/* Solves by_batch, by_page and plus from sights that determine them. */
bool address_solve(const struct memory *m, const struct sight *sights, size_t n, struct address *a);
/* Whether it reads each row where it was found. */
bool address_fits(const struct memory *m, const struct address *a, const struct sight *sights, size_t n);
void address_say(const struct memory *m, const struct address *a, char out[ADDRESS_BYTES]);

#endif
