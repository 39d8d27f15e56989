/* Every element of a slot as onset.c walks through it. */
#ifndef NONFINITE_ONSET_MAP_H
#define NONFINITE_ONSET_MAP_H

#include "engine/oracle/nonfinite/onset.h"
#include "engine/oracle/schedule.h"
#include <stdbool.h>

enum {
    CELL_BAD = 1,    /* captured, no finite number where one belongs */
    CELL_PASSES = 2, /* nothing was captured here, and an operand is bad */
    CELL_UNREAL = 4, /* captured, no finite number; which may be right, as long as no operand is bad */
    CELL_FINITE = 8, /* captured */
    CELL_ROOT = 16,
    CELL_REACHED = 32, /* by the root that is being followed */
    CELL_RULE = 8      /* bits from here on: enum nan_origin of a root */
};

struct onset_map {
    const struct oracle_case *c;
    struct judge_scratch *s;
    int rows;                /* of the q tile */
    uint16_t *cells;         /* owned */
    size_t *at;              /* owned, [kv_tiles][ASC_CHANNELS] where a tile's cells begin */
    struct case_step *steps; /* owned, [n_steps] */
    int n_steps;
    size_t n_cells;
};

/* Shape of a channel's tile: elements that exist. */
static inline bool onset_by_keys(enum asc_channel ch)
{
    return ch == asc_k || ch == asc_v;
}

static inline int onset_rows(const struct onset_map *map, enum asc_channel ch, int kv)
{
    return onset_by_keys(ch) ? schedule_cols(map->c, kv) : map->rows;
}

static inline int onset_cols(const struct onset_map *map, enum asc_channel ch, int kv)
{
    switch (ch) {
    case asc_s:
    case asc_p:
        return schedule_cols(map->c, kv);
    case asc_m:
    case asc_alpha:
    case asc_l:
    case asc_lse:
        return 1;
    default:
        return oracle_dim(map->c, ch);
    }
}

static inline uint16_t *onset_cell(const struct onset_map *map, enum asc_channel ch, int kv, int row, int col)
{
    return map->cells + map->at[kv * ASC_CHANNELS + (int)ch] + (size_t)row * (size_t)onset_cols(map, ch, kv) +
           (size_t)col;
}

/* What makes a root, with the operands; step -1: of a channel that exists once per slot. channel, kv, row and col
   of *root are set. */
void onset_explain(const struct onset_map *map, int step, struct onset_root *root);

#endif
