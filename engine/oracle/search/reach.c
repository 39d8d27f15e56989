/* Rules of reach: RULE_REACH. The sum of U or l ends with the keys that another row sees, as where a lane has one row
   of the scores and others of the product. What it gives, who proposes it, and its words. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/search/say.h"
#include "engine/trace/layout.h"
#include <stdio.h>

int reach_keys(const struct sample_tile *t, int row, int unit)
{
    const int seen = schedule_range(t->c, row).last - t->kv * t->c->bc, C = t->x.cols;
    const int up = seen <= 0 ? 0 : (seen + unit - 1) / unit * unit;
    return up < C ? up : C;
}

double reach_term(const struct sample_tile *t, const double *p, const double *v, int r, int col, int k)
{
    return p[r * t->x.cols + k] * (v ? t->x.times_v * v[k * t->cols + col] : 1);
}

bool reach_terms(const struct search *search, const struct sample_tile *t, const double **p, const double **v)
{
    const bool is_u = search->sample->channel == asc_u;
    *p = is_u ? t->x.pv_p.value : t->x.l_p.value;
    *v = is_u ? t->x.of[asc_v].value : NULL;
    return *p && (*v || !is_u) && !t->next_alpha && t->rows == (int)query_rows(t);
}

bool reach_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                   double *bound)
{
    const double *p, *v;
    const int bits = rule->keys.a;
    if (!reach_terms(search, t, &p, &v))
        return false;
    for (int i = 0, last = -1, keys = 0; i < (int)sample_cells(t); i++) {
        const int r = i / t->cols, col = i % t->cols;
        const int row = map_at(&rule->map, bits ? r << bits | col : r) >> bits;
        double lost = 0, size = 0;
        if (row != last)
            keys = row < 0 ? 0 : reach_keys(t, row, rule->share);
        last = row;
        for (int k = keys; k < t->x.cols; k++) {
            const double term = reach_term(t, p, v, r, col, k);
            lost += term;
            size += fabs(term);
        }
        want[i] = row < 0 ? NAN : t->want[i] - lost;
        bound[i] = t->bound[i] + bound_gamma(t->x.cols + 1) * size;
    }
    return true;
}

void reach_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char words[160] = "", up[32] = "";
    if (rule->keys.a)
        say_moved_bits(&rule->map, rule->keys.a, "column", words, sizeof words);
    else
        map_words(&rule->map, "r", words, sizeof words);
    if (rule->share > 1)
        snprintf(up, sizeof up, ", rounded up to %d", rule->share);
    snprintf(out, bytes, "%s takes in keys up to the last one that %s%s sees%s, and not up to its own row's%s%s",
             channel_label(s->channel), rule->keys.a ? "another row" : "row ", rule->keys.a ? "" : words, up,
             rule->keys.a ? ": " : "", rule->keys.a ? words : "");
}
