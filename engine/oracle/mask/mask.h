/* The mask that a kernel applied, read from what it captured, beside the one it should have applied; and the name of
   the difference, by the rule for causes: a formula that explains the bits. */
#ifndef MASK_MASK_H
#define MASK_MASK_H

#include "engine/oracle/causes/causes.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/scratch.h"
#include <stdbool.h>

/* What a row sees of a tile. S: a score of -inf, or the declared number, is masked. P, where S holds masked keys
   untouched: a weight of 0 is masked, unless its score alone makes it so small. */
enum mask_source { MASK_NOT_KNOWN, MASK_FROM_S, MASK_FROM_P, MASK_SOURCES };
enum mask_source mask_source(const struct oracle_case *c);

/* Elements of a tile, or of many; those of which nothing is known are in `unknown` alone. */
struct mask_counts {
    uint64_t both, neither, only_wanted, only_applied, unknown;
};
void mask_add(struct mask_counts *to, const struct mask_counts *from);
static inline uint64_t mask_wrong(const struct mask_counts *n)
{
    return n->only_wanted + n->only_applied;
}

/* Bit col % 64 of word col / 64 of a row: 1: the row sees the key. Columns are those of the tile, keys beyond kv_len
   included. */
struct mask_tile {
    int rows, cols, words;
    uint64_t *wanted, *applied, *known; /* owned, [rows][words]; known: 0: applied says nothing */
    struct mask_counts counts;
};

/* -1: memory ran out. For tiles of up to the q tile's rows and Bc columns. */
int mask_tile_new(const struct oracle_case *c, struct mask_tile *out);
void mask_tile_free(struct mask_tile *m);
static inline bool mask_bit(const struct mask_tile *m, const uint64_t *bits, int row, int col)
{
    return (int)(bits[(size_t)row * (size_t)m->words + (size_t)(col / 64)] >> col % 64 & 1);
}

/* Reads kv tile kv. A tile that was not visited, or left without a score, hides all its keys. -1: memory ran out. */
int mask_read(const struct oracle_case *c, struct judge_scratch *scratch, int kv, struct mask_tile *m);
/* Makes and reads all of tiles[kv_tiles], which are zeros, in time that grows with their number alone. -1: memory ran
   out; those that were made are the caller's. */
int mask_read_all(const struct oracle_case *c, struct judge_scratch *scratch, struct mask_tile *tiles);

enum mask_shift {
#define SHIFT(id, name, moves, sentence) id,
#include "engine/oracle/mask/masks.def"
#undef SHIFT
    MASK_SHIFTS
};
const char *mask_shift_name(enum mask_shift shift);     /* "other-corner" */
const char *mask_shift_sentence(enum mask_shift shift); /* "the diagonal begins in the other corner" */
bool mask_shift_moves(enum mask_shift shift);           /* it moves by keys what is wanted elsewhere */

/* Keys that row r of the q tile sees under a shift, by so many keys where it moves something; MASK_INVERTED: those it
   does not see. false: it has no meaning for this mask, or changes nothing. */
bool mask_shift_range(const struct oracle_case *c, enum mask_shift shift, int by, int r, struct key_range *out);

/* What speaks for each shift. Moves are counted in even rows, and only odd ones tell. */
enum { MASK_MOVES = 257 }; /* -128 .. 128 keys */
struct mask_evidence {
    uint64_t elements, explained;      /* known ones in tiles that have a wrong one */
    uint64_t telling, rows;            /* explained and wanted otherwise; rows that have any, one for each tile */
    uint64_t chance_tried, chance_hit; /* the wanted mask of other rows, where these tell */
};
struct mask_plan {
    uint32_t votes[MASK_SHIFTS][MASK_MOVES]; /* rows whose edge is moved so */
    int by[MASK_SHIFTS];                     /* of mask_plan_close(); 0: none */
};
void mask_vote(const struct oracle_case *c, const struct mask_tile *tiles, struct mask_plan *plan);
void mask_plan_close(struct mask_plan *plan);
/* tiles: [kv_tiles], as mask_read() has filled them. */
void mask_collect(const struct oracle_case *c, const struct mask_tile *tiles, const struct mask_plan *plan,
                  struct mask_evidence evidence[MASK_SHIFTS]);
/* The rule of cause_named(), bits having two values: a row's bits are what agrees by chance or does not. */
bool mask_named(const struct mask_evidence *e);

#endif
