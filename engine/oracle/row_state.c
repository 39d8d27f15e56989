/* The true running state of one row, for curves beside what a kernel captured. */
#include "engine/oracle/oracle.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <math.h>
#include <stdlib.h>

static double dot(const struct matrix *q, int row, const struct matrix *k, int key, int head_dim)
{
    double sum = 0;
    for (int d = 0; d < head_dim; d++)
        sum += dtype_load(q->dtype, q->data, (size_t)(row * q->row_stride + d)) *
               dtype_load(k->dtype, k->data, (size_t)(key * k->row_stride + d));
    return sum;
}

/* Natural scores of the keys of tile kv that the row sees, soft cap and bias included; returns how many. */
static int tile_scores(const struct oracle_case *c, int row, int kv, double *x)
{
    int n = 0;
    for (int j = schedule_hidden(c, row, kv); j < schedule_visible(c, row, kv); j++) {
        const double score = c->scale * dot(&c->in_q, row, &c->in_k, kv * c->bc + j, c->head_dim);
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

/* m, alpha and l behind tile kv; x has room for its scores. */
static void take_tile(const struct oracle_case *c, int row, int kv, double *x, struct running *at, double *alpha)
{
    const int visible = tile_scores(c, row, kv, x), first = c->conventions.alpha_first;
    double next = at->max;
    double added = 0;
    for (int j = 0; j < visible; j++)
        next = fmax(next, x[j]);
    for (int j = 0; j < visible; j++)
        added += x[j] == -INFINITY ? 0 : exp(x[j] - next);
    *alpha = first == ASC_ALPHA_ONE || (first == ASC_ALPHA_ONE_FIRST && at->seen == 0);
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
    const double natural = values_natural_m(c), factor_of_p = ldexp(1, c->conventions.p_offset);
    double *x = malloc((size_t)c->bc * sizeof *x);
    if (!x)
        return -1;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        m[kv] = alpha[kv] = l[kv] = NAN;
    for (int split = 0; split < schedule_splits(c); split++) {
        struct running at = begin_split(c, split);
        for (int i = 0; i < c->n_visited; i++) {
            const int kv = c->order[i];
            if (kv < 0 || kv >= c->kv_tiles || schedule_split(c, kv) != split || !isnan(l[kv]))
                continue;
            take_tile(c, row, kv, x, &at, &alpha[kv]);
            m[kv] = at.max == -INFINITY ? at.max : at.max / natural;
            l[kv] = factor_of_p * at.sum;
        }
    }
    free(x);
    return 0;
}
