#include "engine/oracle/merge.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/local.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"
#include <string.h>

/* What a split ends with in one row, and d_s. */
struct part {
    double m, l, l_loose, l_likely, share_loose;
    const double *u, *u_loose, *u_likely; /* [D] */
};

/* A kernel that splits merges what it has, be it the state of one split. */
static bool is_split(const struct oracle_case *c)
{
    return c->kv_splits > 1;
}

bool merge_sink_comes_last(const struct oracle_case *c)
{
    return c->has_sink && c->conventions.l_sink != ASC_SINK_START;
}

bool merge_leaves_normalized(const struct oracle_case *c)
{
    return c->conventions.u_norm == ASC_U_NORM_TILE && !is_split(c) && !merge_sink_comes_last(c);
}

/* U as it is before it is divided by l, where it was. */
static void take_back_l(const struct oracle_case *c, struct judge_scratch *s)
{
    for (int i = 0; i < c->in_q.rows * c->head_dim_v && c->conventions.u_norm == ASC_U_NORM_TILE; i++) {
        const double l = s->carried.l[i / c->head_dim_v], u = s->carried.u[i];
        s->carried.u[i] = l * u;
        s->carried.u_loose[i] = fabs(l) * s->carried.u_loose[i] + BOUND_U * fabs(l * u) +
                                s->carried.l_loose[i / c->head_dim_v] * (fabs(u) + s->carried.u_loose[i]);
    }
}

void merge_begin(const struct oracle_case *c, struct judge_scratch *s)
{
    const size_t rows = (size_t)c->in_q.rows, row_bytes = rows * sizeof(double);
    if (!is_split(c))
        return;
    for (int side = 0; side < SIDES; side++) {
        const struct merged to = s->merged[side];
        for (size_t r = 0; r < rows; r++)
            to.m[r] = -INFINITY;
        memset(to.l, 0, row_bytes);
        memset(to.l_loose, 0, row_bytes);
        memset(to.l_likely, 0, row_bytes);
        memset(to.u, 0, row_bytes * (size_t)c->head_dim_v);
        memset(to.u_size, 0, row_bytes * (size_t)c->head_dim_v);
        memset(to.u_loose, 0, row_bytes * (size_t)c->head_dim_v);
        memset(to.u_likely, 0, row_bytes * (size_t)c->head_dim_v);
    }
    memset(s->merged[GLOBAL].max_bound, 0, row_bytes);
}

/* d_s, but for what depends on lse. frame: the m that the kernel's own lse_s is made with. */
static double share_loose(const struct oracle_case *c, double frame, double m_loose, double lse)
{
    const struct exponential e = weight_exponential(c);
    return merge_share(&e, bound_ln_factor(c), frame, m_loose, bound_folded_scales(c, frame), lse);
}

static void add_part(const struct merged *to, int r, int head_dim_v, const struct part *part)
{
    const double m = fmax(to->m[r], part->m);
    const double kept = to->m[r] == -INFINITY ? 0 : exp_lane(to->m[r] - m), weight = exp_lane(part->m - m);
    const size_t first = (size_t)r * (size_t)head_dim_v;
    struct merged_value l = {.sum = to->l[r], .loose = to->l_loose[r], .likely = to->l_likely[r]};
    merge_sum(kept, weight, part->share_loose, part->l, part->l_loose, part->l_likely, &l);
    to->m[r] = m;
    to->l[r] = l.sum;
    to->l_loose[r] = l.loose;
    to->l_likely[r] = l.likely;
    for (int d = 0; d < head_dim_v; d++) {
        const size_t i = first + (size_t)d;
        struct merged_value u = {to->u[i], to->u_size[i], to->u_loose[i], to->u_likely[i]};
        merge_value(kept, weight, part->share_loose, part->u[d], part->u_loose[d], part->u_likely[d], &u);
        to->u[i] = u.sum;
        to->u_size[i] = u.size;
        to->u_loose[i] = u.loose;
        to->u_likely[i] = u.likely;
    }
}

