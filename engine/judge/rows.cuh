/* The reference of O and LSE on a GPU: oracle/reference.c, tile by tile, 16 rows to a block. Sums are taken in its
   order, so that every number has the bits that the CPU gives it. A block holds its rows' Q, one tile of K and then of
   V, and the weights of the tile in shared memory; what U has come to is in registers. */
#ifndef JUDGE_ROWS_CUH
#define JUDGE_ROWS_CUH

#include "engine/judge/work.h"

enum { THREADS = JUDGE_THREADS, ROWS = JUDGE_ROWS, SHARE = THREADS / ROWS /* threads to a row's weights */ };

/* Where a launch finds its work in device memory. */
struct judge_arrays {
    const struct judge_numbers *numbers;
    const float *code;    /* [3][256] */
    const double *scales; /* NULL: there are none */
    int64_t stride[4];
    const unsigned char *tensors; /* of the trace's file; `begin` of it has been taken off */
    const struct judge_tile *tiles;
    const struct judge_range *ranges;
    const struct judge_block *blocks;
    const unsigned char *skips; /* NULL: there is no mask of bytes */
    int64_t mask_stride, bias_stride;
    struct judge_row *rows;
    struct judge_value *values; /* NULL: nobody asks */
};

/* Arrays of a block in shared memory, in doubles; W: bc. */
struct judge_room {
    double *q;                              /* [ROWS][D] */
    double *score, *loose, *weight, *error; /* [ROWS][W] */
    double *fixed, *variance, *more;        /* [ROWS][W] */
    double *bins;                           /* [ROWS][JUDGE_BINS] */
    double *row;                            /* [ROWS][ROW_NUMBERS] */
    double *most;                           /* [THREADS / 32] */
    float *size_q;                          /* [ROWS][D] */
    float *w, *e, *f, *v;                   /* [ROWS][W] narrowed; they lie where score and loose were */
    float *tile;                            /* [W][the longer row + 1] of K or V */
};

static __device__ struct judge_room judge_room_at(double *at, const struct judge_numbers *n)
{
    const int D = n->head_dim, W = n->bc;
    struct judge_room x;
    x.q = at, at += ROWS * D;
    x.score = at, at += ROWS * W;
    x.loose = at, at += ROWS * W;
    x.weight = at, at += ROWS * W;
    x.error = at, at += ROWS * W;
    x.fixed = at, at += ROWS * W;
    x.variance = at, at += ROWS * W;
    x.more = at, at += ROWS * W;
    x.bins = at, at += ROWS * JUDGE_BINS;
    x.row = at, at += ROWS * ROW_NUMBERS;
    x.most = at, at += THREADS / 32;
    x.size_q = (float *)at;
    x.tile = x.size_q + ROWS * D;
    x.w = (float *)x.score;
    x.e = x.w + ROWS * W;
    x.f = x.e + ROWS * W;
    x.v = x.f + ROWS * W;
    return x;
}

/* code_is: what each of 256 codes is; read where the type is one of codes. */
static __device__ double judge_load(int type, const float *code_is, const unsigned char *data, int64_t i)
{
    if (type == DTYPE_F32)
        return (double)((const float *)data)[i];
    if (type != DTYPE_F16 && type != DTYPE_BF16)
        return (double)code_is[data[i]];
    const uint16_t code = ((const uint16_t *)data)[i];
    if (type == DTYPE_BF16)
        return (double)format_f32_of((uint32_t)code << 16);
    /* The exponent of a half moved to its place in f32 is short by 112; a subnormal one comes out normal. */
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, magnitude = (uint32_t)(code & 0x7FFFu) << 13;
    const float x = format_f32_of(magnitude) * 0x1p112f;
    return (double)format_f32_of(sign | format_f32_bits(x) | (magnitude >= 0x7C00u << 13 ? 0x7F800000u : 0));
}

static __device__ double judge_round(int type, double x)
{
    return type == DTYPE_F16    ? formula_round(x, 11, -14, 65504)
           : type == DTYPE_BF16 ? formula_round(x, 8, -126, 0x1.FEp127)
                                : (double)(float)x;
}

/* The power of two at or below the largest, which is finite. */
static __device__ double judge_unit(double largest)
{
    const uint64_t exponent = format_f64_bits(largest) >> 52;
    return format_f64_of((exponent ? exponent : 1) << 52);
}

