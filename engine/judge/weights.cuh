/* Maximum, weights and the sum of a row over one tile: oracle/reference.c but for U. */
#ifndef JUDGE_WEIGHTS_CUH
#define JUDGE_WEIGHTS_CUH

#include "engine/judge/merge.cuh"

/* The row's state meets a larger key than those before: reference_tile() and step_decay(). top: the key's score,
   natural. By one thread: it is rare. */
static __device__ __noinline__ void judge_frame(const struct judge_numbers &n, double top, double start,
                                                struct judge_kept_row *s)
{
    const struct exponential *e = &n.exponential;
    const double max = fmax(s->max, top), frame = fmax(max, start), folds = exponential_folds(e, frame);
    const double below = top == -(double)INFINITY ? 0 : fmin((max - top) * 0x1.71547652b82fep0, 900.0);
    const double scale = format_f64_of((uint64_t)(1023 + (int)below) << 52);
    step_decay(e, s->max, max, s->frame, frame, &s->decay, &s->decay_error);
    step_decay(e, max, max, frame, frame, &s->still, &s->still_error);
    s->bin_ratio = scale / s->bin_scale * (s->decay + s->decay_error);
    s->per_bin *= scale / s->bin_scale;
    s->bin_scale = scale;
    s->largest = top;
    s->max = max;
    s->frame = frame;
    const double shift = max == -INFINITY ? 1 : exp_lane(fmax(max - frame, -FRAME_ABOVE));
    s->p_unit = 1 / (shift * n.p_factor);
    s->per_unit = s->p_unit > 0 ? 1 / s->p_unit : 0;
    const double folded = folds + e->offset, limit = exponential_most(e, folded) / shift + 1,
                 tiny = fmax(1.0, 1 / n.p_factor) * BOUND_TINY / shift;
    struct judge_weight_terms *t = &s->narrow;
    t->natural = judge_up(fabs(n.natural));
    t->beyond = judge_up(frame - max);
    t->convert = judge_up(n.convert * bound_convert(1));
    t->always = judge_up(exponential_error(e, 0, folded));
    t->by_distance = judge_up(exponential_error(e, 1, folded) - exponential_error(e, 0, folded));
    t->limit = judge_up(fmin(limit * JUDGE_LIFT, (double)FLT_MAX / 2));
    t->tiny = judge_up(fmin(tiny * JUDGE_LIFT, (double)FLT_MAX / 2));
    t->half_tiny = judge_up(n.p_half_tiny * s->p_unit * JUDGE_LIFT);
    t->l_half_tiny = judge_up(n.l_half_tiny * s->p_unit * JUDGE_LIFT);
    const bool loses = n.u_least > BOUND_TINY;
    t->least = loses ? judge_up(n.u_least * s->p_unit * JUDGE_LIFT) : 0;
    t->lost = loses ? judge_up(n.u_error * n.u_least * s->p_unit * JUDGE_LIFT) : 0;
    s->turns = exponential_error(e, 0, folds);
    s->per_still = s->still > 0 ? 1 / (s->still + s->still_error) : 1; /* 0: there is no key yet */
    s->framed = true;
}

/* The sum of a row in vector_sum()'s order: each of four lanes has a partial sum. */
static __device__ double judge_weight_sum(const double *weight, int cols)
{
    const int whole = cols / 4 * 4;
    const double *own = weight + threadIdx.x % 4;
    double mine = 0, rest = 0, sum = 0;
#pragma unroll 8
    for (int i = 0; i < whole; i += 4)
        mine += own[i];
    for (int i = whole; i < cols; i++)
        rest += weight[i];
    for (int i = 0; i < 4; i++)
        sum += __shfl_sync(0xffffffffu, mine, i, ROW_LANES);
    return sum + rest;
}

/* What hides a key of the row. */
struct judge_seen {
    const unsigned char *mask; /* NULL: only the range does */
    int key;                   /* the tile's first */
};

/* Scores that the row does not see become -inf. Returns how many of this thread's it sees; *above: whether one is above
   those before, `max`. */
static __device__ int judge_see_scores(const struct judge_numbers &n, const struct judge_seen &seen, int cols,
                                       double max, double *score, float *loose, struct judge_share *s, bool *above)
{
    const int lane = threadIdx.x % ROW_LANES, whole = judge_whole(cols);
    const bool all = !seen.mask && whole == cols && seen.key >= s->first && seen.key + cols <= s->last;
    int keys = 0;
    if (__all_sync(0xffffffffu, all)) {
#pragma unroll 4
        for (int col = lane; col < cols; col += ROW_LANES) {
            const double x = score[col];
            const bool hidden = n.bias_terms && x == -(double)INFINITY; /* by a bias */
            s->open |= !hidden && (!(fabs(x) <= DBL_MAX) || !(loose[col] >= 0));
            *above |= x * n.natural > max;
            s->max_bound = fmaxf(s->max_bound, loose[col]);
            keys += !hidden;
        }
        return keys;
    }
#pragma unroll 1
    for (int col = lane; col < whole; col += ROW_LANES) {
        const int key = seen.key + col;
        bool there = col < cols && key >= s->first && key < s->last && (!seen.mask || seen.mask[key]);
        const double x = there ? score[col] : -(double)INFINITY;
        if (!there) {
            score[col] = x;
            loose[col] = 0;
        }
        there = there && !(n.bias_terms && x == -(double)INFINITY);
        s->open |= there && (!(fabs(x) <= DBL_MAX) || !(loose[col] >= 0));
        *above |= x * n.natural > max;
        s->max_bound = fmaxf(s->max_bound, loose[col]);
        keys += there;
    }
    return keys;
}

