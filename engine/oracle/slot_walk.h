/* The tiles of one slot, visited as the kernel did, each stage with its operands: what explanations are made from. */
#ifndef ORACLE_SLOT_WALK_H
#define ORACLE_SLOT_WALK_H

#include "engine/oracle/scratch.h"

/* The tile at hand: stages s to u of the scratch hold captured values and right expectations, and s->at the operands
   that these were made from. */
struct walk_tile {
    const struct oracle_case *c;
    struct judge_scratch *s;
    bool is_first; /* of its split */
    /* [R] where U is recorded once the tile visited next has rescaled it: that alpha, and its uncertainty; NULL where U
       is recorded as it is. */
    const double *next_alpha, *next_alpha_loose;
};

/* wanted: [kv_tiles] sets of 1u << enum asc_channel; channels that exist once per slot stand at kv 0. everywhere: the
   same for all tiles. visit() is called for each that was captured. -1 where memory ran out or the walk was stopped. */
struct slot_walk {
    const uint32_t *wanted;
    uint32_t everywhere;
    void (*visit)(void *ctx, const struct walk_tile *tile, enum asc_channel ch);
    void *ctx;
};
int slot_walk(const struct oracle_case *c, const struct slot_walk *how, struct judge_scratch *scratch);

/* The alpha of the tile visited after the i-th, which is at hand: 1 and tile->next_alpha; 0: there is none; -1: it
   follows from nothing that was recorded. */
int walk_next_alpha(struct walk_tile *tile, int i);

#endif
