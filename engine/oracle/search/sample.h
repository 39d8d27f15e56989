/* Tiles of one wrong stage, kept side by side with the operands of each: what a rule is searched in and tried on. */
#ifndef SEARCH_SAMPLE_H
#define SEARCH_SAMPLE_H

#include "engine/oracle/slot_walk.h"
#include <stdbool.h>

enum cell_state {
    CELL_RIGHT,
    CELL_WRONG,
    CELL_EXPLAINED, /* wrong, and a rule says how: what another rule gives there counts against it alone */
    CELL_SILENT,    /* nothing is expected of it */
    CELL_ABSENT     /* nobody wrote it, or of an input: it was read where no row lies. No rule says what is there */
};

struct sample_tile {
    const struct oracle_case *c; /* borrowed */
    int at[3];                   /* batch, head, q tile */
    int kv_head, kv, turn;       /* turn: how many tiles of its state were visited before it */
    int before, next;            /* tiles of the sample, visited just before and after it in the same state; -1: none */
    int rows, cols;
    bool any_wrong;                   /* some element is wrong, when the sample was taken */
    bool cut;                         /* some row does not see all of it */
    bool is_kv;                       /* its rows are those of a kv tile, else of a q tile */
    bool unlimited;                   /* as in struct comparison */
    enum dtype type;                  /* of what was captured */
    const double *got, *want, *bound; /* [rows][cols] */
    const double *new_m;              /* [R] the maximum with this tile, of m and what follows it; else NULL */
    uint8_t *cell;                    /* [rows][cols] enum cell_state */
    struct operands x;                /* of the right formula */
    struct operands end;              /* of o and lse: those of the last tile that was visited */
    const int *last_tile;             /* [splits] of o and lse: the tile that each ended with; NULL: one */
    const double *next_alpha, *next_alpha_loose; /* as in struct walk_tile */
};

struct sample {
    enum asc_channel channel;
    struct sample_tile *tiles; /* owned, [n] */
    int n, room;
    size_t bytes; /* of what is kept */
    void **kept;  /* owned, [n_kept] owned blocks */
    size_t n_kept;
    double *zero; /* zeros, for operands that are exact */
    size_t wrong, right, absent;
    bool full;             /* there was no room for all tiles */
    bool failed;           /* memory ran out */
    struct walk_tile last; /* while a slot is walked through: the tile visited last */
    struct operands last_x;
    bool has_last;
};

/* Where a slot lies. */
struct sample_place {
    int at[3], kv_head;
};

void sample_begin(struct sample *s, enum asc_channel channel);
/* Adds tiles of a slot, those that are wanted: [kv_tiles]; of a channel that exists once per slot, at kv 0. c is
   borrowed for as long as the sample lives. -1 without memory. */
int sample_add(struct sample *s, const struct oracle_case *c, const struct sample_place *place, const bool *wanted,
               struct judge_scratch *scratch);
void sample_free(struct sample *s);

/* Whether x is what the right formula leaves for cell i. */
bool sample_is_right(const struct sample_tile *t, size_t i, double x);

static inline size_t sample_cells(const struct sample_tile *t)
{
    return (size_t)t->rows * (size_t)t->cols;
}

/* Rows of the row vectors that it is made of; of a kv tile these are not its own. */
static inline size_t query_rows(const struct sample_tile *t)
{
    return (size_t)t->c->in_q.rows;
}

#endif
