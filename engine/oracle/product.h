/* S and U as a tensor core computes them, bit for bit, and how far tensor cores may lie from float64 arithmetic. */
#ifndef ORACLE_PRODUCT_H
#define ORACLE_PRODUCT_H

#include "engine/base/tensor_core.h"
#include "engine/oracle/scratch.h"
#include <stdbool.h>

/* The type in which a declared accumulator (enum asc_accumulator) takes its operands. false: it is no tensor core. */
bool product_type(int accumulator, enum dtype *t);

/* The largest error of any tensor core that the declaration covers and the run may have used, of n products in any
   order, taken apart: each rounding and cut by itself, relative to the sum of magnitudes (sizes by product_size) that
   it falls on. A rounding to nearest errs by u either way. A cut toward zero errs by half its most on average: that
   half is `systematic`, the rest is either way; `variance` is the sum of the squares of what errs either way. */
struct product_share product_share(const struct oracle_case *c, int accumulator, int n);

/* The tensor core that may err by most; known_cores as in struct oracle_case. TENSOR_CORE_F32 where f32 in any order
   may. */
enum tensor_core product_loosest(int accumulator, uint32_t known_cores, int n);

/* The magnitude with which a factor enters that sum: tensor cores align subnormal factors like the smallest normal
   number of their type. */
double product_size(int accumulator, double x);
/* The same for n magnitudes: x itself where nothing is subnormal, else room. */
const double *product_sizes(int accumulator, const double *x, int n, double *room);

/* What n products may lose below the smallest normal number of the accumulator's type, absolutely. */
double product_tiny(int accumulator, int n);

/* One operation around the product, relative: it is done in the accumulator's type. */
double product_rounding(int accumulator);

/* Of the cores that the run may have used, where these are known (c->known_cores).
   The declared bound of S, relative to |factor| sum |q k|, and of U, relative to |alpha u_prev| + sum |p v|: where no
   tensor core is declared, bound_score and bound_accumulate, else the product's and the same roundings around it. */
double product_score(const struct oracle_case *c);
double product_accumulate(const struct oracle_case *c);

/* One way in which a captured S or U may have come about: the tensor core, and what was done with its result.
   S: multiplied by what is left of the scales of codes, then by two factors, one after the other, each time rounded.
   U: see enum product_join. */
struct product_way {
    enum asc_channel ch;
    enum tensor_core model;
    float factor[2];
    int join, rounds, scales; /* enum product_join, enum product_rounds, enum product_scales */
};
enum product_scales {
    PRODUCT_NO_SCALES,
    PRODUCT_BOTH_SCALES, /* by the product of Q's and K's, rounded */
    PRODUCT_Q_THEN_K,
    PRODUCT_K_THEN_Q
};
enum product_join {
    PRODUCT_CARRIES, /* the accumulator starts at alpha u_prev, rounded */
    PRODUCT_ADDS,    /* it starts at zero; alpha u_prev is rounded, then added */
    PRODUCT_FMA,     /* it starts at zero, then fma(alpha, u_prev, it) */
    PRODUCT_FUSES,   /* as CARRIES, of an instruction that is made of products from zero and an addition: the compiler
                        has fused the rescaling with the first addition, fma(alpha, u_prev, its products), as ptxas
                        does with mma.sync of e4m3 on sm_90 */
    /* With a scale of V that is left for the product: it starts at zero, then */
    PRODUCT_SCALE_FMA,   /* fma(it, scale, alpha u_prev rounded) */
    PRODUCT_SCALE_ADDS,  /* it times the scale, rounded, and alpha u_prev rounded, added */
    PRODUCT_SCALE_FUSED, /* fma(alpha, u_prev, it times the scale rounded) */
    PRODUCT_JOINS
};
enum product_rounds {
    PRODUCT_WIDE,        /* what is done around the product is done in f32 */
    PRODUCT_HALF,        /* each result there is rounded into f16 */
    PRODUCT_HALF_FACTORS /* so are the scale, log2 e and alpha before: half arithmetic */
};
enum { PRODUCT_WAYS = 16 };

/* All ways that the conventions leave open for S or U; 0: what happens to the product is not known to the bit. */
int product_ways(const struct oracle_case *c, enum asc_channel ch, struct product_way ways[PRODUCT_WAYS]);

/* The operands of S or U of the tile at hand, as captured (tile_local has run, local_advance has not), in the scratch.
   -1: they were not captured, or are not of the type the tensor core takes. */
struct product {
    enum asc_channel ch;
    struct tensor_core_operand a, b;
    int row, col; /* where a's and b's first rows stand in the result */
};
/* Of these rows and columns of the result alone, the first of each a multiple of 8. */
struct product product_block(const struct product *whole, int row, int col, int rows, int cols);
/* n numbers as f16, to nearest even, as dtype_store() gives them. false: not all are within the range of f16 (NaN is
   not), or, where none may be rounded, not all are f16 already; out then holds nothing that counts. */
bool product_halves(const double *x, int n, bool rounds, uint16_t *out);

int product_take(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch, struct product *out);

/* What the tensor core gives, and what the kernel makes of it; both [rows][cols] of the channel, of which the product's
   are written. Ways that
   product_shares finds have the same sums. */
void product_sum(const struct judge_scratch *s, const struct product *product, const struct product_way *way,
                 float *sums);
void product_finish(const struct judge_scratch *s, const struct product *product, const struct product_way *way,
                    const float *sums, float *out);
bool product_shares(const struct product_way *a, const struct product_way *b);

#endif
