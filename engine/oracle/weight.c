#include "engine/oracle/weight.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/values.h"
#include <string.h>

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

void dropout_apply(const struct oracle_case *c, const struct operands *x, double *weight, double *error)
{
    const double times = dropout_of_weights(c);
    for (int r = 0; r < c->in_q.rows; r++)
        for (int col = 0; col < x->cols; col++) {
            const size_t i = (size_t)r * (size_t)x->cols + (size_t)col;
            if (!dropout_keeps(x, r, col)) {
                weight[i] = error[i] = 0;
            } else if (times != 1) {
                weight[i] *= times;
                error[i] = error[i] * times + DROPOUT_ROUNDINGS * BOUND_U * (fabs(weight[i]) + error[i] * times) +
                           (weight[i] != 0 ? BOUND_TINY : 0);
            }
        }
}

/* Of a P that is recorded after dropout what was dropped follows from S and m alone, what was kept from P itself. Where
   the two differ by more than their bounds, P may be wrong from the start, and in l, or by dropout, and l is right. */
static void take_back(const struct oracle_case *c, struct judge_scratch *s, double *all, double *loose)
{
    const struct operand *p = &s->at.of[asc_p];
    const double times = dropout_of_weights(c);
    for (int r = 0; r < c->in_q.rows; r++)
        for (int col = 0; col < s->at.cols; col++) {
            const size_t i = (size_t)r * (size_t)s->at.cols + (size_t)col;
            if (!dropout_keeps(&s->at, r, col))
                continue;
            const double of_s = all[i], own = loose[i];
            all[i] = p->value[i] / times;
            loose[i] = times == 1 ? p->loose[i] : p->loose[i] / times + DROPOUT_ROUNDINGS * BOUND_U * fabs(all[i]);
            if (fabs(all[i] - of_s) > own + loose[i])
                loose[i] += fabs(all[i] - of_s);
        }
}

void dropout_use_weights(const struct oracle_case *c, struct judge_scratch *s)
{
    struct operands *x = &s->at;
    const size_t bytes = (size_t)c->in_q.rows * (size_t)x->cols * sizeof(double);
    double *value = s->prepared.kept, *loose = s->prepared.kept_loose;
    if (c->conventions.p_dropout == ASC_P_DROPPED) {
        take_back(c, s, s->prepared.all, s->prepared.all_loose);
        x->l_p = (struct operand){s->prepared.all, s->prepared.all_loose, false};
        return;
    }
    memcpy(value, x->pv_p.value, bytes);
    memcpy(loose, x->pv_p.loose, bytes);
    dropout_apply(c, x, value, loose);
    x->pv_p = (struct operand){value, loose, x->pv_p.exact && dropout_of_weights(c) == 1};
}
