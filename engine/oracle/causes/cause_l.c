/* Causes of a wrong running sum. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <string.h>

static int with_p(const struct candidate *k, const double *p)
{
    struct operands s = cause_altered(k);
    s.l_p.value = p;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}

static int with_p_exactly(const struct candidate *k, struct operand p)
{
    struct operands s = cause_altered(k);
    s.l_p = p;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}

int cause_l_padding_counted(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct judge_scratch *s = k->tile->s;
    const int padding = c->bc - s->at.cols;
    if (c->kv_len % c->bc == 0 || s->at.pad_cols > 0)
        return 0;
    cause_right(k);
    for (int r = 0; r < s->stage[asc_l].rows && padding > 0; r++) {
        double bound = 0;
        const double weight = cause_padding_weight(k->tile, r, &bound);
        k->want[r] += padding * weight * s->at.beta.value[r];
        k->bound[r] += padding * ((s->at.beta.value[r] + s->at.beta.loose[r]) * bound + s->at.beta.loose[r] * weight +
                                  s->at.beta.value[r] * weight * bound_sum(c->bc));
    }
    return 1;
}

/* Where S is recorded before the mask, what stands in its padding has no weight. */
int cause_l_after_mask(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    struct operands s = cause_altered(k);
    if (values_mask_later(c) || c->kv_len % c->bc == 0)
        return 0;
    s.pad_cols = 0;
    local_l(c, &s, cause_out(k));
    return 1;
}

int cause_l_from_rounded(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p = cause_copy(k, k->tile->s->at.of[asc_p].value, asc_p);
    enum dtype declared;
    if (k->tile->c->conventions.l_from == ASC_L_ROUNDED && values_p_type(k->tile->c, &declared) &&
        declared == cause_type(k->parameter))
        return 0; /* that is what is wanted: what differs is something else */
    for (int i = 0; i < stage->rows * stage->cols; i++)
        p[i] = bound_round(cause_type(k->parameter), p[i]);
    return with_p(k, p);
}

/* The weights before they were rounded: as recorded, or where a narrow type was, as they follow from s and m. */
int cause_l_from_unrounded(struct candidate *k)
{
    const struct stage *p = &k->tile->s->stage[asc_p];
    struct operands s = cause_altered(k);
    double unit = 0;
    double half_tiny = 0;
    if (!p->recorded || k->tile->c->conventions.l_from == ASC_L_UNROUNDED) /* that is what is wanted */
        return 0;
    if (!bound_narrow(scratch_captured(k->tile->s, k->tile->c, asc_p)->dtype, &unit, &half_tiny))
        return with_p_exactly(k, k->tile->s->at.of[asc_p]);
    s.l_p.value = p->want[LOCAL];
    s.l_p.loose = p->bound[LOCAL];
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}