/* The formulas' numbers of weights that are the same for all rows, in f32. */
struct judge_weight_shares {
    float unit, cut, l_unit, l_cut, random; /* cut: 4 unit^2, see likely_weight() */
};
static __device__ struct judge_weight_shares judge_weight_shares_of(const struct judge_numbers &n)
{
    struct judge_weight_shares x;
    x.unit = judge_up(n.p_unit);
    x.cut = judge_up(4 * n.p_unit * n.p_unit);
    x.l_unit = judge_up(n.l_unit);
    x.l_cut = judge_up(4 * n.l_unit * n.l_unit);
    x.random = (float)n.random;
    return x;
}

/* A weight whose argument is off by more than 1. Called: it is rare, and inlined it would take registers. */
static __device__ __noinline__ float judge_far(double argument)
{
    return (float)(exp_lane(argument) * JUDGE_LIFT);
}

/* What a weight errs by, and what is known of it in long rows: weight_exp(), weight_error(), weight_rounded(),
   likely_weight(), in f32 and in units of 2^-24: each of a dozen operations may make a number smaller by 2^-24, for
   which there is JUDGE_ROUNDED. */
struct judge_weight {
    float size, error, taken, fixed, variance, less, squares, l_more;
};
static __device__ struct judge_weight judge_weight_of(const struct judge_numbers &n, const struct judge_weight_terms &t,
                                                      const struct judge_weight_shares &share, double score,
                                                      float loose, double argument, double w)
{
    struct judge_weight x;
    const bool hidden = argument == -(double)INFINITY;
    const float natural = loose * t.natural, from_top = hidden ? 0 : fabsf((float)argument);
    const float of_score = hidden ? 0 : fmaf(t.convert, fabsf((float)(score * n.natural)), natural);
    const float off = of_score + fmaf(t.by_distance, from_top + t.beyond + of_score, t.always);
    x.size = (float)(w * JUDGE_LIFT);
    x.error = fminf(x.size * fmaf(off, off, off), t.limit) + t.tiny;
    if (!(off <= 1)) /* rare */
        x.error = fminf(judge_far(argument + (double)off), t.limit) + t.tiny;
    if (hidden)
        x.size = x.error = 0;
    const float all = x.size + x.error, rounded = all > 0 ? fmaf(share.unit, all, t.half_tiny) : 0;
    x.taken = x.error + rounded;
    if (x.size > 0 && x.size < t.least)
        x.taken += t.lost;
    if (!n.likely)
        return x;
    const float either = natural < 0x1p-6f ? fminf(share.random * x.size * natural, x.error) : 0;
    const bool few = all < LIKELY_STEPS * t.half_tiny;
    x.less = either;
    x.fixed = x.error - either + fmaf(share.cut, all, few ? rounded : 0) + x.error * 0x1p-21f;
    x.variance = fmaf(either, either, few ? 0 : rounded * rounded);
    x.squares = either * either;
    x.l_more = 0;
    if (n.l_unit > 0) {
        const float l_rounded = all > 0 ? fmaf(share.l_unit, all, t.l_half_tiny) : 0;
        const bool l_few = all < LIKELY_STEPS * t.l_half_tiny;
        x.l_more = fmaf(share.l_cut, all, l_few ? l_rounded : 0);
        x.squares += l_few ? 0 : l_rounded * l_rounded;
    }
    return x;
}

