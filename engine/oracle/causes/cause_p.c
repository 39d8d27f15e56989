/* Causes of wrong weights. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"

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

int cause_p_saturated(struct candidate *k)
{
    const struct stage *p = &k->tile->s->stage[asc_p];
    cause_right(k);
    for (int i = 0; i < p->rows * p->cols; i++)
        if (k->want[i] > E4M3_MAX)
            k->want[i] = E4M3_MAX;
    return 1;
}
