/* Where a row or a split begins and ends, and splits that become one: oracle/merge.c, of the reference. */
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

/* A bin's weights are added as whole numbers, which come to the same in any order, in two words: so many bits of a
   weight go to each that those of all keys fit, and that a bin is below 2^52; 1 is at or above the largest weight of
   the keys, which a sink may leave far below the maximum (bin_scale). Where a tile leaves the maximum as it is, weights
   of earlier ones still grow a little, see step_decay(): those that join are made smaller instead. */
static __device__ int judge_bin_bits(int keys)
{
    return min(20, __clz(keys));
}
static __device__ double judge_per_bin(int keys)
{
    return format_f64_of((uint64_t)(1023 + 2 * judge_bin_bits(keys) - 1) << 52);
}
static __device__ void judge_bin_add(uint32_t *bin, double weight, double per_bin, int bits)
{
    const uint64_t whole = format_f64_bits(fma(weight, per_bin, 0x1p52)) - format_f64_bits(0x1p52);
    atomicAdd(bin, (uint32_t)whole & ((1u << bits) - 1));
    atomicAdd(bin + LIKELY_BINS, (uint32_t)(whole >> bits));
}
static __device__ double judge_bin_sum(const uint32_t *bin, int bits)
{
    return (double)bin[LIKELY_BINS] * (double)(1u << bits) + (double)bin[0];
}

/* The state of a row before its first key, or before a split's, by the row's threads. */
static __device__ void judge_split_begin(const struct judge_numbers &n, const struct judge_room &room, bool first,
                                         struct judge_share *s)
{
    const int row = threadIdx.x / ROW_LANES, lane = threadIdx.x % ROW_LANES;
    struct judge_kept_row kept = {};
    kept.max = first ? n.max_begin : -(double)INFINITY;
    kept.frame = first ? n.start : n.start_later;
    kept.sum = first ? n.l_begin : 0;
    kept.sum_error = first ? n.l_error_begin : 0;
    kept.largest = -(double)INFINITY;
    kept.bin_scale = 1;
    kept.per_bin = judge_per_bin(s->keys);
    if (lane == 0)
        room.kept[row] = kept;
    for (int i = lane; n.likely && i < 2 * LIKELY_BINS; i += ROW_LANES)
        room.bins[row * 2 * LIKELY_BINS + i] = 0;
    s->max_bound = s->l = s->l_variance = s->squares = 0;
    __syncwarp();
}

/* What its threads have of a row comes together; each sum of f32 may be too small by 2^-24 an addition. Its squares
   divide, and are made smaller. *together: likely_together(), of long rows; 1 of others. */
static __device__ struct judge_state judge_join_row(const struct judge_numbers &n, const struct judge_room &room,
                                                    bool first, double tiles, const struct judge_share &share,
                                                    double *together)
{
    const struct judge_kept_row *kept = room.kept + threadIdx.x / ROW_LANES;
    const uint32_t *bins = room.bins + threadIdx.x / ROW_LANES * 2 * LIKELY_BINS;
    const double grown = 1 + (2 * tiles + n.bc / ROW_LANES + 4) * BOUND_U + (JUDGE_ROUNDED - 1) * 2,
                 down = 1 / JUDGE_LIFT;
    struct judge_state s;
    s.max = kept->max;
    s.frame = kept->frame;
    s.sum = kept->sum;
    s.sum_error = kept->sum_error;
    s.turned = kept->turned;
    s.max_bound = judge_row_most<ROW_LANES>((double)share.max_bound) * fabs(n.natural);
    if (first)
        s.max_bound = fmax(s.max_bound, n.bound_begin);
    s.l = judge_row_sum<ROW_LANES>((double)share.l) * (down * grown);
    s.l_variance = judge_row_sum<ROW_LANES>((double)share.l_variance) * (down * down * grown);
    s.squares = judge_row_sum<ROW_LANES>((double)share.squares) * (down * down / grown);
    *together = 1;
    if (!n.likely)
        return s;
    double sum = 0, squares = 0;
    for (int i = threadIdx.x % ROW_LANES; i < LIKELY_BINS; i += ROW_LANES) {
        const double x = judge_bin_sum(bins + i, judge_bin_bits(share.keys)) / kept->per_bin;
        sum += x;
        squares += x * x;
    }
    sum = judge_row_sum<ROW_LANES>(sum);
    squares = judge_row_sum<ROW_LANES>(squares);
    *together = likely_together_of(sum, squares, s.squares);
    return s;
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
                                       struct judge_merged *x, double *numbers, bool *open)
{
    const double lanes = n.lanes > 1 ? bound_gamma(n.lanes) * fabs(s->sum) : 0;
    const double likely = n.likely ? fmin(s->sum_error, likely_most(together, s->l, s->l_variance)) : s->sum_error;
    double kept = 1, weight = 0, share = 0;
    if (s->sum != 0) {
        const double m = fmax(x->m, s->max), lse = s->max + log(s->sum);
        *open |= !(fabs(s->max) <= DBL_MAX) || !(s->sum > 0);
        share = merge_share(&n.exponential, n.ln_factor, s->frame, 0,
                            n.folded_lse > 0 ? n.folded_lse * fabs(s->frame) : 0, lse);
        kept = x->m == -(double)INFINITY ? 0 : exp_lane(x->m - m);
        weight = exp_lane(s->max - m);
        merge_sum(kept, weight, share, s->sum, s->sum_error + lanes, likely + lanes, &x->l);
        x->m = m;
        x->max_bound = fmax(x->max_bound, s->max_bound);
    }
    if (threadIdx.x % ROW_LANES == 0) {
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
