/* Weights exp(score - maximum) of one row, and how far a correct kernel's may lie from them. */
#ifndef ORACLE_WEIGHT_H
#define ORACLE_WEIGHT_H

#include "engine/oracle/formula.h"
#include "engine/oracle/oracle.h"
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

#endif
