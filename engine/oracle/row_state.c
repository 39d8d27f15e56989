/* The true running state of one row, for curves beside what a kernel captured. */
#include "engine/oracle/oracle.h"

#include "engine/oracle/schedule.h"
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

static double unit_of_m(const struct oracle_case *c)
{
    switch (c->conventions.m_unit) {
    case ASC_UNIT_RAW:
        return 1;
    case ASC_UNIT_LOG2:
        return c->scale * 1.4426950408889634; /* log2(e) */
    default:
        return c->scale;
    }
}

int oracle_row_state(const struct oracle_case *c, int row, double *m, double *alpha, double *l)
{
    const double unit = unit_of_m(c);
    double *x = malloc((size_t)c->bc * sizeof *x); /* scaled scores of a tile's visible keys */
    double max = -INFINITY, sum = 0;
    if (!x)
        return -1;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        m[kv] = alpha[kv] = l[kv] = NAN;
    for (int i = 0; i < c->n_visited; i++) {
        const int kv = c->order[i], visible = schedule_visible(c, row, kv);
        double next = max, added = 0;
        for (int j = 0; j < visible; j++) {
            x[j] = c->scale * dot(&c->in_q, row, &c->in_k, kv * c->bc + j, c->head_dim);
            next = fmax(next, x[j]);
        }
        for (int j = 0; j < visible; j++)
            added += exp(x[j] - next);
        const double factor = max == -INFINITY ? c->conventions.alpha_first : exp(max - next);
        sum = (max == -INFINITY ? 0 : factor * sum) + added;
        max = next;
        m[kv] = max == -INFINITY ? max : max / c->scale * unit;
        alpha[kv] = factor;
        l[kv] = sum;
    }
    free(x);
    return 0;
}
