/* The reference that an isolated run is fed with: what every stage of one (batch, head, q tile) should be by the
   float64 reference (reference.h), in the declared conventions, for the order in which a run visited its kv tiles, each
   value rounded once into the type of its channel. */
#ifndef ORACLE_REFERENCE_FILL_H
#define ORACLE_REFERENCE_FILL_H

#include "engine/oracle/oracle.h"

/* Where one tile of a channel goes: element (r, c) is data[r * row_stride + c]. */
struct reference_target {
    void *data; /* NULL: not wanted */
    enum dtype dtype;
    int64_t row_stride; /* in elements */
    int rows, cols;     /* what exists in the problem; of l: its lanes */
    int pad_cols;       /* columns of s and p behind them, for keys from kv_len on */
};

/* tiles: [kv_tiles][ASC_CHANNELS], channels that exist once per slot at kv 0. Of what c captured, only the types and
   shapes of q, k and v and the visiting order count. Tiles that were not visited follow in ascending order. Elements on
   which the reference makes no statement (NaN in the inputs) are left alone. -1 where memory ran out. */
int reference_fill(const struct oracle_case *c, struct judge_scratch *scratch, const struct reference_target *tiles);

#endif