static __device__ double judge_size(double x, double least)
{
    const double size = fabs(x);
    return size > 0 && size < least ? least : size;
}

/* The largest of the threads that share a row. */
static __device__ double judge_row_most(double x)
{
    for (int flip = SHARE / 2; flip > 0; flip /= 2)
        x = fmax(x, __shfl_xor_sync(0xffffffffu, x, flip));
    return x;
}

static __device__ double judge_block_most(double x, double *room)
{
    for (int flip = 16; flip > 0; flip /= 2)
        x = fmax(x, __shfl_xor_sync(0xffffffffu, x, flip));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = x;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++)
        x = fmax(x, room[i]);
    return x;
}

/* As vector_sum() of base/vector.h adds: four at a time, then what is left. */
static __device__ double judge_sum(const double *x, int n)
{
    double sum[4] = {0, 0, 0, 0}, rest = 0;
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += x[i + j];
    for (; i < n; i++)
        rest += x[i];
    double all = 0;
    for (int j = 0; j < 4; j++)
        all += sum[j];
    return all + rest;
}

/* A tile of K or V as f32, which holds every number of the types; the largest magnitude, sizes at least `least`.
   Infinite where one is no finite number. */
static __device__ double judge_load_tile(const struct judge_arrays &work, int type, int operand, int64_t at, int first,
                                         int cols, int dim, double least, const struct judge_room &room)
{
    const int64_t stride = work.stride[operand];
    const unsigned char *data = work.tensors + at;
    double most = 0;
    for (int i = threadIdx.x; i < cols * dim; i += THREADS) {
        const int row = i / dim, d = i % dim;
        const double x = judge_load(type, work.code + 256 * operand, data, (first + row) * stride + d),
                     size = judge_size(x, least);
        room.tile[row * (dim + 1) + d] = (float)x;
        most = size <= DBL_MAX ? fmax(most, size) : (double)INFINITY;
    }
    return judge_block_most(most, room.most);
}

/* What all threads of a row know of it. */
struct judge_state {
    double max, max_bound, frame, sum, sum_error, turned, l, l_variance, squares;
    double unit_q;
    int first, last, keys;
    bool open;
};

/* The bias of a row of the q tile and a key, bias_at(); *size: the sum of the terms' magnitudes. */
static __device__ double judge_bias(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int row, int key, double *size)
{
    double sum = 0;
    *size = 0;
    if (n.slope != 0) {
        sum = n.slope * (n.columns ? (double)key : -fabs((double)(tile.diagonal + row - key)));
        *size = fabs(sum);
    }
    if (work.bias_stride) {
        const double x = (double)((const float *)(work.tensors + tile.bias))[row * work.bias_stride + key];
        sum += x;
        *size += fabs(x);
    }
    return sum;
}

/* What m and P read of a product of row `row` of the q tile and key `key`: local_score(), then local_see_scores(). */
static __device__ void judge_score(const struct judge_numbers &n, const struct judge_arrays &work,
                                   const struct judge_tile &tile, int row, int key, double tiny, double *score,
                                   double *bound)
{
    double x = *score, off = *bound, size = 0;
    const bool biased = n.bias_terms > 0, capped = n.cap > 0;
    const double bias = biased ? judge_bias(n, work, tile, row, key, &size) : 0;
    if (n.scaled) {
        const double by = work.scales[tile.by_row + row] * work.scales[n.by_key + key];
        x *= by;
        off *= by;
    }
    if (capped && !n.cap_later) {
        off *= n.before;
        x = score_capped(n.cap, n.tanh_error, x * n.before, &off) / n.after;
        off = off / n.after;
    }
    if (biased && !n.bias_later)
        x = score_biased(x, bias, size, n.bias_terms, n.after, &off);
    off += tiny;
    if (biased && !n.bias_later && bias == -(double)INFINITY)
        off = 0;
    if ((n.cap_later || n.bias_later) && fabs(x) <= DBL_MAX) {
        x *= n.after;
        off = off * n.after + n.folded_lse * fabs(x);
        if (n.cap_later)
            x = score_capped(n.cap, n.tanh_error, x, &off);
        if (n.bias_later && biased)
            x = score_biased(x, bias, size, n.bias_terms, 1, &off);
    }
    *score = x;
    *bound = off;
}

