/* Where values that are no finite numbers begin, in one (batch, head, q tile).

   Root set: elements that are NaN or infinite where they should not be (by either verdict), while no operand of their
   own formula is such an element; an operand may be finite, or rightly -inf. An operand that no probe recorded counts
   as what its own operands are. So a row that sees no key is no root, and what a NaN has only passed through is none.

   What swallows them (fmaxf, a guard, a mask by selection, saturation) ends a chain: it is followed through captured
   values, element by element, and says how far it came. */
#ifndef NONFINITE_ONSET_H
#define NONFINITE_ONSET_H

#include "engine/oracle/oracle.h"
#include <stdbool.h>

enum nan_origin {
#define ORIGIN(id, name, sentence, formula) id,
#include "engine/oracle/nonfinite/origins.def"
#undef ORIGIN
    ORIGIN_COUNT
};
const char *origin_name(enum nan_origin r);
const char *origin_sentence(enum nan_origin r);
const char *origin_formula(enum nan_origin r);
/* That by which a value converted to type t is not finite any more; ORIGIN_UNKNOWN: it stays finite, t rounding as
   IEEE does, FP8 without saturation. */
enum nan_origin origin_of_conversion(enum dtype t, double x);

/* OPERAND(id, label): of a root's formula. */
#define ONSET_OPERANDS(OPERAND)                                                                                        \
    OPERAND(OPERAND_INPUT, "input")                                                                                    \
    OPERAND(OPERAND_SCALE, "scale")                                                                                    \
    OPERAND(OPERAND_PRODUCT, "sum of products")                                                                        \
    OPERAND(OPERAND_S, "s")                                                                                            \
    OPERAND(OPERAND_M_PREV, "m before")                                                                                \
    OPERAND(OPERAND_M, "m")                                                                                            \
    OPERAND(OPERAND_ALPHA, "alpha")                                                                                    \
    OPERAND(OPERAND_P, "largest p")                                                                                    \
    OPERAND(OPERAND_L_PREV, "l before")                                                                                \
    OPERAND(OPERAND_L, "l")                                                                                            \
    OPERAND(OPERAND_U_PREV, "u before")                                                                                \
    OPERAND(OPERAND_U, "u")
enum onset_operand {
#define OPERAND(id, label) id,
    ONSET_OPERANDS(OPERAND)
#undef OPERAND
        OPERAND_COUNT
};
const char *onset_operand_label(enum onset_operand o);

enum { ONSET_PRODUCTS = 4, ONSET_PER_STAGE = 8, ONSET_KEPT = ONSET_PER_STAGE * ASC_CHANNELS };

/* Of s: q[row, index] k[col, index]. Of u: p[row, index] v[index, col], index a key of the tile. */
struct onset_product {
    int index;
    double a, b;
};

/* Where in one stage a root was seen: elements that are no finite number, from one kv tile to another. */
struct onset_hop {
    uint32_t elements;
    int first_kv, last_kv; /* as the kernel visits them; 0 for channels that exist once per slot */
};

/* Roots of one row and tile of the same origin. */
struct onset_root {
    enum asc_channel channel;
    int kv;       /* 0 for channels that exist once per slot */
    int row, col; /* of the first one, in the tile */
    int members;
    enum nan_origin origin;
    double value;    /* NaN or an infinity */
    bool from_input; /* no probe recorded this operand: it is the input's value */
    unsigned known;  /* set of 1u << enum onset_operand */
    double operand[OPERAND_COUNT];
    int n_products; /* the largest ones, or those that are not finite */
    struct onset_product product[ONSET_PRODUCTS];
    /* Keys that the row sees in this tile, and from the first visit up to it; of o and lse both of all tiles. -1: of q,
       k and v. */
    int keys, keys_so_far;
    /* The chain: where it was seen, itself included; elements of o that it reached, and in how many rows; the last
       place that it was seen at. */
    struct onset_hop chain[ASC_CHANNELS];
    uint64_t reached;
    int reached_rows, reached_row, reached_col; /* rows, and the first element; -1: none */
    enum asc_channel last;
    int last_kv;
};

struct onset {
    uint64_t roots; /* elements */
    uint64_t of_origin[ORIGIN_COUNT], of_stage[ASC_CHANNELS];
    uint64_t outputs;                    /* elements of o that should be finite and are not */
    int n;                               /* the first ONSET_PER_STAGE of each stage, as they were executed */
    struct onset_root first[ONSET_KEPT]; /* [n] */
};

/* Element d of a row of q, or of a tile's key, as S multiplies it: as it was captured, or else the input's. */
double onset_factor(const struct oracle_case *c, enum asc_channel ch, int kv, int row, int d);

/* -1 where memory ran out. Of a run that was fed nothing is said: roots 0. */
int onset_case(const struct oracle_case *c, struct judge_scratch *scratch, struct onset *out);

#endif
