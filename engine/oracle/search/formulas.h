/* How a rule edits the mask or the formula of scores. */
#ifndef SEARCH_FORMULAS_H
#define SEARCH_FORMULAS_H

#include "engine/trace/expression.h"

/* What may stand in the place of i, j, h or b. */
enum instead {
    OWN,
    ROW_OF_TILE,
    FIRST_ROW,
    TILE_OF_QUERY,
    DIAGONAL,
    PACKED_ROW,
    ROW_BEFORE,
    ROW_BEHIND,
    KEY_FOR_QUERY,
    COLUMN_OF_TILE,
    FIRST_COLUMN,
    TILE_OF_KEY,
    LANE,
    KEY_BEFORE,
    KEY_BEHIND,
    KEY_PADDED, /* of the longest sequence's width, where keys stand at its end */
    KEY_PADDED_WITHIN,
    KEY_UNPADDED,
    KEY_UNPADDED_WITHIN,
    QUERY_FOR_KEY,
    HEAD_0,
    KV_HEAD,
    HEAD_OF_GROUP,
    HEAD_BEFORE,
    HEAD_BEHIND,
    BATCH_FOR_HEAD,
    BATCH_0,
    BATCH_BEFORE,
    BATCH_BEHIND,
    HEAD_FOR_BATCH,
    INSTEADS
};

/* RULE_FORMULA: of the mask, of which weights dropout keeps, or of scores. A score s becomes s + weight (f(factor s) /
   factor - s). */
struct formula_edit {
    bool of_mask, ignored, inverted, twice;
    bool of_keep;       /* of l: it sums what is kept alone, times factor */
    bool changed;       /* node `node` of the formula is another, see changes[] of formulas.c */
    uint8_t instead[4]; /* what stands in the place of i, j, h and b: see formulas.c */
    int node, change;
    enum as_bits {
        AS_BYTES,
        AS_BITS,
        AS_BITS_OF_ROWS
    } bits;    /* keys are taken to be bits, eight to a byte; each row from a byte of its own */
    int pitch; /* elements from a row of the mask to the next one; 0: its own */
    int heads, group, batches;
};

/* What an operator or a number of a formula may be mistaken for: whether it has such a change. */
enum { FORMULA_CHANGES = 4 };
bool formula_has_change(const struct expression_node *n, int change);

#endif