/* Scores of the tile and their bounds: every thread one column of EACH rows. row: of the q tile, the block's first. */
template <int EACH>
static __device__ void judge_scores(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int row, int key, const struct judge_room &room,
                                    double unit, double tiny, int cols)
{
    enum { WIDE = ROWS * EACH, GROUPS = THREADS / WIDE };
    const int D = n.head_dim, col = threadIdx.x % WIDE, first = threadIdx.x / WIDE;
    const double scale = 1 / unit;
    double sums[EACH];
    float sizes[EACH];
    if (col >= cols)
        return;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        sums[i] = 0, sizes[i] = 0;
    for (int d = 0; d < D; d++) {
        const double k = (double)room.tile[col * (D + 1) + d];
        const float size = magnitude_narrow(judge_size(k, n.score_least), scale);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = (first + i * GROUPS) * D + d;
            sums[i] = fma(room.q[at], k, sums[i]);
            sizes[i] = fmaf(room.size_q[at], size, sizes[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int r = first + i * GROUPS;
        const double grown = n.score_grown * magnitude_grown(unit * room.row[r * ROW_NUMBERS + ROW_W], D);
        double score = n.factor * sums[i], loose = ((double)sizes[i] + magnitude_lost(D)) * grown;
        if (row + r < tile.rows)
            judge_score(n, work, tile, row + r, key + col, tiny, &score, &loose);
        room.score[r * n.bc + col] = score;
        room.loose[r * n.bc + col] = loose;
    }
}

/* What the scales of codes may make of a small number: of the rows of the q tile and the keys of this tile. */
static __device__ double judge_tiny(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int key, int cols)
{
    double row = 1, col = 1;
    if (n.scaled) {
        row = tile.largest_by_row;
        for (int i = 0; i < cols; i++)
            col = fmax(col, work.scales[n.by_key + key + i]);
    }
    return n.score_tiny * fmax(1.0, fabs(n.factor) * (row * col));
}

static __device__ void judge_scores_of(const struct judge_numbers &n, const struct judge_arrays &work,
                                       const struct judge_tile &tile, int row, int key, const struct judge_room &room,
                                       double unit, int cols)
{
    const double tiny = judge_tiny(n, work, tile, key, cols);
    switch (n.bc) {
    case 16:
        return judge_scores<1>(n, work, tile, row, key, room, unit, tiny, cols);
    case 32:
        return judge_scores<2>(n, work, tile, row, key, room, unit, tiny, cols);
    case 64:
        return judge_scores<4>(n, work, tile, row, key, room, unit, tiny, cols);
    default: /* of 128 */
        return judge_scores<8>(n, work, tile, row, key, room, unit, tiny, cols);
    }
}

/* Maximum, weights and the sum of a row over one tile: reference_tile() but for U. */
static __device__ void judge_weights(const struct judge_numbers &n, const struct judge_room &room,
                                     const unsigned char *mask, int kv, int cols, double times, struct judge_state *s)
{
    const int row = threadIdx.x / SHARE, lane = threadIdx.x % SHARE, W = n.bc;
    double *score = room.score + row * W, *loose = room.loose + row * W, *weight = room.weight + row * W,
           *error = room.error + row * W, *fixed = room.fixed + row * W, *variance = room.variance + row * W,
           *more = room.more + row * W, *bins = room.bins + row * JUDGE_BINS, *numbers = room.row + row * ROW_NUMBERS;
    const struct exponential *e = &n.exponential;
    double top = -INFINITY, top_bound = 0, seen = 0;
    for (int col = lane; col < cols; col += SHARE) {
        const int key = kv * W + col;
        if (key < s->first || key >= s->last || (mask && !mask[key])) {
            score[col] = -INFINITY;
            loose[col] = 0;
            continue;
        }
        if (n.bias_terms && score[col] == -(double)INFINITY) /* a bias hides it */
            continue;
        s->open |= !(fabs(score[col]) <= DBL_MAX);
        seen++;
        top = fmax(top, score[col]);
        top_bound = fmax(top_bound, loose[col]);
    }
    for (int flip = SHARE / 2; flip > 0; flip /= 2)
        seen += __shfl_xor_sync(0xffffffffu, seen, flip);
    const double max_prev = s->max, frame_prev = s->frame;
    s->max = fmax(s->max, judge_row_most(top) * n.natural);
    s->max_bound = fmax(s->max_bound, judge_row_most(top_bound) * n.natural);
    s->frame = fmax(s->max, n.start);
    const double shift = s->max == -INFINITY ? 1 : exp_lane(fmax(s->max - s->frame, -FRAME_ABOVE));
    double decay, decay_error;
    step_decay(e, max_prev, s->max, frame_prev, s->frame, &decay, &decay_error);
    const double folded = exponential_folds(e, s->frame) + e->offset;
    const double p_unit = 1 / (shift * n.p_factor);
    struct weight_terms terms;
    terms.natural = n.natural;
    terms.top = s->max;
    terms.frame = s->frame;
    terms.frame_loose = 0;
    terms.folded = folded;
    terms.factor = 1;
    terms.limit = exponential_most(e, folded) / shift + 1;
    terms.tiny = fmax(1.0, 1 / n.p_factor) * BOUND_TINY / shift;
    terms.convert = n.convert;
    struct likely_terms likely;
    likely.natural = fabs(n.natural);
    likely.random = n.random;
    likely.unit = n.p_unit;
    likely.half_tiny = n.p_half_tiny * p_unit;
    likely.l_unit = n.l_unit;
    likely.l_half_tiny = n.l_half_tiny * p_unit;
    __syncwarp();
    for (int col = lane; col < cols; col += SHARE) {
        double off;
        const double x = score[col], w = weight_exp(e, &terms, x, loose[col], &off);
        const double err = weight_error(&terms, x, w, off);
        weight[col] = w;
        error[col] = err;
        s->open |= !(w <= DBL_MAX) || !(err <= DBL_MAX);
        if (n.likely) {
            const struct likely_weight one = likely_weight(&likely, w, err, loose[col]);
            fixed[col] = one.fixed;
            variance[col] = one.variance;
            score[col] = one.less;
            loose[col] = one.squares;
            more[col] = one.l_more;
        }
    }
    __syncwarp();
    /* Sums in the CPU's order, each by one thread. */
    double mine = 0;
    if (lane < 2) {
        mine = judge_sum(lane == 0 ? weight : error, cols);
    } else if (lane < 5 && n.likely) {
        const double *of = lane == 2 ? score : lane == 3 ? loose : more;
        for (int i = 0; i < cols; i++)
            mine += of[i];
    }
    const int base = threadIdx.x % 32 / SHARE * SHARE;
    const double sum_w = __shfl_sync(0xffffffffu, mine, base), sum_e = __shfl_sync(0xffffffffu, mine, base + 1),
                 less = __shfl_sync(0xffffffffu, mine, base + 2), squares = __shfl_sync(0xffffffffu, mine, base + 3),
                 l_more = __shfl_sync(0xffffffffu, mine, base + 4);
    const double most_decay = decay + decay_error;
    double sum = decay * s->sum, moved = decay_error * s->sum;
    sum += sum_w;
    moved += sum_e;
    double err = most_decay * s->sum_error + moved + n.l_unit * (sum_w + sum_e) + n.l_half_tiny * p_unit * seen;
    if (n.likely) {
        const double reach = sum + err;
        if (most_decay != 1)
            s->squares *= most_decay * most_decay;
        if (lane == 0) {
            const double per_unit = p_unit > 0 ? 1 / p_unit : 0;
            for (int i = 0; most_decay != 1 && i < JUDGE_BINS; i++)
                bins[i] *= most_decay;
            for (int i = 0; i < cols; i++) {
                const double w = weight[i], p = w * per_unit;
                if (!(w > 0) || !(fabs(p) <= DBL_MAX))
                    continue;
                bins[likely_bin(p, n.bin_bits, n.bin_least, JUDGE_BINS)] += w;
                s->squares += w * w;
            }
        }
        s->squares = __shfl_sync(0xffffffffu, s->squares, base);
        s->l = most_decay * s->l + moved - less + l_more;
        s->l_variance =
            most_decay * most_decay * s->l_variance + squares + n.roundings * BOUND_U * BOUND_U * reach * reach;
    }
    err += n.l_error * (sum + err);
    s->sum = sum;
    s->sum_error = err;
    s->turned += exponential_error(e, 0, exponential_folds(e, s->frame));
    /* What P V takes of the weights, and what tensor cores lose of small ones. */
    const bool narrow = n.u_least > BOUND_TINY;
    const double least_weight = n.u_least * p_unit;
    double most[4] = {0, 0, 0, 0};
    for (int col = lane; col < cols; col += SHARE) {
        const double w = weight[col];
        double off = n.p_unit > 0 ? weight_rounded(w, error[col], n.p_unit, n.p_half_tiny * p_unit) : error[col];
        if (narrow && w > 0 && w < least_weight)
            off += n.u_error * least_weight;
        error[col] = off;
        most[0] = fmax(most[0], w);
        most[1] = fmax(most[1], off);
        if (n.likely) {
            most[2] = fmax(most[2], fabs(fixed[col]));
            most[3] = fmax(most[3], variance[col]);
        }
    }
    double unit[4];
    for (int i = 0; i < 4; i++)
        unit[i] = judge_unit(judge_row_most(most[i]));
    __syncwarp();
    if (lane == 0) {
        numbers[ROW_DECAY] = decay;
        numbers[ROW_DECAY_ERROR] = decay_error;
        numbers[ROW_LIKELY_DECAY] = most_decay;
        numbers[ROW_LOST] = narrow ? n.u_error * (n.u_least * s->sum + cols * least_weight) * times : 0;
        for (int i = 0; i < 4; i++)
            numbers[ROW_W + i] = unit[i];
    }
    __syncthreads(); /* the narrowed ones lie where other rows' scores were */
    for (int col = lane; col < cols; col += SHARE) {
        room.w[row * W + col] = magnitude_narrow(weight[col], 1 / unit[0]);
        room.e[row * W + col] = magnitude_narrow(error[col], 1 / unit[1]);
        if (n.likely) {
            room.f[row * W + col] = magnitude_narrow(fixed[col], 1 / unit[2]);
            room.v[row * W + col] = magnitude_narrow(variance[col], 1 / unit[3]);
        }
    }
    __syncthreads();
}

/* An element of U as far as the tiles have come. */
struct judge_element {
    double sum, error;
    struct likely_value likely;
};

/* P V of one column and EACH rows, from `row` on in steps, added to what there was. */
template <int EACH>
static __device__ void judge_values(const struct judge_numbers &n, const struct judge_room &room, int d, int row,
                                    int step, int cols, double times, double unit_v, double unit_vv,
                                    struct judge_element *u, double *top)
{
    const int W = n.bc, dim = n.head_dim_v;
    const double scale = 1 / unit_v, scale_vv = 1 / unit_vv;
    double product[EACH];
    float w[EACH], e[EACH], f[EACH], v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
        product[i] = 0, w[i] = e[i] = f[i] = v[i] = 0;
    for (int k = 0; k < cols; k++) {
        const double x = (double)room.tile[k * (dim + 1) + d];
        const float size = magnitude_narrow(x, scale);
        const float square = n.likely ? magnitude_narrow(x * x, scale_vv) : 0;
        *top = fmax(*top, fabs(x) * times);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = (row + i * step) * W + k;
            product[i] = fma(room.weight[at], x, product[i]);
            w[i] = fmaf(room.w[at], size, w[i]);
            e[i] = fmaf(room.e[at], size, e[i]);
            if (n.likely) {
                f[i] = fmaf(room.f[at], size, f[i]);
                v[i] = fmaf(room.v[at], square, v[i]);
            }
        }
    }
    const double lost = magnitude_lost(cols);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const double *numbers = room.row + (row + i * step) * ROW_NUMBERS;
        const struct sum_terms terms = {numbers[ROW_DECAY], numbers[ROW_DECAY_ERROR], n.u_error, numbers[ROW_LOST]};
        const double size = ((double)w[i] + lost) * (magnitude_grown(unit_v * numbers[ROW_W], cols) * times);
        const double of_tile = times * product[i];
        double moved, reach;
        sum_element(&terms, of_tile, size,
                    ((double)e[i] + lost) * (magnitude_grown(unit_v * numbers[ROW_E], cols) * times), 0, &u[i].sum,
                    &u[i].error, &moved, &reach);
        if (n.likely)
            likely_value(numbers[ROW_LIKELY_DECAY], &n.share, of_tile, size, moved, reach,
                         ((double)f[i] + lost) * (magnitude_grown(unit_v * numbers[ROW_F], cols) * times),
                         ((double)v[i] + lost) * (magnitude_grown(unit_vv * numbers[ROW_V], cols) * (times * times)),
                         &u[i].likely);
    }
}

