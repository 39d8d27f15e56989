/* Causes of a wrong output where splits are merged: o = sum w_s o_s / sum w_s with other weights, or of something else
   than o_s = u_s / l_s. What each split ended with is read from its last tile. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <stdio.h>
#include <string.h>

/* How a mistaken kernel merges. */
struct merging {
    double of_lse, of_m; /* w_s = exp(of_lse lse_s + of_m m_s) */
    int counts_empty;    /* a split without any key has an lse of 0, and o of 0 */
    int not_divided;     /* u_s in the place of o_s */
    int alone;           /* 1 + the one split that is taken, or 0 */
};

/* What a split ended with in one row, natural units. lse_loose: how far the kernel's own may lie from it. */
struct ending {
    double m, l, lse, lse_loose;
};

/* The tile that a split ended with, or -1: it has none. */
static int last_tile(const struct judge_scratch *s, int split)
{
    return split < s->lists.splits ? s->lists.last_tile[split] : -1;
}

static const struct matrix *of_tile(const struct oracle_case *c, int kv, enum asc_channel ch)
{
    return &c->captured[kv * ASC_CHANNELS + (int)ch];
}

/* 1: m, l and u of all splits are known to the bit, and nothing else joins them. */
static int can_merge(const struct oracle_case *c, const struct judge_scratch *s)
{
    if (c->kv_splits < 2 || c->fed || c->conventions.u_phase == ASC_U_RESCALED ||
        c->conventions.u_norm == ASC_U_NORM_TILE || (c->has_sink && c->conventions.l_sink != ASC_SINK_START))
        return 0;
    for (int split = 0; split < c->kv_splits; split++) {
        const int kv = last_tile(s, split);
        for (int i = 0; kv >= 0 && i < 3; i++) {
            const struct matrix *x = of_tile(c, kv, (enum asc_channel[]){asc_m, asc_l, asc_u}[i]);
            if (!x->data || x->dtype != DTYPE_F32)
                return 0;
        }
    }
    return 1;
}

/* 0: the split has no key for this row. */
static int take_ending(const struct oracle_case *c, int kv, int r, struct ending *out)
{
    const double offset = bound_ln_factor(c);
    *out = (struct ending){0};
    if (kv < 0)
        return 0;
    const struct matrix *m = of_tile(c, kv, asc_m), *l = of_tile(c, kv, asc_l);
    out->m = dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride)) * values_natural_m(c);
    for (int lane = 0; lane < l->cols; lane++)
        out->l += dtype_load(l->dtype, l->data, (size_t)(r * l->row_stride + lane));
    if (!(out->l > 0))
        return 0;
    out->lse = out->m + log(out->l) - offset;
    out->lse_loose = bound_lse(fabs(out->m) + fabs(offset), log(out->l), out->lse) + bound_convert(out->lse) +
                     (l->cols > 1 ? bound_gamma(l->cols) : 0);
    return 1;
}

static double weight_exponent(const struct merging *how, const struct ending *end, int is_empty)
{
    return is_empty ? 0 : how->of_lse * end->lse + how->of_m * end->m;
}

static int takes_part(const struct merging *how, int split, int is_empty)
{
    return (!is_empty || how->counts_empty) && (!how->alone || how->alone == split + 1);
}

/* Relative error of a weight exp(e - top): e's own, the subtraction, exp's and the roundings around it. */
static double weight_loose(const struct oracle_case *c, const struct merging *how, const struct ending *end, double e,
                           double top)
{
    const double error = fabs(how->of_lse) * end->lse_loose + 3.25 * BOUND_U * (fabs(e) + fabs(top));
    return bound_expm1(error) + bound_exp_declared(c, e - top, 0) + 6 * BOUND_U;
}

/* Adds one split's share to sums of w o and w |o| times its error in k->want and k->bound, of w and w's in `sum`. */
static void add_split(const struct candidate *k, const struct merging *how, int split, const double *top, double *sum,
                      double *sum_loose)
{
    const struct oracle_case *c = k->tile->c;
    const size_t D = (size_t)c->head_dim;
    const int kv = last_tile(k->tile->s, split);
    double *u = k->tile->s->mistake.operand;
    if (kv >= 0)
        values_load(of_tile(c, kv, asc_u), u);
    for (int r = 0; r < c->in_q.rows; r++) {
        struct ending end;
        const int is_empty = !take_ending(c, kv, r, &end);
        if (!takes_part(how, split, is_empty))
            continue;
        const double e = weight_exponent(how, &end, is_empty), w = exp(e - top[r]);
        const double loose = weight_loose(c, how, &end, e, top[r]), by = how->not_divided ? 1 : 1 / end.l;
        sum[r] += w;
        sum_loose[r] += w * loose;
        for (size_t d = 0; d < D && !is_empty; d++) {
            const double x = w * u[(size_t)r * D + d] * by;
            k->want[(size_t)r * D + d] += x;
            k->bound[(size_t)r * D + d] += fabs(x) * loose;
        }
    }
}

