#include "engine/oracle/weight.h"

#include "engine/base/exp.h"
#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include <float.h>

enum { MASKED = -1 };

/* Weights; and, in `loose`, what the arguments of their exponentials may be off by, the exponentials' own errors
   included. Returns whether that is at most 1 everywhere. */
VECTOR_UNITS static bool weigh(const struct oracle_case *c, const struct weight_row *row, double *restrict weight,
                               double *restrict loose)
{
    const double natural = row->natural, top = row->top, frame = row->frame, folded = row->folded, factor = row->factor;
    const double convert = row->converts ? 1 : 0, natural_size = fabs(natural), frame_loose = row->frame_loose;
    int64_t far = 0;
    for (int i = 0; i < row->n; i++) {
        const double x = row->score[i] * natural, w = factor * exp_lane(x - top);
        const double off = row->loose[i] * natural_size + frame_loose + convert * bound_convert(x);
        const double all = off + bound_exp_declared(c, fabs(x - frame) + off, folded);
        const bool masked = x == -INFINITY;
        weight[i] = masked ? 0 : w <= DBL_MAX ? w : NAN;
        loose[i] = masked ? MASKED : all;
        far |= !masked & !(all <= 1);
    }
    return !far;
}

VECTOR_UNITS static void bound_near(const struct weight_row *row, const double *restrict weight, double *restrict error)
{
    const double limit = row->limit, tiny = row->tiny;
    for (int i = 0; i < row->n; i++) {
        const double moved = weight[i] * bound_expm1_near(error[i]);
        error[i] = error[i] == MASKED ? 0 : (moved < limit ? moved : limit) + tiny;
    }
}

void weight_row(const struct oracle_case *c, const struct weight_row *row, double *weight, double *error)
{
    if (weigh(c, row, weight, error)) {
        bound_near(row, weight, error);
        return;
    }
    for (int i = 0; i < row->n; i++) {
        const double x = row->score[i] * row->natural - row->top;
        error[i] =
            error[i] == MASKED ? 0 : fmin(bound_exp_moved(weight[i], row->factor, x, error[i]), row->limit) + row->tiny;
    }
}
