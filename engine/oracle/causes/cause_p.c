/* Causes of wrong weights. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"

int cause_p_not_shifted(struct candidate *k)
{
    struct operands s = cause_altered(k);
    s.of[asc_m].value = k->tile->s->room.zero;
    s.of[asc_m].loose = k->tile->s->room.zero;
    local_p(k->tile->c, &s, cause_out(k));
    return 1;
}

/* The weights with exponents `by` times what they are. A raw maximum without a cap counts `scale`: so any factor can be
   had for it. */
int cause_p_exponent_times(const struct candidate *k, double by)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    c.scale = values_natural_m(&c) * by;
    c.softcap = 0;
    c.conventions.s_unit = c.conventions.m_unit = ASC_UNIT_RAW;
    s.s_natural *= by;
    local_p(&c, &s, cause_out(k));
    cause_loosen(k, 2);
    return 1;
}

int cause_p_base_2(struct candidate *k)
{
    return k->tile->c->conventions.s_unit != ASC_UNIT_LOG2 && cause_p_exponent_times(k, M_LN2);
}

int cause_p_base_e(struct candidate *k)
{
    return k->tile->c->conventions.s_unit == ASC_UNIT_LOG2 && cause_p_exponent_times(k, M_LOG2E);
}

int cause_p_scaled_again(struct candidate *k)
{
    return cause_p_exponent_times(k, codes_plain_scale(k->tile->c));
}

int cause_p_not_scaled(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    return c->conventions.s_unit == ASC_UNIT_RAW && cause_p_exponent_times(k, 1 / values_natural_m(c));
}

int cause_p_not_scaled_base_2(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    return c->conventions.s_unit == ASC_UNIT_RAW && cause_p_exponent_times(k, M_LN2 / values_natural_m(c));
}

/* m is in the unit of raw scores, and taken for one in that of the exponent. */
int cause_p_m_not_scaled(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    struct candidate pair = *k;
    pair.parameter = 3 * ASC_UNIT_RAW + k->parameter;
    if (c.conventions.s_unit != ASC_UNIT_RAW || c.conventions.m_unit != ASC_UNIT_RAW ||
        !cause_declare_pair(&pair, &c, &s))
        return 0;
    local_p(&c, &s, cause_out(k));
    return 1;
}

static int against(const struct candidate *k, const double *m, const double *loose)
{
    struct operands s = cause_altered(k);
    s.of[asc_m].value = m;
    s.of[asc_m].loose = loose;
    local_p(k->tile->c, &s, cause_out(k));
    return 1;
}

int cause_p_from_previous_m(struct candidate *k)
{
    return against(k, k->tile->s->at.m_prev.value, k->tile->s->at.m_prev.loose);
}

/* Against the running maximum of the scores, after so much of it as m_prev holds. */
static int against_maximum(const struct candidate *k, const double *m_prev, const double *loose)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    double *m = k->tile->s->mistake.operand, *bound = m + c.in_q.rows;
    s.m_prev.value = m_prev;
    s.m_prev.loose = loose;
    c.conventions.m_policy = ASC_M_RUNNING;
    local_m(&c, &s, (struct expected){m, bound});
    return against(k, m, bound);
}

int cause_p_from_tile_m(struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    double *none = s->mistake.alpha;
    for (int r = 0; r < s->stage[asc_m].rows; r++)
        none[r] = -INFINITY;
    return against_maximum(k, none, s->room.zero);
}

int cause_p_from_new_m(struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    return k->tile->c->conventions.m_policy != ASC_M_RUNNING &&
           against_maximum(k, s->at.m_prev.value, s->at.m_prev.loose);
}

int cause_p_not_masked(struct candidate *k)
{
    struct operands s = cause_altered(k);
    const struct stage *p = &k->tile->s->stage[asc_p];
    cause_unmasked_scores(k, &s);
    local_p(k->tile->c, &s, cause_out(k));
    const double *frame = local_p_frame(k->tile->c, &s).value;
    /* A row without a maximum has nothing to take weights against. */
    for (int i = 0; i < p->rows * p->cols; i++)
        if (frame[i / p->cols] == -INFINITY)
            k->want[i] = k->bound[i] = 0;
    return 1;
}

int cause_p_unguarded(struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    const struct stage *p = &s->stage[asc_p];
    const double *frame = local_p_frame(k->tile->c, &s->at).value;
    double *beyond = s->mistake.alpha;
    cause_right(k);
    k->makes_nan = 1;
    k->row_padding = beyond;
    k->row_padding_bound = s->room.zero;
    for (int i = 0; i < p->rows * p->cols; i++)
        if (frame[i / p->cols] == -INFINITY)
            k->want[i] = NAN;
    for (int r = 0; r < p->rows; r++)
        beyond[r] = frame[r] == -INFINITY ? NAN : 0;
    return 1;
}

int cause_p_masked_late(struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    const struct stage *p = &s->stage[asc_p];
    cause_right(k);
    for (int r = 0; r < p->rows; r++) {
        for (int col = 0; col < p->cols; col++) {
            const size_t i = (size_t)r * (size_t)p->cols + (size_t)col;
            if (!cause_sees(k->tile, r, col))
                k->want[i] = k->bound[i] = 0;
        }
    }
    return 1;
}

int cause_p_tail_not_masked(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct judge_scratch *s = k->tile->s;
    double *weight = s->mistake.alpha, *bound = weight + s->stage[asc_p].rows;
    if (c->kv_len % c->bc == 0)
        return 0;
    cause_right(k);
    for (int r = 0; r < s->stage[asc_p].rows; r++)
        weight[r] = cause_padding_weight(k->tile, r, &bound[r]);
    k->row_padding = weight;
    k->row_padding_bound = bound;
    return 1;
}

int cause_p_saturated(struct candidate *k)
{
    const struct stage *p = &k->tile->s->stage[asc_p];
    cause_right(k);
    for (int i = 0; i < p->rows * p->cols; i++)
        if (k->want[i] > E4M3_MAX)
            k->want[i] = E4M3_MAX;
    return 1;
}

int cause_p_truncated(struct candidate *k)
{
    double unit = 0;
    double half_tiny = 0;
    cause_right(k);
    k->truncates = 1;
    return bound_narrow(scratch_captured(k->tile->s, k->tile->c, asc_p)->dtype, &unit, &half_tiny);
}

int cause_p_after_mask(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (!cause_declare_s_at(k, &c, &s))
        return 0;
    local_p(&c, &s, cause_out(k));
    return 1;
}

int cause_p_unit(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (!cause_declare_pair(k, &c, &s))
        return 0;
    local_p(&c, &s, cause_out(k));
    return 1;
}
