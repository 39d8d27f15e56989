/* The reference of O and LSE on a GPU: oracle/reference.c, tile by tile, 16 rows to a block, one to each warp where
   rows are meant. Sums are taken in its order, so that every number has the bits that the CPU gives it. A block holds
   its rows' Q, one tile of K and then of V, and the weights of the tile in shared memory; what U has come to is in
   registers, where a tensor core leaves it. */
#ifndef JUDGE_ROWS_CUH
#define JUDGE_ROWS_CUH

#include "engine/judge/merge.cuh"

/* Maximum, weights and the sum of a row over one tile: reference_tile() but for U. */
static __device__ void judge_weights(const struct judge_numbers &n, const struct judge_room &room,
                                     const unsigned char *mask, int kv, int cols, double times, struct judge_state *s)
{
    const int row = threadIdx.x / LANES, lane = threadIdx.x % LANES, W = n.bc;
    double *score = room.score + row * W, *loose = room.loose + row * W, *weight = room.weight + row * room.pitch_p,
           *error = room.error + row * W, *fixed = room.fixed + row * W, *variance = room.variance + row * W,
           *more = room.more + row * W, *bins = room.bins + row * JUDGE_BINS, *numbers = room.row + row * ROW_NUMBERS;
    const struct exponential *e = &n.exponential;
    double top = -INFINITY, top_bound = 0, seen = 0;
    for (int col = lane; col < cols; col += LANES) {
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
    for (int flip = LANES / 2; flip > 0; flip /= 2)
        seen += __shfl_xor_sync(0xffffffffu, seen, flip);
    const double max_prev = s->max, frame_prev = s->frame;
    s->max = fmax(s->max, judge_row_most<LANES>(top) * n.natural);
    s->max_bound = fmax(s->max_bound, judge_row_most<LANES>(top_bound) * n.natural);
    s->frame = fmax(s->max, s->start);
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
    for (int col = lane; col < cols; col += LANES) {
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
    const double most_decay = decay + decay_error, per_unit = p_unit > 0 ? 1 / p_unit : 0;
    __syncwarp();
    if (n.likely)
        judge_deal_weights<LANES>(n, true, weight, cols, per_unit, most_decay, bins);
    /* Sums in the CPU's order, each by one thread. */
    double mine = 0;
    if (lane < 2) {
        mine = judge_sum(lane == 0 ? weight : error, cols);
    } else if (lane < 5 && n.likely) {
        const double *of = lane == 2 ? score : lane == 3 ? loose : more;
        for (int i = 0; i < cols; i++)
            mine += of[i];
    } else if (lane == 5 && n.likely) {
        mine = judge_squares(weight, cols, per_unit, most_decay, s->squares);
    }
    const double sum_w = __shfl_sync(0xffffffffu, mine, 0), sum_e = __shfl_sync(0xffffffffu, mine, 1),
                 less = __shfl_sync(0xffffffffu, mine, 2), squares = __shfl_sync(0xffffffffu, mine, 3),
                 l_more = __shfl_sync(0xffffffffu, mine, 4), of_weights = __shfl_sync(0xffffffffu, mine, 5);
    double sum = decay * s->sum, moved = decay_error * s->sum;
    sum += sum_w;
    moved += sum_e;
    double err = most_decay * s->sum_error + moved + n.l_unit * (sum_w + sum_e) + n.l_half_tiny * p_unit * seen;
    if (n.likely) {
        const double reach = sum + err;
        s->squares = of_weights;
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
    for (int col = lane; col < cols; col += LANES) {
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
        unit[i] = judge_unit(judge_row_most<LANES>(most[i]));
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
    for (int col = lane; col < judge_whole(cols); col += LANES) {
        const bool there = col < cols;
        if (there) {
            float4 x = {magnitude_narrow(weight[col], 1 / unit[0]), magnitude_narrow(error[col], 1 / unit[1]), 0, 0};
            if (n.likely) {
                x.z = magnitude_narrow(fixed[col], 1 / unit[2]);
                x.w = magnitude_narrow(variance[col], 1 / unit[3]);
            }
            *(float4 *)(void *)(room.narrow + (row * (W + 1) + col) * 4) = x;
        } else {
            weight[col] = 0;
        }
    }
    __syncthreads();
}

/* What 1 of the narrowed magnitudes of V stands for, and of what they have beyond V. */
struct judge_units {
    double v, more;
};

/* Sums over a tile's keys of a lane's four elements of U, as judge_multiply() has them. */
struct judge_sums {
    double product[4];
    float w[4], e[4], f[4], v[4], more[4];
};

/* P V of eight columns and all rows, added to what there was. d: the first column. */
template <bool MORE>
static __device__ void judge_values(const struct judge_numbers &n, const double *scales, const struct judge_room &room,
                                    int d, int key, int cols, double times, const struct judge_units &units,
                                    struct judge_element *u, double *top)
{
    const int W = n.bc, upper = threadIdx.x % LANES / 4, pitch = room.pitch_v;
    const float *values = room.tile + d, *mine = values + threadIdx.x % 4 * 2;
    const float *rows[2] = {room.narrow + upper * (W + 1) * 4, room.narrow + (upper + 8) * (W + 1) * 4};
    const float scale = (float)(1 / units.v);
    const double unit_vv = units.v * units.v, scale_vv = 1 / unit_vv, scale_more = MORE ? 1 / units.more : 0;
    struct judge_sums sums = {};
    float most_f32[2] = {};
    const auto taken = [&](int k, int column) {
        const bool there = !MORE || (k < cols && d + column < n.head_dim_v);
        return !there ? 0.0
               : MORE ? judge_taken(scales, n.input[2], values + k * pitch - d, key + k, d + column)
                      : (double)values[k * pitch + column];
    };
    judge_multiply(room.weight, room.pitch_p, judge_whole(cols), taken, sums.product);
#pragma unroll 4
    for (int k = 0; k < cols; k++) {
        const float2 value = *(const float2 *)(const void *)(mine + k * pitch);
        const float4 of[2] = {judge_four(rows[0] + k * 4), judge_four(rows[1] + k * 4)};
        float size[2], square[2], beyond[2] = {};
#pragma unroll
        for (int j = 0; j < 2; j++) {
            if (MORE) {
                const double x = taken(k, threadIdx.x % 4 * 2 + j),
                             most = judge_most(n.input[2], values + k * pitch - d, d + threadIdx.x % 4 * 2 + j, x);
                size[j] = magnitude_narrow(most, 1 / units.v);
                square[j] = magnitude_narrow(most * most, scale_vv);
                beyond[j] = magnitude_narrow(most - fabs(x), scale_more);
                top[j] = fmax(top[j], most * times);
            } else {
                const float x = fabsf(j ? value.y : value.x);
                size[j] = x * scale;
                square[j] = size[j] * size[j];
                most_f32[j] = fmaxf(most_f32[j], x);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sums.w[i] = fmaf(of[i / 2].x, size[i % 2], sums.w[i]);
            sums.e[i] = fmaf(of[i / 2].y, size[i % 2], sums.e[i]);
            sums.f[i] = fmaf(of[i / 2].z, size[i % 2], sums.f[i]);
            sums.v[i] = fmaf(of[i / 2].w, square[i % 2], sums.v[i]);
            if (MORE)
                sums.more[i] = fmaf(of[i / 2].x, beyond[i % 2], sums.more[i]);
        }
    }
    for (int j = 0; !MORE && j < 2; j++)
        top[j] = fmax(top[j], (double)most_f32[j] * times);
    /* Units are powers of two: of each it is the same digits. */
    const double lost = magnitude_lost(cols), grown = magnitude_grown(1, cols), of_v = grown * times * units.v;
    const double of_more = times * BOUND_SLACK * grown * units.more, of_vv = grown * (times * times) * unit_vv;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const double *numbers = room.row + (upper + i / 2 * 8) * ROW_NUMBERS;
        const struct sum_terms terms = {numbers[ROW_DECAY], numbers[ROW_DECAY_ERROR], n.u_error, numbers[ROW_LOST]};
        const double of_tile = times * sums.product[i], size = ((double)sums.w[i] + lost) * (of_v * numbers[ROW_W]);
        const double more = MORE && n.input[2].lossy ? ((double)sums.more[i] + lost) * (of_more * numbers[ROW_W]) : 0;
        double moved, reach;
        sum_element(&terms, of_tile, size, ((double)sums.e[i] + lost) * (of_v * numbers[ROW_E]), more, &u[i].sum,
                    &u[i].error, &moved, &reach);
        if (n.likely)
            likely_value(numbers[ROW_LIKELY_DECAY], &n.share, of_tile, size, moved, reach,
                         ((double)sums.f[i] + lost) * (of_v * numbers[ROW_F]),
                         ((double)sums.v[i] + lost) * (of_vv * numbers[ROW_V]), &u[i].likely);
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
                                     const struct judge_state &s, double turned, struct judge_row *out)
{
    const int local = row % ROWS;
    double *numbers = room.row + local * ROW_NUMBERS;
    double sum = s.sum, max = s.max, kept = 1, error = s.sum_error;
    double likely = 0, together = 1, l = s.l, l_variance = s.l_variance;
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
    numbers[ROW_ALPHA] = turned;
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

/* O of one element, which has been turned. */
static __device__ struct judge_value judge_end_element(const struct judge_numbers &n, const double *numbers, double top,
                                                       struct judge_element *u)
{
    const double sum = numbers[ROW_SUM], likely = numbers[ROW_LIKELY], kept = numbers[ROW_KEPT];
    if (n.likely) {
        u->likely.u *= kept;
        u->likely.variance *= kept * kept;
        u->likely.cut *= kept;
    }
    const double error = kept * u->error, want = kept * u->sum / sum;
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

/* Rows of Q, and their magnitudes. */
static __device__ void judge_load_q(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int first, int rows, const struct judge_room &room,
                                    struct judge_state *s)
{
    const int D = n.head_dim, row = threadIdx.x / LANES, lane = threadIdx.x % LANES, pitch = room.pitch_q;
    double *q = room.q + row * pitch, most = 0;
    for (int d = lane; d < judge_whole(D); d += LANES)
        q[d] = row < rows && d < D
                   ? judge_load(n.type[0], work.code, work.input[0] + tile.q, (first + row) * work.stride[0] + d)
                   : 0;
    __syncwarp();
    for (int d = lane; room.most_q && d < D; d += LANES) {
        const double x = row < rows ? judge_taken(work.scales, n.input[0], q, tile.first_row + first + row, d) : 0;
        room.most_q[row * pitch + d] = judge_most(n.input[0], q, d, x);
    }
    __syncwarp();
    for (int d = lane; d < D; d += LANES) {
        if (n.input[0].descaled && row < rows)
            q[d] = judge_taken(work.scales, n.input[0], q, tile.first_row + first + row, d);
        const double size = judge_size(room.most_q ? room.most_q[row * pitch + d] : q[d], n.score_least);
        s->open |= !(size <= DBL_MAX);
        most = fmax(most, size);
    }
    s->unit_q = judge_unit(judge_row_most<LANES>(most));
    for (int d = lane; d < judge_whole(D); d += LANES)
        room.size_q[row * pitch + d] =
            d < D ? magnitude_narrow(judge_size(room.most_q ? room.most_q[row * pitch + d] : q[d], n.score_least),
                                     1 / s->unit_q)
                  : 0;
}

/* A block's rows. A warp has eight columns of U, PASSES times, JUDGE_COLUMNS apart. MORE: judge_numbers.more. */
template <int PASSES, bool MORE>
__global__ void __launch_bounds__(JUDGE_ROW_THREADS) judge_rows(const struct judge_arrays work)
{
    enum { WARPS = JUDGE_ROW_THREADS / LANES, EACH = 4, W = JUDGE_COLUMNS };
    extern __shared__ double judge_shared[];
    const struct judge_block block = work.blocks[blockIdx.x];
    const struct judge_tile tile = work.tiles[block.tile];
    const struct judge_numbers &n = work.numbers[tile.numbers];
    const struct judge_room room = judge_room_at(judge_shared, &n);
    const int rows = tile.rows - block.row < ROWS ? tile.rows - block.row : ROWS, D = n.head_dim;
    const int row = threadIdx.x / LANES, lane = threadIdx.x % LANES, whole = judge_whole(D);
    const int first = row * 8; /* of a pass's columns */
    const auto row_of = [lane](int i) { return lane / 4 + i / 2 * 8; };
    const auto column_of = [lane, first](int i) { return first + lane % 4 * 2 + i % 2; };
    struct judge_state s = {};
    judge_split_begin(n, true, &s);
    if (row < rows) {
        const struct judge_range range = work.ranges[tile.row + block.row + row];
        s.first = range.first;
        s.last = range.last;
        s.keys = range.keys;
    }
    const unsigned char *mask =
        work.skips && row < rows ? work.tensors + tile.mask + (block.row + row) * work.mask_stride : NULL;
    judge_load_q(n, work, tile, block.row, rows, room, &s);
    for (int i = threadIdx.x; n.likely && i < ROWS * JUDGE_BINS; i += JUDGE_ROW_THREADS)
        room.bins[i] = 0;
    struct judge_element u[PASSES][EACH] = {};
    double top[PASSES][2] = {};
    struct judge_merged merged;
    struct merged_value parts[MORE ? PASSES : 1][MORE ? EACH : 1] = {};
    double tiles = 0; /* of this split */
    const bool splits = MORE && n.splits > 0;
    const int visits = splits ? tile.visits : tile.last - tile.first + 1;
    judge_merge_begin(&merged);
    /* The state so far joins those of the splits before. */
    const auto merge = [&]() {
        judge_turn_row(n, tiles, &s);
        judge_merge_row(n, n.likely ? likely_together(room.bins + row * JUDGE_BINS, JUDGE_BINS, s.squares) : 1, &s,
                        &merged, room.row + row * ROW_NUMBERS);
        __syncthreads();
        for (int pass = 0; pass < PASSES; pass++)
            for (int i = 0; i < EACH; i++)
                judge_merge_element(n, tiles, room.row + row_of(i) * ROW_NUMBERS, &u[pass][i],
                                    &parts[MORE ? pass : 0][MORE ? i : 0]);
        __syncthreads();
    };
    for (int visit = 0; visit < visits; visit++) {
        const int at = splits ? work.orders[tile.order + visit] : tile.first + visit, kv = at & ~JUDGE_BEGINS;
        if (!splits && work.skips && work.skips[tile.skips + kv - tile.first])
            continue;
        if (splits && at != kv) {
            merge();
            judge_split_begin(n, false, &s);
            for (int i = lane; n.likely && i < JUDGE_BINS; i += LANES)
                room.bins[row * JUDGE_BINS + i] = 0;
            tiles = 0;
        }
        tiles++;
        const int cols = tile.keys - kv * n.bc < n.bc ? tile.keys - kv * n.bc : n.bc;
        __syncthreads();
        if (lane == 0)
            room.row[row * ROW_NUMBERS + ROW_W] = s.unit_q;
        const struct judge_tile_room keys = {room.tile, room.pitch_q, cols, whole, room.most},
                                     values = {room.tile, room.pitch_v, judge_whole(cols), n.head_dim_v, room.most};
        double most_k = judge_load_tile<WARPS>(work, n.type[1], 1, tile.k, kv * n.bc, cols, D, n.score_least, keys),
               beyond = 0;
        if (MORE && n.input[1].lossy)
            most_k = judge_most_of_tile(n, work, 1, kv * n.bc, cols, D, n.score_least, keys, &beyond);
        const double times = n.scaled_v ? work.scales[n.by_tile + kv] : 1;
        judge_scores<MORE>(n, work, tile, block.row, kv * n.bc, room, judge_narrow_unit(most_k), cols);
        __syncthreads();
        double most_v = judge_load_tile<WARPS>(work, n.type[2], 2, tile.v, kv * n.bc, cols, n.head_dim_v, 0, values);
        beyond = 0;
        if (MORE && n.input[2].lossy)
            most_v = judge_most_of_tile(n, work, 2, kv * n.bc, cols, n.head_dim_v, 0, values, &beyond);
        s.open |= !(most_k <= DBL_MAX) || !(most_v <= DBL_MAX);
        judge_weights(n, room, mask, kv, cols, times, &s);
        const struct judge_units units = {judge_narrow_unit(most_v), judge_unit(beyond)};
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (pass * W + first < n.head_dim_v)
                judge_values<MORE>(n, work.scales, room, pass * W + first, kv * n.bc, cols, times, units, u[pass],
                                   top[pass]);
    }
    const double turned = s.turned + n.alpha_arguments;
    double common = 0;
    if (splits) {
        merge();
        common = judge_merge_end(n, &merged, &s);
    } else {
        judge_turn_row(n, tiles, &s);
    }
    struct judge_row out = {};
    const int place = block.row + row;
    if (row < rows && lane == 0) {
        judge_end_row(n, work, tile, place, s.keys, room, s, turned, &out);
        room.row[row * ROW_NUMBERS + ROW_SHARE] = common;
        out.judged = 1;
    }
    s.open = __any_sync(0xffffffffu, s.open) != 0;
    __syncthreads();
    /* Element by element, and then each row by one thread in the CPU's order. What the tiles needed is room for it. */
    double *want = judge_shared, *variance = want + ROWS * W, *cut = variance + ROWS * W;
    double numbers[EACH][ROW_NUMBERS];
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < ROW_NUMBERS; j++)
            numbers[i][j] = room.row[row_of(i) * ROW_NUMBERS + j];
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) {
        __syncthreads();
        double *bound = cut + ROWS * W;
        for (int i = 0; i < EACH; i++) {
            const int column = column_of(i), r = row_of(i);
            if (pass * W + column >= n.head_dim_v)
                continue;
            if (splits)
                judge_merge_end_element(numbers[i][ROW_SHARE], parts[MORE ? pass : 0][MORE ? i : 0], &u[pass][i]);
            else
                judge_turn_element(n, tiles, numbers[i][ROW_ALPHA], &u[pass][i]);
            const struct judge_value value = judge_end_element(n, numbers[i], top[pass][i % 2], &u[pass][i]);
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