/* A row that nothing takes part in is left to the right formula. */
static void finish_row(const struct candidate *k, int r, double sum, double sum_loose)
{
    const struct stage *o = &k->tile->s->stage[asc_o];
    const double common = bound_gamma(k->tile->c->kv_splits + 2);
    for (int d = 0; d < o->cols; d++) {
        const size_t i = (size_t)r * (size_t)o->cols + (size_t)d;
        const double want = k->want[i] / sum;
        const double bound = (k->bound[i] + fabs(want) * sum_loose) / sum + 2 * common * fabs(want);
        k->want[i] = sum > 0 ? want : o->want[LOCAL][i];
        k->bound[i] = sum > 0 ? bound + bound_divide(want) : o->bound[LOCAL][i];
    }
}

static int merged(const struct candidate *k, const struct merging *how)
{
    const struct oracle_case *c = k->tile->c;
    const struct judge_scratch *s = k->tile->s;
    const size_t rows = (size_t)c->in_q.rows, bytes = rows * (size_t)c->head_dim * sizeof(double);
    double *top = s->mistake.next, *sum = s->mistake.alpha, *sum_loose = sum + rows;
    if (!can_merge(c, s))
        return 0;
    memset(k->want, 0, bytes);
    memset(k->bound, 0, bytes);
    memset(sum, 0, 2 * rows * sizeof(double));
    for (size_t r = 0; r < rows; r++) {
        top[r] = -INFINITY;
        for (int split = 0; split < c->kv_splits; split++) {
            struct ending end;
            const int is_empty = !take_ending(c, last_tile(s, split), (int)r, &end);
            if (takes_part(how, split, is_empty))
                top[r] = fmax(top[r], weight_exponent(how, &end, is_empty));
        }
    }
    for (int split = 0; split < c->kv_splits; split++)
        add_split(k, how, split, top, sum, sum_loose);
    for (size_t r = 0; r < rows; r++)
        finish_row(k, (int)r, sum[r], sum_loose[r]);
    return 1;
}

/* Weights, their sum and that of the outputs as f32 has them, where they leave its range: inf / inf, or x / inf, or
   0 / 0. Below half the smallest subnormal an exponential is 0. */
static void unshifted_row(const struct candidate *k, int r)
{
    const struct oracle_case *c = k->tile->c;
    const int D = c->head_dim;
    double *sums = k->tile->s->mistake.operand, sum = 0; /* [D] */
    int overflows = 0;
    memset(sums, 0, (size_t)D * sizeof *sums);
    for (int split = 0; split < c->kv_splits; split++) {
        struct ending end;
        const int kv = last_tile(k->tile->s, split);
        if (!take_ending(c, kv, r, &end))
            continue;
        const struct matrix *u = of_tile(c, kv, asc_u);
        const double w = exp(end.lse);
        overflows |= w > FLT_MAX;
        sum += w;
        for (int d = 0; d < D; d++)
            sums[d] += w * dtype_load(u->dtype, u->data, (size_t)(r * u->row_stride + d)) / end.l;
    }
    const int vanishes = sum < 0.5 * FLT_TRUE_MIN && schedule_keys(c, r) > 0;
    for (int d = 0; d < D; d++) {
        double *want = &k->want[(size_t)r * (size_t)D + (size_t)d];
        const int whole = !overflows && !vanishes, infinite = fabs(sums[d]) > FLT_MAX;
        if (!whole || (infinite && sum > FLT_MAX))
            *want = NAN;
        else if (infinite || sum > FLT_MAX)
            *want = infinite ? copysign(INFINITY, sums[d]) : 0;
    }
}

int cause_merge_not_shifted(struct candidate *k)
{
    if (!merged(k, &(struct merging){.of_lse = 1})) /* whose bound counts roundings of the exponents as they are */
        return 0;
    k->makes_nan = 1;
    for (int r = 0; r < k->tile->c->in_q.rows; r++)
        unshifted_row(k, r);
    return 1;
}

/* Rows that no split has a key for become NaN, of O or of LSE. */
static int unguarded(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct stage *stage = &k->tile->s->stage[k->channel];
    if (c->kv_splits < 2)
        return 0;
    cause_right(k);
    k->makes_nan = 1;
    for (int i = 0; i < stage->rows * stage->cols; i++)
        if (schedule_keys(c, i / stage->cols) == 0)
            k->want[i] = NAN;
    return 1;
}

int cause_merge_unguarded(struct candidate *k)
{
    return unguarded(k);
}

int cause_lse_merge_unguarded(struct candidate *k)
{
    return unguarded(k);
}
