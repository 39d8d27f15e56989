#include "engine/oracle/dropout.h"

#include "engine/oracle/bound.h"
#include <string.h>

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
