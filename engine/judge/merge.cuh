/* Splits that become one on a GPU: oracle/merge.c, of the reference. */
#ifndef JUDGE_MERGE_CUH
#define JUDGE_MERGE_CUH

#include "engine/judge/scores.cuh"

/* What the splits before have come to in a row. */
struct judge_merged {
    double m, max_bound;
    struct merged_value l;
};

static __device__ void judge_merge_begin(struct judge_merged *x)
{
    x->m = -(double)INFINITY;
    x->max_bound = 0;
    x->l.sum = x->l.size = x->l.loose = x->l.likely = 0;
}

/* The state of a split before its first key. */
static __device__ void judge_split_begin(const struct judge_numbers &n, bool first, struct judge_state *s)
{
    s->max = first ? n.max_begin : -(double)INFINITY;
    const bool mine = first && threadIdx.x % LANES == 0; /* of what lanes have parts of */
    s->max_bound = mine ? n.bound_begin : 0;
    s->start = s->frame = first ? n.start : n.start_later;
    s->sum = first ? n.l_begin : 0;
    s->sum_error = first ? n.l_error_begin : 0;
    s->turned = s->l = s->l_variance = s->squares = 0;
    s->framed = false;
}

/* What its lanes have of a row comes together. */
static __device__ void judge_join_row(struct judge_state *s)
{
    s->max_bound = judge_row_most<LANES>(s->max_bound);
    s->l = judge_row_sum(s->l);
    s->l_variance = judge_row_sum(s->l_variance);
    s->squares = judge_row_sum(s->squares);
}

/* reference_turn() of a row: the kernel may have taken the tiles in another order. */
static __device__ void judge_turn_row(const struct judge_numbers &n, double tiles, struct judge_state *s)
{
    const double alpha = s->turned + n.alpha_arguments;
    s->sum_error = error_turned(s->sum_error, tiles * n.l_error + alpha, s->sum);
    if (n.likely) {
        s->l = error_turned(s->l, alpha, s->sum);
        s->l_variance += tiles * n.roundings * BOUND_U * BOUND_U * s->sum * s->sum;
    }
}

/* The same of an element of U. */
static __device__ void judge_turn_element(const struct judge_numbers &n, double tiles, double alpha,
                                          struct judge_element *u)
{
    u->error = error_turned(u->error, tiles * n.u_error + alpha, fabs(u->sum));
    if (n.likely) {
        const double reach = fabs(u->sum) + u->error;
        u->likely.u = error_turned(u->likely.u, tiles * n.share.systematic + alpha, reach);
        u->likely.variance += tiles * n.share.variance * reach * reach;
    }
}

/* A row that has been turned joins; what its elements join by is left in its numbers. A split that holds no key of the
   row weighs nothing. */
static __device__ void judge_merge_row(const struct judge_numbers &n, double together, struct judge_state *s,
                                       struct judge_merged *x, double *numbers)
{
    const double lanes = n.lanes > 1 ? bound_gamma(n.lanes) * fabs(s->sum) : 0;
    const double likely = n.likely ? fmin(s->sum_error, likely_most(together, s->l, s->l_variance)) : s->sum_error;
    double kept = 1, weight = 0, share = 0;
    if (s->sum != 0) {
        const double m = fmax(x->m, s->max), lse = s->max + log(s->sum);
        s->open |= !(fabs(s->max) <= DBL_MAX) || !(s->sum > 0);
        share = merge_share(&n.exponential, n.ln_factor, s->frame, 0,
                            n.folded_lse > 0 ? n.folded_lse * fabs(s->frame) : 0, lse);
        kept = x->m == -(double)INFINITY ? 0 : exp_lane(x->m - m);
        weight = exp_lane(s->max - m);
        merge_sum(kept, weight, share, s->sum, s->sum_error + lanes, likely + lanes, &x->l);
        x->m = m;
        x->max_bound = fmax(x->max_bound, s->max_bound);
    }
    if (threadIdx.x % LANES == 0) {
        numbers[ROW_MERGED] = kept;
        numbers[ROW_JOINS] = weight;
        numbers[ROW_SHARE] = share;
        numbers[ROW_TOGETHER] = together;
        numbers[ROW_ALPHA] = s->turned + n.alpha_arguments;
    }
}

/* An element of its U joins: turned, then merged. */
static __device__ void judge_merge_element(const struct judge_numbers &n, double tiles, const double *numbers,
                                           struct judge_element *u, struct merged_value *x)
{
    judge_turn_element(n, tiles, numbers[ROW_ALPHA], u);
    if (numbers[ROW_JOINS] != 0 || numbers[ROW_MERGED] != 1) {
        const double likely =
            n.likely ? fmin(u->error, likely_most(numbers[ROW_TOGETHER], u->likely.u, u->likely.variance)) : u->error;
        merge_value(numbers[ROW_MERGED], numbers[ROW_JOINS], numbers[ROW_SHARE], u->sum, u->error, likely, x);
    }
    *u = {};
}

/* Behind the last split: the row's state is the merged one. Returns merge_common(), for its elements. */
static __device__ double judge_merge_end(const struct judge_numbers &n, struct judge_merged *x, struct judge_state *s)
{
    const double ln_l = log(x->l.sum), common = merge_common(x->m + ln_l, n.splits);
    const double of_all = merge_of_all(x->l.sum, x->m, ln_l, common, n.folded_lse > 0 ? n.folded_lse * fabs(x->m) : 0);
    s->max = s->frame = x->m;
    s->max_bound = x->max_bound;
    s->sum = x->l.sum;
    s->sum_error = x->l.loose + of_all;
    s->l = x->l.likely + of_all;
    s->l_variance = 0;
    return common;
}

static __device__ void judge_merge_end_element(double common, const struct merged_value &x, struct judge_element *u)
{
    *u = {};
    u->sum = x.sum;
    u->error = x.loose + x.size * common;
    u->likely.u = x.likely + x.size * common;
}

#endif