/* error / bound, as far as O's type has such a number; more than 1: it is beyond its bound. Negative: nothing follows.
 */
static __device__ double judge_ratio(int type, double got, double want, double bound)
{
    const double off = fabs(got - want);
    if (!(fabs(want) <= DBL_MAX)) /* a NaN that is wanted is no mistake */
        return -1;
    if (got != got)
        return (double)INFINITY;
    if (!(fabs(got) <= DBL_MAX) || !(bound <= FLT_MAX))
        return -1;
    if (off <= bound)
        return bound > 0 ? off / bound : 0;
    double reach = bound;
    bool within = false;
    if (type != DTYPE_F32) {
        const double low = judge_round(type, want - bound), high = judge_round(type, want + bound);
        reach = fmax(bound, fmax(fabs(low - want), fabs(high - want)));
        within = got >= low && got <= high;
    }
    const double ratio = reach > 0 ? off / reach : (double)INFINITY;
    return within ? fmin(ratio, 1.0) : fmax(ratio, 1 + (double)FLT_EPSILON);
}

/* LSE of a row, and what its O stands on. */
static __device__ void judge_end_row(const struct judge_numbers &n, const struct judge_arrays &work,
                                     const struct judge_tile &tile, int row, int keys, const struct judge_room &room,
                                     const struct judge_state &s, struct judge_row *out)
{
    const int local = row % ROWS;
    double *numbers = room.row + local * ROW_NUMBERS;
    const double tiles = tile.visits, alpha = s.turned + n.alpha_arguments;
    double sum = s.sum, max = s.max, kept = 1;
    double error = error_turned(s.sum_error, tiles * n.l_error + alpha, sum);
    double likely = 0, together = 1, l = 0;
    double l_variance = s.l_variance;
    if (n.likely) {
        l = error_turned(s.l, alpha, sum);
        l_variance += tiles * n.roundings * BOUND_U * BOUND_U * sum * sum;
    }
    if (n.sink_last && fabs(max) <= DBL_MAX) {
        const struct sunk sunk = sink_into(&n.exponential, n.sink, max, s.frame, 0);
        const double with = sunk.kept * sum + sunk.weight;
        l = sunk.kept * l + sink_error(&sunk, sum, 0, with);
        l_variance *= sunk.kept * sunk.kept;
        error = sink_error(&sunk, sum, error, with);
        sum = with;
        max = sunk.top;
        kept = sunk.kept;
    }
    const double joined = n.lanes > 1 ? bound_gamma(n.lanes) * sum : 0;
    error += joined;
    likely = error;
    if (n.likely) {
        together = likely_together(room.bins + local * JUDGE_BINS, JUDGE_BINS, s.squares);
        likely = fmin(error, likely_most(together, l, l_variance) + joined);
    }
    numbers[ROW_SUM] = sum;
    numbers[ROW_ERROR] = error;
    numbers[ROW_LIKELY] = likely;
    numbers[ROW_TOGETHER] = together;
    numbers[ROW_ALPHA] = alpha;
    numbers[ROW_KEPT] = kept;
    out->noise.of_l = l_variance / (sum * sum);
    out->noise.shared = VARIANCE_OF_RANGE * together * n.p_unit * n.p_unit * s.squares / (sum * sum);
    const double ln_sum = log(sum), natural_lse = max + ln_sum;
    const double own = bound_lse(fabs(s.frame) + fabs(n.ln_factor), max - s.frame + ln_sum + n.ln_factor, natural_lse) +
                       (n.folded_lse > 0 ? n.folded_lse * fabs(s.frame) : 0);
    const double widest = s.max_bound + log((double)(keys + (n.has_sink != 0))), want = natural_lse * n.lse_unit;
    double bound = (own + fmin(sum > likely ? -log1p(-likely / sum) : (double)INFINITY, widest)) * n.lse_unit;
    if (n.lse_unit != 1)
        bound += bound_convert(want);
    if (work.values) {
        struct judge_value *value = work.values + tile.values + (int64_t)tile.rows * n.head_dim_v + row;
        value->want = want;
        value->bound = bound;
    }
    if (!n.has_lse)
        return;
    const double got = judge_load(n.lse_type, NULL, work.tensors + tile.lse, row);
    const double ratio = judge_ratio(n.lse_type, got, want, bound);
    out->open |= ratio < 0;
    out->bad_lse = ratio > 1;
    out->worst_lse = fmax(ratio, 0.0);
}

