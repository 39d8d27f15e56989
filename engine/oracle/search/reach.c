/* Rules of reach: RULE_REACH. The sum of U or l ends with the keys that another row sees, as where a lane has one row
   of the scores and others of the product. What it gives, who proposes it, and its words. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/search/say.h"
#include "engine/trace/layout.h"
#include <stdio.h>
#include <stdlib.h>

/* Keys of the tile that row `row` of the q tile sees, from the tile's first one on, rounded up to a multiple. */
static int reach_of(const struct sample_tile *t, int row, int unit)
{
    const int seen = schedule_range(t->c, row).last - t->kv * t->c->bc, C = t->x.cols;
    const int up = seen <= 0 ? 0 : (seen + unit - 1) / unit * unit;
    return up < C ? up : C;
}

/* What key k adds to element (r, col). */
static double term_of(const struct sample_tile *t, const double *p, const double *v, int r, int col, int k)
{
    return p[r * t->x.cols + k] * (v ? t->x.times_v * v[k * t->cols + col] : 1);
}

static bool terms_of(const struct search *search, const struct sample_tile *t, const double **p, const double **v)
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
    if (!terms_of(search, t, &p, &v))
        return false;
    for (int i = 0; i < (int)sample_cells(t); i++) {
        const int r = i / t->cols, col = i % t->cols;
        const int row = map_at(&rule->map, bits ? r << bits | col : r) >> bits;
        double lost = 0, size = 0;
        for (int k = row < 0 ? 0 : reach_of(t, row, rule->share); k < t->x.cols; k++) {
            const double term = term_of(t, p, v, r, col, k);
            lost += term;
            size += fabs(term);
        }
        want[i] = row < 0 ? NAN : t->want[i] - lost;
        bound[i] = t->bound[i] + bound_gamma(t->x.cols + 1) * size;
    }
    return true;
}

/* Where the sum of a wrong element has ended: what is missing is what the keys behind add; -1: at no key, or at any of
   several. */
static int end_of(const struct sample_tile *t, const double *p, const double *v, int i)
{
    const double missing = t->want[i] - t->got[i], off = 2 * t->bound[i];
    double behind = 0;
    int end = -1;
    for (int k = t->x.cols - 1; k >= 0; k--) {
        behind += term_of(t, p, v, i / t->cols, i % t->cols, k);
        if (fabs(behind - missing) <= off) {
            if (end >= 0)
                return -1;
            end = k;
        }
    }
    return end;
}

enum { ENDS = 256, LEAST_ENDS = 24 };

struct end {
    const struct sample_tile *t;
    int row, col, keys;
};

/* The row that sees so many keys; of those that a multiple does not tell apart, the one in its own place among them. */
static int row_reaching(const struct end *end, int unit)
{
    int found = -1, rows = 0;
    for (int row = 0; row < end->t->c->br; row++) {
        if (reach_of(end->t, row, unit) != end->keys)
            continue;
        rows++;
        if (row % unit == end->row % unit)
            found = row;
    }
    return rows <= unit ? found : -1;
}

static void try_ends(struct search *search, const struct end *ends, size_t n, int unit, int bits)
{
    struct rule rule = rule_new(RULE_REACH);
    struct pair pairs[ENDS];
    size_t known = 0;
    const int br = search->sample->tiles[0].c->br;
    for (size_t i = 0; i < n; i++) {
        const int row = row_reaching(&ends[i], unit), col = bits ? ends[i].col : 0;
        if (row >= 0)
            pairs[known++] = (struct pair){ends[i].row << bits | col, row << bits | col};
    }
    rule.keys.a = bits;
    rule.share = unit;
    rule.cost = known < LEAST_ENDS ? INFINITY : 5 + map_fit(pairs, known, br << bits, &rule.map);
    if (rule.cost < INFINITY && rule.map.kind != MAP_SAME && (!bits || rule.map.kind == MAP_BITS))
        rule_try(search, &rule);
}

void propose_reach(struct search *search)
{
    const struct sample *s = search->sample;
    const size_t step = s->wrong / ENDS | 1; /* odd: it comes to all columns */
    struct end ends[ENDS];
    size_t n = 0, seen = 0;
    const int bits = map_bits_for(s->tiles[0].cols);
    int any = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const double *p, *v;
        if (!t->cut || !terms_of(search, t, &p, &v))
            continue;
        for (int i = 0; i < (int)sample_cells(t) && n < ENDS; i++) {
            if (!is_wrong_number(t, (size_t)i) || seen++ % step)
                continue;
            const int keys = end_of(t, p, v, i);
            if (keys > 0)
                ends[n++] = (struct end){t, i / t->cols, i % t->cols, keys};
            any |= keys > 0 ? keys : 0;
        }
    }
    if (n < LEAST_ENDS)
        return;
    try_ends(search, ends, n, any & -any, 0);
    if (bits && search->best.kind == RULE_NONE)
        try_ends(search, ends, n, any & -any, bits);
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