/* A split without any key does not. Nothing follows from a state that is no number: the row is lost. */
static bool takes_part(const struct merged *to, int r, int head_dim_v, double m, double l)
{
    if (l == 0)
        return false;
    if (isfinite(m) && l > 0)
        return true;
    to->l[r] = NAN;
    for (int d = 0; d < head_dim_v; d++)
        to->u[(size_t)r * (size_t)head_dim_v + (size_t)d] = NAN;
    return false;
}

/* The sum over the lanes that hold a part of l costs an addition each. */
static double lanes_loose(const struct oracle_case *c, double l)
{
    return c->conventions.l_lanes > 1 ? bound_gamma(c->conventions.l_lanes) * fabs(l) : 0;
}

void merge_local(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct merged to = s->merged[LOCAL];
    const double natural = values_natural_m(c);
    if (!is_split(c))
        return;
    take_back_l(c, s);
    for (int r = 0; r < c->in_q.rows; r++) {
        const double m = s->carried.m[r] * natural, l = s->carried.l[r];
        const size_t first = (size_t)r * (size_t)c->head_dim_v;
        if (!takes_part(&to, r, c->head_dim_v, m, l))
            continue;
        const struct part part = {
            .m = m,
            .l = l,
            .l_loose = s->carried.l_loose[r] + lanes_loose(c, l),
            .l_likely = 0,
            .share_loose = share_loose(c, m, s->carried.m_loose[r] * fabs(natural), m + log(l) - bound_ln_factor(c)),
            .u = s->carried.u + first,
            .u_loose = s->carried.u_loose + first,
            .u_likely = s->carried.u_loose + first};
        add_part(&to, r, c->head_dim_v, &part);
    }
}

void merge_reference(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct merged to = s->merged[GLOBAL];
    if (!is_split(c))
        return;
    for (int r = 0; r < c->in_q.rows; r++) {
        const double m = s->reference.max[r], l = s->reference.sum[r];
        const size_t first = (size_t)r * (size_t)c->head_dim_v;
        if (!takes_part(&to, r, c->head_dim_v, m, l))
            continue;
        for (int d = 0; d < c->head_dim_v; d++)
            s->reference.moved[d] = fmin(s->reference.out_error[first + (size_t)d],
                                         s->likely.on ? likely_of_u(s, r, first + (size_t)d) : INFINITY);
        const double likely = s->likely.on ? likely_of_l(s, r) : INFINITY;
        const struct part part = {.m = m,
                                  .l = l,
                                  .l_loose = s->reference.sum_error[r] + lanes_loose(c, l),
                                  .l_likely = fmin(s->reference.sum_error[r], likely) + lanes_loose(c, l),
                                  .share_loose = share_loose(c, s->reference.frame[r], 0, m + log(l)),
                                  .u = s->reference.out + first,
                                  .u_loose = s->reference.out_error + first,
                                  .u_likely = s->reference.moved};
        add_part(&to, r, c->head_dim_v, &part);
        s->merged[GLOBAL].max_bound[r] = fmax(s->merged[GLOBAL].max_bound[r], s->reference.max_bound[r]);
    }
}

/* What depends on lse: the other half of |lse_s - lse|, the sum over the splits, and the error of lse. */
static void finish_row(const struct oracle_case *c, const struct merged *to, int r)
{
    const double l = to->l[r], ln_l = log(l), lse = to->m[r] + ln_l;
    const double common = merge_common(lse, schedule_splits(c));
    if (!(l > 0))
        return;
    const double of_l = merge_of_all(l, to->m[r], ln_l, common, bound_folded_scales(c, to->m[r]));
    to->l_loose[r] += of_l;
    to->l_likely[r] += of_l;
    for (int d = 0; d < c->head_dim_v; d++) {
        const size_t i = (size_t)r * (size_t)c->head_dim_v + (size_t)d;
        to->u_loose[i] += to->u_size[i] * common;
        to->u_likely[i] += to->u_size[i] * common;
    }
}

static void scale_row(double *values, int r, int head_dim_v, double factor)
{
    for (int d = 0; d < head_dim_v && factor != 1; d++)
        values[(size_t)r * (size_t)head_dim_v + (size_t)d] *= factor;
}

