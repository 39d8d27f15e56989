/* Causes of a wrong LSE: m is taken `by_m` times, ln l `by_l` times, in the natural unit; the sum `by` times. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"

static int combined(const struct candidate *k, double by_m, double by_l, double by)
{
    const struct oracle_case *c = k->tile->c;
    const struct judge_scratch *s = k->tile->s;
    const double natural = values_natural_m(c);
    const double base = c->conventions.lse_base2 ? M_LOG2E : 1;
    cause_right(k); /* rows without any key, and the part of the bound that comes from what is uncertain upstream */
    for (int r = 0; r < s->stage[asc_lse].rows; r++) {
        const double l = s->at.l_prev.value[r], m = s->at.m_prev.value[r] * natural;
        if (!isfinite(k->want[r]) || !(l > 0))
            continue;
        const double ln_l = log(l) - bound_ln_factor(c);
        k->want[r] = (by_m * m + by_l * ln_l) * by * base;
        k->bound[r] = (k->bound[r] + bound_lse(by_m * m, by_l * ln_l, k->want[r])) * fmax(1, by) * fmax(1, fabs(by_m));
    }
    cause_loosen(k, 4);
    return 1;
}

int cause_lse_m_times(const struct candidate *k, double by)
{
    return combined(k, by, 1, 1);
}
