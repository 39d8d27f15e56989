/* The true running state of one row, for curves beside what a kernel captured. */
#include "engine/oracle/oracle.h"

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

/* Natural scores of the keys of tile kv that the row sees, soft cap included; returns how many. */
static int tile_scores(const struct oracle_case *c, int row, int kv, double *x)
{
    int n = 0;
    for (int j = schedule_hidden(c, row, kv); j < schedule_visible(c, row, kv); j++) {
        const double score = c->scale * dot(&c->in_q, row, &c->in_k, kv * c->bc + j, c->head_dim);
        x[n++] = c->softcap > 0 ? c->softcap * tanh(score / c->softcap) : score;
    }
    return n;
}

int oracle_row_state(const struct oracle_case *c, int row, double *m, double *alpha, double *l)
{
    const double natural = values_natural_m(c), factor_of_p = ldexp(1, c->conventions.p_offset);
    double *x = malloc((size_t)c->bc * sizeof *x);
    double max = -INFINITY;
    double sum = 0;
    int seen = 0;
    if (!x)
        return -1;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        m[kv] = alpha[kv] = l[kv] = NAN;
    for (int i = 0; i < c->n_visited; i++) {
        const int kv = c->order[i];
        if (kv < 0 || kv >= c->kv_tiles || !isnan(l[kv]))
            continue;
        const int visible = tile_scores(c, row, kv, x), first = c->conventions.alpha_first;
        double next = max;
        double added = 0;
        for (int j = 0; j < visible; j++)
            next = fmax(next, x[j]);
        for (int j = 0; j < visible; j++)
            added += exp(x[j] - next);
        double factor = first == ASC_ALPHA_ONE || (first == ASC_ALPHA_ONE_FIRST && seen == 0);
        if (max != -INFINITY)
            factor = exp(max - next);
        sum = (max == -INFINITY ? 0 : factor * sum) + added;
        max = next;
        seen++;
        m[kv] = max == -INFINITY ? max : max / natural;
        alpha[kv] = factor;
        l[kv] = factor_of_p * sum;
    }
    free(x);
    return 0;
}
