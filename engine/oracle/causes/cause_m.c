/* Causes of a wrong running maximum and of a wrong rescale factor. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <string.h>

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
