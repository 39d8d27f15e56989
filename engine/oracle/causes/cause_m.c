/* Causes of a wrong running maximum and of a wrong rescale factor. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <string.h>

static int over_part(struct candidate *k, int (*in)(const struct walk_tile *tile, double parameter, int r, int col))
{
    const struct walk_tile *tile = k->tile;
    const struct stage *score = &tile->s->stage[asc_s];
    struct operands s = cause_altered(k);
    double *part = cause_copy(k, tile->s->at.s.value, asc_s);
    for (int r = 0; r < score->rows; r++)
        for (int col = 0; col < score->cols; col++)
            if (!in(tile, k->parameter, r, col))
                part[(size_t)r * (size_t)score->cols + (size_t)col] = -INFINITY;
    s.s.value = part;
    s.pad_cols = 0;
    local_m(tile->c, &s, cause_out(k));
    k->rival = tile->s->at.m_prev.value;
    return 1;
}

int cause_m_part_of_row(struct candidate *k)
{
    return over_part(k, cause_in_part);
}

int cause_m_reduction_incomplete(struct candidate *k)
{
    return over_part(k, cause_in_lanes);
}

int cause_m_not_carried(struct candidate *k)
{
    struct operands s = cause_altered(k);
    for (int r = 0; r < k->tile->c->in_q.rows; r++)
        k->tile->s->mistake.operand[r] = local_m_start(k->tile->c);
    s.m_prev.value = k->tile->s->mistake.operand;
    s.m_prev.loose = k->tile->s->room.zero;
    local_m(k->tile->c, &s, cause_out(k));
    return 1;
}

int cause_m_not_updated(struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    const size_t bytes = (size_t)s->stage[asc_m].rows * sizeof(double);
    memcpy(k->want, s->at.m_prev.value, bytes);
    memcpy(k->bound, s->at.m_prev.loose, bytes);
    return 1;
}

int cause_m_before_mask(struct candidate *k)
{
    struct operands s = cause_altered(k);
    cause_unmasked_scores(k, &s);
    local_m(k->tile->c, &s, cause_out(k));
    return 1;
}

int cause_m_guard_kept(struct candidate *k)
{
    cause_right(k);
    for (int r = 0; r < k->tile->s->stage[asc_m].rows; r++)
        if (k->want[r] == -INFINITY)
            k->want[r] = 0;
    return 1;
}

int cause_m_after_mask(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (!cause_declare_s_at(k, &c, &s))
        return 0;
    local_m(&c, &s, cause_out(k));
    return 1;
}

int cause_m_unit(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (!cause_declare_pair(k, &c, &s))
        return 0;
    local_m(&c, &s, cause_out(k));
    cause_loosen(k, 3);
    return 1;
}

int cause_alpha_inverted(struct candidate *k)
{
    const struct judge_scratch *s = k->tile->s;
    cause_right(k);
    for (int r = 0; r < s->stage[asc_alpha].rows; r++) {
        const double alpha = k->want[r];
        double declared = 0;
        if (local_alpha_declared(k->tile->c, &s->at, s->at.m_prev.value[r], &declared)) {
            /* exp(m + inf), without a guard, is as little a number as what it is taken for. */
            if (s->at.m_prev.value[r] == -INFINITY && !isfinite(s->stage[asc_alpha].got[r]))
                k->want[r] = NAN;
            continue;
        }
        k->want[r] = 1 / alpha;
        k->bound[r] = k->bound[r] / (alpha * alpha);
        if (!isfinite(k->want[r]) || !isfinite(k->bound[r]))
            k->want[r] = INFINITY;
    }
    cause_loosen(k, 4);
    return 1;
}

static int alpha_as(const struct candidate *k, int unit)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    c.conventions.m_unit = unit;
    local_alpha(&c, &s, cause_out(k));
    return 1;
}

/* Its exponent `by` times what it is: a raw maximum without a cap counts `scale`. */
int cause_alpha_exponent_times(const struct candidate *k, double by)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    c.scale = values_natural_m(&c) * by;
    c.softcap = 0;
    c.conventions.m_unit = ASC_UNIT_RAW;
    local_alpha(&c, &s, cause_out(k));
    cause_loosen(k, 2);
    return 1;
}

int cause_alpha_base_2(struct candidate *k)
{
    return k->tile->c->conventions.m_unit != ASC_UNIT_LOG2 && cause_alpha_exponent_times(k, M_LN2);
}

int cause_alpha_base_e(struct candidate *k)
{
    return k->tile->c->conventions.m_unit == ASC_UNIT_LOG2 && alpha_as(k, ASC_UNIT_SCALED);
}

int cause_alpha_scaled_again(struct candidate *k)
{
    return cause_alpha_exponent_times(k, codes_plain_scale(k->tile->c));
}

int cause_alpha_not_scaled(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    return c->conventions.m_unit == ASC_UNIT_RAW && cause_alpha_exponent_times(k, 1 / values_natural_m(c));
}

int cause_alpha_not_scaled_base_2(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    return c->conventions.m_unit == ASC_UNIT_RAW && cause_alpha_exponent_times(k, M_LN2 / values_natural_m(c));
}

int cause_alpha_unguarded(struct candidate *k)
{
    const double *m = k->tile->s->at.of[asc_m].value;
    cause_right(k);
    k->makes_nan = 1;
    for (int r = 0; r < k->tile->c->in_q.rows; r++)
        if (m[r] == -INFINITY)
            k->want[r] = NAN;
    return 1;
}

int cause_alpha_first(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if ((int)k->parameter == c.conventions.alpha_first)
        return 0;
    c.conventions.alpha_first = (int)k->parameter;
    local_alpha(&c, &s, cause_out(k));
    k->constant = k->parameter > 0;
    return 1;
}

int cause_alpha_unit(struct candidate *k)
{
    return (int)k->parameter != k->tile->c->conventions.m_unit && alpha_as(k, (int)k->parameter);
}