/* O of one element. */
static __device__ struct judge_value judge_end_element(const struct judge_numbers &n, const double *numbers,
                                                       double tiles, double top, struct judge_element *u)
{
    const double alpha = numbers[ROW_ALPHA], sum = numbers[ROW_SUM], likely = numbers[ROW_LIKELY];
    const double kept = numbers[ROW_KEPT], turned = error_turned(u->error, tiles * n.u_error + alpha, fabs(u->sum));
    if (n.likely) {
        const double reach = fabs(u->sum) + turned, fixed = tiles * n.share.systematic + alpha;
        u->likely.u = kept * error_turned(u->likely.u, fixed, reach);
        u->likely.variance = (u->likely.variance + tiles * n.share.variance * reach * reach) * (kept * kept);
        u->likely.cut *= kept;
    }
    const double error = kept * turned, want = kept * u->sum / sum;
    double moved = output_moved(want, sum, numbers[ROW_ERROR], error);
    if (n.likely && sum > likely)
        moved =
            fmin(moved, output_moved(want, sum, likely,
                                     fmin(error, likely_most(numbers[ROW_TOGETHER], u->likely.u, u->likely.variance))));
    struct judge_value value;
    value.want = want * n.o_times;
    value.bound = output_scaled(want, bound_divide(want) + fmin(moved, fabs(want) + 2 * top), n.o_roundings, n.o_times);
    return value;
}

