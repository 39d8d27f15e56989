/* Causes of wrong Q, K and V. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include <string.h>

int cause_q_folded(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    if ((int)k->parameter == c.conventions.q_fold)
        return 0;
    c.conventions.q_fold = (int)k->parameter;
    const double factor = values_fold(&c);
    for (int i = 0; i < c.in_q.rows * c.head_dim; i++) {
        k->want[i] = factor * k->tile->s->input[asc_q].value[i];
        k->bound[i] = 0;
    }
    cause_loosen(k, 3); /* the factor is rounded up to twice, the product once */
    return 1;
}

/* The constant, times the scale of a code, is known to a part of the step of the type that the operand is used in: half
   of the elements have voted. */
static int moved(const struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    const int first = k->channel == asc_q ? 0 : k->tile->s->at.kv * k->tile->c->bc;
    for (int i = 0; i < stage->rows * stage->cols; i++) {
        const double by = k->parameter * codes_step(k->tile->c, k->channel, first + i / stage->cols);
        k->want[i] = stage->want[LOCAL][i] + by;
        k->bound[i] = 0x1p-10 * fabs(by) + stage->bound[LOCAL][i];
    }
    return 1;
}

int cause_q_zero_point(struct candidate *k)
{
    return moved(k);
}

int cause_k_zero_point(struct candidate *k)
{
    return moved(k);
}

int cause_v_zero_point(struct candidate *k)
{
    return moved(k);
}