/* A tile's weights of one row, by its ROW_LANES threads. per_v: 1 / V's unit. */
static __device__ void judge_weights(const struct judge_numbers &n, const struct judge_room &room,
                                     const struct judge_seen &seen, int cols, double times, double start, double per_v,
                                     struct judge_share *s)
{
    const int row = threadIdx.x / ROW_LANES, lane = threadIdx.x % ROW_LANES, begin = row * room.pitch_p;
    double *weight = room.weight + begin, *numbers = room.row + row * ROW_NUMBERS;
    float *loose = room.loose + begin;
    uint32_t *bins = room.bins + row * 2 * LIKELY_BINS;
    struct judge_kept_row *kept = room.kept + row;
    bool above = !kept->framed;
    const int mine = judge_see_scores(n, seen, cols, kept->largest, weight, loose, s, &above);
    const unsigned of_row = ((1u << ROW_LANES) - 1) << (threadIdx.x % LANES / ROW_LANES * ROW_LANES);
    above = (__ballot_sync(0xffffffffu, above) & of_row) != 0;
    if (__any_sync(0xffffffffu, above)) {
        double top = -INFINITY;
        for (int col = lane; col < cols; col += ROW_LANES)
            top = fmax(top, weight[col]);
        top = fmax(kept->largest, judge_row_most<ROW_LANES>(top) * n.natural);
        __syncwarp();
        if (above && lane == 0)
            judge_frame(n, top, start, kept);
        __syncwarp();
    }
    const double decay = above ? kept->decay : kept->still, decay_error = above ? kept->decay_error : kept->still_error;
    const double most_decay = decay + decay_error, per_bin = above ? kept->per_bin : kept->per_bin * kept->per_still;
    const int bin_bits = judge_bin_bits(s->keys);
    if (n.likely && above)
        for (int i = lane; i < LIKELY_BINS; i += ROW_LANES) {
            const double less = judge_bin_sum(bins + i, bin_bits) * kept->bin_ratio;
            bins[i] = bins[i + LIKELY_BINS] = 0;
            judge_bin_add(bins + i, less, 1, bin_bits);
        }
    __syncwarp();
    const struct judge_weight_shares share = judge_weight_shares_of(n);
    const float up = (float)(judge_grown() * JUDGE_ROUNDED * times), up_squared = up * (float)times;
    const double kept_max = kept->max, kept_per_unit = kept->per_unit;
    float errors = 0, l = 0, l_variance = 0, squares = 0;
#pragma unroll 1
    for (int col = lane; col < judge_whole(cols); col += ROW_LANES) {
        const double x = weight[col];
        const bool hidden = x == -(double)INFINITY; /* while there is no maximum, the difference is no number */
        const double argument = hidden ? x : x * n.natural - kept_max, w = hidden ? 0 : exp_lane(argument);
        const struct judge_weight of = judge_weight_of(n, kept->narrow, share, x, loose[col], argument, w);
        s->open |= !(w <= DBL_MAX) || !(of.error <= FLT_MAX);
        errors += of.error;
        weight[col] = w;
        room.sizes[0][begin + col] = judge_narrow(of.size * up);
        room.sizes[1][begin + col] = judge_narrow(of.taken * up);
        if (!n.likely)
            continue;
        room.sizes[2][begin + col] = judge_narrow(of.fixed * up);
        room.sizes[3][begin + col] = judge_narrow(of.variance * up_squared);
        l += of.error - of.less + of.l_more + of.error * 0x1p-21f;
        l_variance += of.squares;
        if (judge_deals(w, kept_per_unit)) {
            squares += of.size * of.size;
            judge_bin_add(bins + likely_bin(w * kept_per_unit, n.bin_bits, n.bin_least), w, per_bin, bin_bits);
        }
    }
    __syncwarp();
    for (int flip = ROW_LANES / 2; flip > 0; flip /= 2)
        errors += __shfl_xor_sync(0xffffffffu, errors, flip);
    const double sum_e = (double)errors * ((JUDGE_ROUNDED + (cols / ROW_LANES + 6) * BOUND_U) / JUDGE_LIFT),
                 sum_w = judge_weight_sum(weight, cols), before = kept->sum, sum = decay * before + sum_w,
                 moved = decay_error * before + sum_e;
    int keys = mine;
    if (n.l_half_tiny > 0)
        for (int flip = ROW_LANES / 2; flip > 0; flip /= 2)
            keys += __shfl_xor_sync(0xffffffffu, keys, flip);
    double err =
        most_decay * kept->sum_error + moved + n.l_unit * (sum_w + sum_e) + n.l_half_tiny * kept->p_unit * keys;
    if (n.likely) {
        const double reach = sum + err;
        const float md = judge_up(most_decay), squared = judge_up(most_decay * most_decay);
        if (lane == 0) {
            l += judge_up(decay_error * before * JUDGE_LIFT);
            l_variance += judge_up(n.roundings * (BOUND_U * BOUND_U) * (JUDGE_LIFT * JUDGE_LIFT) * (reach * reach));
        }
        s->l = fmaf(md, s->l, l);
        s->l_variance = fmaf(squared, s->l_variance, l_variance);
        s->squares = fmaf((float)(most_decay * most_decay), s->squares, squares);
    }
    err += n.l_error * (sum + err);
    const double turned = kept->turned + kept->turns;
    __syncwarp();
    if (lane == 0) {
        kept->per_bin = per_bin;
        kept->sum = sum;
        kept->sum_error = err;
        kept->turned = turned;
        numbers[ROW_DECAY] = decay;
        struct judge_now now;
        now.decay = judge_up(decay);
        now.most_decay = judge_up(most_decay);
        now.decay_error = judge_up(decay_error);
        now.squared = judge_up(most_decay * most_decay);
        now.lost = n.u_least > BOUND_TINY
                       ? judge_up(n.u_error * n.u_least * (sum + cols * kept->p_unit) * times * JUDGE_LIFT * per_v)
                       : 0;
        room.now[row] = now;
    }
}

#endif