/* A block's rows. W columns of U to a pass of its threads, PASSES of them. */
template <int W, int PASSES> __global__ void judge_rows(const struct judge_arrays work)
{
    enum { GROUPS = THREADS / W, EACH = ROWS / GROUPS };
    extern __shared__ double judge_shared[];
    const struct judge_block block = work.blocks[blockIdx.x];
    const struct judge_tile tile = work.tiles[block.tile];
    const struct judge_numbers &n = work.numbers[tile.numbers];
    const struct judge_room room = judge_room_at(judge_shared, &n);
    const int rows = tile.rows - block.row < ROWS ? tile.rows - block.row : ROWS, D = n.head_dim;
    const int row = threadIdx.x / SHARE, lane = threadIdx.x % SHARE;
    const int column = threadIdx.x % W, group = threadIdx.x / W;
    struct judge_state s = {};
    s.max = n.max_begin;
    s.max_bound = n.bound_begin;
    s.frame = n.start;
    s.sum = n.l_begin;
    s.sum_error = n.l_error_begin;
    if (row < rows) {
        const struct judge_range range = work.ranges[tile.row + block.row + row];
        s.first = range.first;
        s.last = range.last;
        s.keys = range.keys;
    }
    const unsigned char *mask =
        work.skips && row < rows ? work.tensors + tile.mask + (block.row + row) * work.mask_stride : NULL;
    double most = 0;
    for (int d = lane; d < D; d += SHARE) {
        const double x =
            row < rows ? judge_load(n.type[0], work.code, work.tensors + tile.q, (block.row + row) * work.stride[0] + d)
                       : 0;
        const double size = judge_size(x, n.score_least);
        room.q[row * D + d] = x;
        s.open |= !(size <= DBL_MAX);
        most = fmax(most, size);
    }
    s.unit_q = judge_unit(judge_row_most(most));
    for (int d = lane; d < D; d += SHARE)
        room.size_q[row * D + d] = magnitude_narrow(judge_size(room.q[row * D + d], n.score_least), 1 / s.unit_q);
    for (int i = threadIdx.x; i < ROWS * JUDGE_BINS; i += THREADS)
        room.bins[i] = 0;
    struct judge_element u[PASSES][EACH] = {};
    double top[PASSES] = {};
    for (int kv = tile.first; kv <= tile.last; kv++) {
        if (work.skips && work.skips[tile.skips + kv - tile.first])
            continue;
        const int cols = tile.keys - kv * n.bc < n.bc ? tile.keys - kv * n.bc : n.bc;
        __syncthreads();
        if (lane == 0)
            room.row[row * ROW_NUMBERS + ROW_W] = s.unit_q;
        const double most_k = judge_load_tile(work, n.type[1], 1, tile.k, kv * n.bc, cols, D, n.score_least, room);
        const double times = n.scaled_v ? work.scales[n.by_tile + kv] : 1;
        judge_scores_of(n, work, tile, block.row, kv * n.bc, room, judge_unit(most_k), cols);
        __syncthreads();
        const double most_v = judge_load_tile(work, n.type[2], 2, tile.v, kv * n.bc, cols, n.head_dim_v, 0, room);
        s.open |= !(most_k <= DBL_MAX) || !(most_v <= DBL_MAX);
        judge_weights(n, room, mask, kv, cols, times, &s);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (pass * W + column < n.head_dim_v)
                judge_values<EACH>(n, room, pass * W + column, group, GROUPS, cols, times, judge_unit(most_v),
                                   judge_unit(most_v * most_v), u[pass], &top[pass]);
    }
    struct judge_row out = {};
    const int place = block.row + row;
    if (row < rows && lane == 0) {
        judge_end_row(n, work, tile, place, s.keys, room, s, &out);
        out.judged = 1;
    }
    for (int flip = SHARE / 2; flip > 0; flip /= 2)
        s.open |= __shfl_xor_sync(0xffffffffu, (int)s.open, flip) != 0;
    __syncthreads();
    /* Element by element, and then each row by one thread in the CPU's order. What the tiles needed is room for it. */
    double *want = judge_shared, *variance = want + ROWS * W, *cut = variance + ROWS * W;
    const double tiles = tile.visits;
    double numbers[EACH][ROW_NUMBERS];
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < ROW_NUMBERS; j++)
            numbers[i][j] = room.row[(group + i * GROUPS) * ROW_NUMBERS + j];
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) {
        __syncthreads();
        double *bound = cut + ROWS * W;
        for (int i = 0; i < EACH; i++) {
            const int d = pass * W + column, r = group + i * GROUPS;
            if (d >= n.head_dim_v)
                continue;
            const struct judge_value value = judge_end_element(n, numbers[i], tiles, top[pass], &u[pass][i]);
            want[r * W + column] = value.want;
            bound[r * W + column] = value.bound;
            if (n.likely) {
                variance[r * W + column] =
                    likely_variance(numbers[i][ROW_TOGETHER], &u[pass][i].likely, numbers[i][ROW_SUM], value.want,
                                    n.o_times, n.o_unit, n.o_half_tiny);
                cut[r * W + column] = u[pass][i].likely.cut / numbers[i][ROW_SUM] * fabs(n.o_times);
            }
        }
        __syncthreads();
        const int end = n.head_dim_v - pass * W < W ? n.head_dim_v - pass * W : W;
        for (int i = 0; row < rows && lane == 0 && i < end; i++) {
            const int d = pass * W + i, at = row * W + i;
            const double got = judge_load(n.type[3], NULL, work.tensors + tile.o, place * work.stride[3] + d);
            const double ratio = judge_ratio(n.type[3], got, want[at], bound[at]);
            out.open |= ratio < 0;
            out.bad_o += ratio > 1;
            out.worst_o = fmax(out.worst_o, ratio);
            if (n.likely)
                noise_add(&out.noise, got, want[at], judge_round(n.type[3], want[at]), variance[at], cut[at]);
            if (work.values) {
                struct judge_value *value = work.values + tile.values + (int64_t)place * n.head_dim_v + d;
                value->want = want[at];
                value->bound = bound[at];
            }
        }
    }
    if (row < rows && lane == 0) {
        out.open |= s.open;
        work.rows[tile.row + place] = out;
    }
}

#endif