static void sink_local(const struct oracle_case *c, struct judge_scratch *s)
{
    const double natural = values_natural_m(c), factor = bound_p_factor(c);
    const struct exponential e = weight_exponential(c);
    for (int r = 0; r < c->in_q.rows; r++) {
        const double m = s->carried.m[r] * natural;
        /* A row without any key keeps an empty state: what O and LSE then are is declared. */
        if (!isfinite(m) || (schedule_keys(c, r) == 0 && s->carried.l[r] == 0))
            continue;
        const struct sunk sunk = sink_into(&e, c->sink, m, m, s->carried.m_loose[r] * fabs(natural));
        const double l = sunk.kept * s->carried.l[r] + sunk.weight * factor;
        s->carried.l_loose[r] = sunk.kept * (s->carried.l_loose[r] + fabs(s->carried.l[r]) * sunk.kept_loose) +
                                factor * sunk.weight_loose + 3 * BOUND_U * fabs(l);
        s->carried.l[r] = l;
        if (sunk.top != m)
            s->carried.m[r] = sunk.top / natural;
        scale_row(s->carried.u, r, c->head_dim_v, sunk.kept);
        scale_row(s->carried.u_loose, r, c->head_dim_v, sunk.kept);
    }
}

static void sink_reference(const struct oracle_case *c, struct judge_scratch *s)
{
    for (int r = 0; r < c->in_q.rows; r++) {
        if (!isfinite(s->reference.max[r]))
            continue;
        const struct sunk sunk =
            sink_into(&s->reference.exponential, c->sink, s->reference.max[r], s->reference.frame[r], 0);
        const double sum = sunk.kept * s->reference.sum[r] + sunk.weight;
        likely_sink(c, s, r, sunk.kept, sink_error(&sunk, s->reference.sum[r], 0, sum));
        s->reference.sum_error[r] = sink_error(&sunk, s->reference.sum[r], s->reference.sum_error[r], sum);
        s->reference.sum[r] = sum;
        s->reference.max[r] = sunk.top;
        scale_row(s->reference.out, r, c->head_dim_v, sunk.kept);
        scale_row(s->reference.out_error, r, c->head_dim_v, sunk.kept);
    }
}

void merge_finish_local(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct merged from = s->merged[LOCAL];
    const size_t row_bytes = (size_t)c->in_q.rows * sizeof(double), value_bytes = row_bytes * (size_t)c->head_dim_v;
    if (is_split(c)) {
        for (int r = 0; r < c->in_q.rows; r++) {
            finish_row(c, &from, r);
            s->carried.m[r] = from.m[r] / values_natural_m(c);
            s->carried.m_loose[r] = 0;
        }
        memcpy(s->carried.l, from.l, row_bytes);
        memcpy(s->carried.l_loose, from.l_loose, row_bytes);
        memcpy(s->carried.u, from.u, value_bytes);
        memcpy(s->carried.u_loose, from.u_loose, value_bytes);
    } else if (merge_sink_comes_last(c)) {
        take_back_l(c, s);
    }
    if (merge_sink_comes_last(c))
        sink_local(c, s);
}

void merge_finish_reference(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct merged from = s->merged[GLOBAL];
    const size_t row_bytes = (size_t)c->in_q.rows * sizeof(double), value_bytes = row_bytes * (size_t)c->head_dim_v;
    if (is_split(c)) {
        for (int r = 0; r < c->in_q.rows; r++)
            finish_row(c, &from, r);
        memcpy(s->reference.max, from.m, row_bytes);
        memcpy(s->reference.frame, from.m, row_bytes);
        memcpy(s->reference.max_bound, s->merged[GLOBAL].max_bound, row_bytes);
        memcpy(s->reference.sum, from.l, row_bytes);
        memcpy(s->reference.sum_error, from.l_loose, row_bytes);
        memcpy(s->reference.out, from.u, value_bytes);
        memcpy(s->reference.out_error, from.u_loose, value_bytes);
        if (s->likely.on)
            likely_merged(c, s, from.l_likely, from.u_likely);
    }
    if (merge_sink_comes_last(c))
        sink_reference(c, s);
}
