/* The true running state of one row, for curves beside what a kernel captured. */
#include "engine/oracle/oracle.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <math.h>
#include <stdlib.h>

/* Room for one query and one key as they are multiplied, [head_dim] each, and for the scores of a tile, [bc]. */
struct room {
    double *q, *k, *x;
};

/* What a query or a key is multiplied as; returns what S then gets for it. */
static double load_row(const struct oracle_case *c, enum asc_channel ch, int row, double *out)
{
    const struct coded_rows part = {ch, codes_input(c, ch), codes_of(c, ch), row, 1};
    double by = 1;
    codes_load(c, &part, out, NULL);
    codes_by(c, ch, row, 1, &by);
    return by;
}

/* Natural scores of the keys of tile kv that the row sees, soft cap and bias included; returns how many. */
static int tile_scores(const struct oracle_case *c, int row, int kv, const struct room *room)
{
    double *x = room->x;
    int n = 0;
    const double by_q = load_row(c, asc_q, row, room->q);
    for (int j = schedule_hidden(c, row, kv); j < schedule_visible(c, row, kv); j++) {
        const double by_k = load_row(c, asc_k, kv * c->bc + j, room->k);
        double dot = 0;
        for (int d = 0; d < c->head_dim; d++)
            dot += room->q[d] * room->k[d];
        const double score = c->scale * dot * (by_q * by_k);
        double size = 0;
        x[n++] =
            (c->softcap > 0 ? c->softcap * tanh(score / c->softcap) : score) + bias_at(c, row, kv * c->bc + j, &size);
    }
    return n;
}

/* The running state between two tiles, in natural units. */
struct running {
    double max, sum;
    int seen; /* tiles */
};

/* m, alpha and l behind tile kv. */
static void take_tile(const struct oracle_case *c, int row, int kv, const struct room *room, struct running *at,
                      double *alpha)
{
    const int visible = tile_scores(c, row, kv, room), first = c->conventions.alpha_first;
    const double *x = room->x;
    double next = at->max;
    double added = 0;
    for (int j = 0; j < visible; j++)
        next = fmax(next, x[j]);
    for (int j = 0; j < visible; j++)
        added += x[j] == -INFINITY ? 0 : exp(x[j] - next);
    *alpha = first == ASC_ALPHA_ONE || (first == ASC_ALPHA_ONE_FIRST && at->seen == 0);
    if (first == ASC_ALPHA_NONE_FIRST && at->seen == 0)
        *alpha = NAN;
    if (at->max != -INFINITY)
        *alpha = exp(at->max - next);
    at->sum = (at->max == -INFINITY ? 0 : *alpha * at->sum) + added;
    at->max = next;
    at->seen++;
}

static struct running begin_split(const struct oracle_case *c, int split)
{
    const int l_sink = c->conventions.l_sink;
    const int at_sink = c->has_sink && split == 0 && (l_sink == ASC_SINK_START || l_sink == ASC_SINK_M_START);
    return (struct running){.max = at_sink ? c->sink : -INFINITY, .sum = at_sink && l_sink == ASC_SINK_START};
}

int oracle_row_state(const struct oracle_case *c, int row, double *m, double *alpha, double *l)
{
    const double natural = values_natural_m(c), factor_of_p = bound_p_factor(c);
    const size_t head_dim = (size_t)c->head_dim;
    double *all = malloc((2 * head_dim + (size_t)c->bc) * sizeof *all);
    if (!all)
        return -1;
    const struct room room = {all, all + head_dim, all + 2 * head_dim};
    for (int kv = 0; kv < c->kv_tiles; kv++)
        m[kv] = alpha[kv] = l[kv] = NAN;
    for (int split = 0; split < schedule_splits(c); split++) {
        struct running at = begin_split(c, split);
        for (int i = 0; i < c->n_visited; i++) {
            const int kv = c->order[i];
            if (kv < 0 || kv >= c->kv_tiles || schedule_split(c, kv) != split || !isnan(l[kv]))
                continue;
            take_tile(c, row, kv, &room, &at, &alpha[kv]);
            m[kv] = at.max == -INFINITY ? at.max : at.max / natural;
            l[kv] = factor_of_p * at.sum;
        }
    }
    free(all);
    return 0;
}
