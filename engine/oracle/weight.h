/* Weights exp(score - maximum) of one row, and how far a correct kernel's may lie from them; and dropout: which of them
   go to P.V, and what those that are kept are multiplied by. m and l take all of them. */
#ifndef ORACLE_WEIGHT_H
#define ORACLE_WEIGHT_H

#include "engine/oracle/formula.h"
#include "engine/oracle/oracle.h"
#include "engine/oracle/scratch.h"
#include <stdbool.h>

struct weight_row {
    const double *score, *loose; /* [n] and what they are uncertain by; -inf: masked, no weight and no error */
    int n;
    struct weight_terms terms;
};

/* A weight that is no finite number is NaN: no statement. */
void weight_row(const struct exponential *e, const struct weight_row *row, double *weight, double *error);

/* What a case declares of its exponentials. */
struct exponential weight_exponential(const struct oracle_case *c);

/* The factor is 1 / (1 - p), p in f32: 1 - p errs by u, its reciprocal by 2 u (bound_divide: 4 u with a product's own
   rounding), the product by u. Rounded up to 5 u, which has room for p given as f64. */
#define DROPOUT_ROUNDINGS 5

static inline double dropout_factor(const struct oracle_case *c)
{
    return c->keep.data ? 1 / (1 - c->dropout) : 1;
}
/* What weights that are kept get, and what O gets behind u / l: one of them is 1. */
static inline double dropout_of_weights(const struct oracle_case *c)
{
    return c->conventions.dropout_factor == ASC_DROPOUT_AT_WEIGHTS ? dropout_factor(c) : 1;
}
static inline double dropout_of_output(const struct oracle_case *c)
{
    return c->conventions.dropout_factor == ASC_DROPOUT_AT_END ? dropout_factor(c) : 1;
}

/* Whether the weight of row r and a column of the tile is kept. */
static inline bool dropout_keeps(const struct operands *x, int r, int col)
{
    return !x->keep || x->keep[r * x->keep_row + col];
}

/* Weights [rows][cols of the tile] and how far a correct kernel's may lie from them: as they go to P.V. */
void dropout_apply(const struct oracle_case *c, const struct operands *x, double *weight, double *error);

/* Behind P, which pv_p and l_p are: what P.V takes of the tile at hand, and what l sums. Where P is recorded after
   dropout, prepared.all is what it is expected to be before. */
void dropout_use_weights(const struct oracle_case *c, struct judge_scratch *s);

#endif
