#include "engine/oracle/rounding_bias/clustered.h"

#include <math.h>

/* Fewer clusters leave the variance itself a guess. */
#define LEAST_CLUSTERS 16
/* At least so much of 1 - mean(g)^2: one sign in ten is of the other kind. */
#define LEAST_BALANCE 0.36
/* Where fewer are rounded at all, the others are of few kinds. */
#define LEAST_ROUNDED 0.25

void cluster_merge(struct cluster *to, const struct cluster *from)
{
    to->n += from->n;
    to->g += from->g;
    to->y += from->y;
    to->gy += from->gy;
}

void cluster_total_merge(struct cluster_total *to, const struct cluster_total *from)
{
    cluster_merge(&to->sum, &from->sum);
    to->yy += from->yy;
    to->gyy += from->gyy;
    to->rounded += from->rounded;
}

double clustered_normal(double t, double df)
{
    return copysign((8 * df + 1) / (8 * df + 3) * sqrt(df * log1p(t * t / df)), t);
}

/* How many clusters of the same size these are worth. */
static double effective(const struct cluster *c, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += c[i].n;
        squares += c[i].n * c[i].n;
    }
    return squares > 0 ? sum * sum / squares : 0;
}

/* A symmetric 2 x 2 matrix. */
struct outer {
    double aa, ab, bb;
};

/* The outer products of the clusters' scores, sum x (y - a - b g) for x = 1 and g. */
static struct outer scores_of(const struct cluster *c, int n, double a, double b, double clusters)
{
    struct outer o = {0};
    for (int i = 0; i < n; i++) {
        const double first = c[i].y - a * c[i].n - b * c[i].g, second = c[i].gy - a * c[i].g - b * c[i].n;
        o.aa += first * first;
        o.ab += first * second;
        o.bb += second * second;
    }
    const double small = clusters / (clusters - 1);
    return (struct outer){o.aa * small, o.ab * small, o.bb * small};
}

/* The same where every element is a cluster: sum r^2 x x', r = y - a - b g and g^2 = 1. */
static struct outer scores_of_elements(const struct cluster_total *t, double a, double b)
{
    const struct cluster *s = &t->sum;
    const double rr = t->yy + (a * a + b * b) * s->n - 2 * a * s->y - 2 * b * s->gy + 2 * a * b * s->g;
    const double rrg = t->gyy + (a * a + b * b) * s->g - 2 * a * s->gy - 2 * b * s->y + 2 * a * b * s->n;
    return (struct outer){rr, rrg, rr};
}

struct clustered clustered_fit(const struct cluster *rows, int n_rows, const struct cluster *cols, int n_cols,
                               const struct cluster_total *total)
{
    const struct cluster *s = &total->sum;
    struct clustered f = {.state = CLUSTERED_FITTED};
    const double by_row = effective(rows, n_rows), by_col = effective(cols, n_cols);
    const double least = fmin(by_row, by_col), determinant = s->n * s->n - s->g * s->g;
    if (!(s->n > 0))
        f.state = CLUSTERED_NOTHING;
    else if (total->rounded <= 0)
        f.state = CLUSTERED_EXACT;
    else if (least < LEAST_CLUSTERS)
        f.state = CLUSTERED_FEW;
    else if (determinant < LEAST_BALANCE * s->n * s->n)
        f.state = CLUSTERED_UNBALANCED;
    else if (total->rounded < LEAST_ROUNDED * s->n)
        f.state = CLUSTERED_COARSE;
    if (f.state != CLUSTERED_FITTED)
        return f;
    f.intercept = (s->n * s->y - s->g * s->gy) / determinant;
    f.slope = (s->n * s->gy - s->g * s->y) / determinant;
    const struct outer r = scores_of(rows, n_rows, f.intercept, f.slope, by_row);
    const struct outer c = scores_of(cols, n_cols, f.intercept, f.slope, by_col);
    const struct outer e = scores_of_elements(total, f.intercept, f.slope);
    /* The difference may leave less than independent elements have, which no clustering does. */
    const double aa = fmax(r.aa + c.aa - e.aa, e.aa), bb = fmax(r.bb + c.bb - e.bb, e.bb), ab = r.ab + c.ab - e.ab;
    const double p = s->n / determinant, q = -s->g / determinant; /* of the inverse of sum x x' */
    const double variance = p * p * aa + 2 * p * q * ab + q * q * bb;
    const double slope_variance = q * q * aa + 2 * p * q * ab + p * p * bb;
    /* |ab| <= sqrt(aa bb) holds for a covariance, not for this difference: then the largest there can be. */
    const double most = fabs(p) * sqrt(aa) + fabs(q) * sqrt(bb), slope_most = fabs(q) * sqrt(aa) + fabs(p) * sqrt(bb);
    f.error = variance > 0 ? sqrt(variance) : most;
    f.slope_error = slope_variance > 0 ? sqrt(slope_variance) : slope_most;
    f.z = f.error > 0 ? clustered_normal(f.intercept / f.error, least - 1) : 0;
    return f;
}
