/* Weights exp(score - maximum) of one row, and how far a correct kernel's may lie from them. */
#ifndef ORACLE_WEIGHT_H
#define ORACLE_WEIGHT_H

#include "engine/oracle/oracle.h"
#include <stdbool.h>

struct weight_row {
    const double *score, *loose; /* [n] and what they are uncertain by; -inf: masked, no weight and no error */
    int n;
    double natural;     /* a score of 1 in natural units */
    double top;         /* weights are factor exp(score - top), natural */
    double frame;       /* what the kernel subtracts from a score, natural */
    double frame_loose; /* what that is uncertain by */
    double folded;      /* see bound_exp */
    bool converts;      /* the kernel changes the unit of a score first */
    double factor;
    double limit, tiny; /* an error is at most the limit, and tiny more */
};

/* A weight that is no finite number is NaN: no statement. */
void weight_row(const struct oracle_case *c, const struct weight_row *row, double *weight, double *error);

#endif
