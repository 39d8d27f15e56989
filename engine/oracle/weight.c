#include "engine/oracle/weight.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/values.h"

struct exponential weight_exponential(const struct oracle_case *c)
{
    const double declared = (double)c->conventions.exp_error;
    return (struct exponential){.more = declared > 0 ? (declared - BOUND_EXP) * BOUND_SLACK : 0,
                                .folded_scales = bound_folded_scales(c, 1),
                                .offset = bound_offset(c),
                                .scaled_first = values_scaled_first(c, 1) > 0};
}

/* Weights; and, in `off`, what weight_exp() says of each. Returns whether that is at most 1 everywhere. */
VECTOR_UNITS static bool weigh(const struct exponential *of, const struct weight_row *row, double *restrict weight,
                               double *restrict off)
{
    const struct weight_terms terms = row->terms;
    const struct exponential e = *of;
    int64_t far = 0;
    for (int i = 0; i < row->n; i++)
        weight[i] = weight_exp(&e, &terms, row->score[i], row->loose[i], &off[i]);
    for (int i = 0; i < row->n; i++)
        far |= !(off[i] <= 1);
    return !far;
}

VECTOR_UNITS static void bound_near(const struct weight_row *row, const double *restrict weight, double *restrict error)
{
    const struct weight_terms terms = row->terms;
    for (int i = 0; i < row->n; i++)
        error[i] = weight_error_near(&terms, weight[i], error[i]);
}

void weight_row(const struct exponential *e, const struct weight_row *row, double *weight, double *error)
{
    if (weigh(e, row, weight, error)) {
        bound_near(row, weight, error);
        return;
    }
    for (int i = 0; i < row->n; i++)
        error[i] = weight_error(&row->terms, row->score[i], weight[i], error[i]);
}
