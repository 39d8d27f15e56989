/* The reference of O and LSE on a GPU: oracle/reference.c, tile by tile, 16 rows to a block, one to each warp where
   rows are meant. What is expected is summed in its order, and has the bits that the CPU gives it; bounds are a little
   wider, see scores.cuh. A block holds its rows' Q, one tile of K and then of V, and the weights of the tile in shared
   memory; what U has come to is in registers, where a tensor core leaves it. */
#ifndef JUDGE_ROWS_CUH
#define JUDGE_ROWS_CUH

#include "engine/judge/merge.cuh"

/* The row's state meets a maximum: reference_tile() and step_decay(). What a tile that leaves it as it is does is found
   once. */
static __device__ void judge_frame(const struct judge_numbers &n, double max, struct judge_state *s, double *decay,
                                   double *error)
{
    const struct exponential *e = &n.exponential;
    if (s->framed && max == s->max) {
        *decay = s->still;
        *error = s->still_error;
        return;
    }
    const double frame = fmax(max, s->start), folds = exponential_folds(e, frame);
    step_decay(e, s->max, max, s->frame, frame, decay, error);
    step_decay(e, max, max, frame, frame, &s->still, &s->still_error);
    s->max = max;
    s->frame = frame;
    const double shift = max == -INFINITY ? 1 : exp_lane(fmax(max - frame, -FRAME_ABOVE));
    s->p_unit = 1 / (shift * n.p_factor);
    s->per_unit = s->p_unit > 0 ? 1 / s->p_unit : 0;
    s->limit = exponential_most(e, folds + e->offset) / shift + 1;
    s->tiny = fmax(1.0, 1 / n.p_factor) * BOUND_TINY / shift;
    s->turns = exponential_error(e, 0, folds);
    s->framed = true;
}

/* The unit of a row's magnitudes, none of which is negative, by the largest one's exponent. */
static __device__ double judge_row_unit(double most)
{
    const uint32_t high = __reduce_max_sync(0xffffffffu, (uint32_t)(format_f64_bits(most) >> 32));
    return judge_narrow_unit(format_f64_of((uint64_t)high << 32));
}

/* judge_sum() by the lanes of a row: each of the first four has a partial sum. */
static __device__ double judge_weight_sum(const double *weight, int cols)
{
    const int part = threadIdx.x % 4, whole = cols / 4 * 4;
    double mine = 0, rest = 0, sum = 0;
#pragma unroll 8
    for (int i = 0; i < whole; i += 4)
        mine += weight[i + part];
    for (int i = whole; i < cols; i++)
        rest += weight[i];
    for (int i = 0; i < 4; i++)
        sum += __shfl_sync(0xffffffffu, mine, i);
    return sum + rest;
}

/* Maximum, weights and the sum of a row over one tile: reference_tile() but for U. */
static __device__ void judge_weights(const struct judge_numbers &n, const struct judge_room &room,
                                     const unsigned char *mask, int kv, int cols, double times, struct judge_state *s)
{
    const int row = threadIdx.x / LANES, lane = threadIdx.x % LANES, W = n.bc;
    double *score = room.score + row * W, *loose = room.loose + row * W, *weight = room.weight + row * room.pitch_p,
           *error = room.error + row * W, *fixed = room.fixed + row * W, *variance = room.variance + row * W,
           *bins = room.bins + row * JUDGE_BINS, *numbers = room.row + row * ROW_NUMBERS;
    const struct exponential *e = &n.exponential;
    double top = -INFINITY, top_bound = 0;
    int seen = 0;
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
    seen = __reduce_add_sync(0xffffffffu, seen);
    double decay, decay_error;
    judge_frame(n, fmax(s->max, judge_row_largest(top) * n.natural), s, &decay, &decay_error);
    s->max_bound = fmax(s->max_bound, top_bound * n.natural);
    const double p_unit = s->p_unit, per_unit = s->per_unit;
    struct weight_terms terms;
    terms.natural = n.natural;
    terms.top = s->max;
    terms.frame = s->frame;
    terms.frame_loose = 0;
    terms.folded = exponential_folds(e, s->frame) + e->offset;
    terms.factor = 1;
    terms.limit = s->limit;
    terms.tiny = s->tiny;
    terms.convert = n.convert;
    struct likely_terms likely;
    likely.natural = fabs(n.natural);
    likely.random = n.random;
    likely.unit = n.p_unit;
    likely.half_tiny = n.p_half_tiny * p_unit;
    likely.l_unit = n.l_unit;
    likely.l_half_tiny = n.l_half_tiny * p_unit;
    /* What P V takes of the weights, and what tensor cores lose of small ones. */
    const bool narrow = n.u_least > BOUND_TINY;
    const double least_weight = n.u_least * p_unit;
    double most[JUDGE_SIZES] = {}, sum_e = 0, less = 0, squares = 0, l_more = 0, of_weights = 0;
    for (int col = lane; col < cols; col += LANES) {
        double off;
        const double x = score[col], w = weight_exp(e, &terms, x, loose[col], &off);
        const double err = weight_error(&terms, x, w, off);
        s->open |= !(w <= DBL_MAX) || !(err <= DBL_MAX);
        sum_e += err;
        double taken = n.p_unit > 0 ? weight_rounded(w, err, n.p_unit, n.p_half_tiny * p_unit) : err;
        if (narrow && w > 0 && w < least_weight)
            taken += n.u_error * least_weight;
        weight[col] = w;
        error[col] = taken;
        most[0] = fmax(most[0], w);
        most[1] = fmax(most[1], taken);
        if (!n.likely)
            continue;
        const struct likely_weight one = likely_weight(&likely, w, err, loose[col]);
        fixed[col] = fabs(one.fixed);
        variance[col] = one.variance;
        most[2] = fmax(most[2], fixed[col]);
        most[3] = fmax(most[3], one.variance);
        less += one.less;
        squares += one.squares;
        l_more += one.l_more;
        of_weights += judge_deals(w, per_unit) ? w * w : 0;
    }
    __syncwarp();
    const double most_decay = decay + decay_error, sum_w = judge_weight_sum(weight, cols);
    double sum = decay * s->sum, moved = decay_error * s->sum;
    sum_e = judge_row_sum(sum_e);
    sum += sum_w;
    moved += sum_e;
    double err = most_decay * s->sum_error + moved + n.l_unit * (sum_w + sum_e) + n.l_half_tiny * p_unit * seen;
    if (n.likely) {
        const double reach = sum + err;
        judge_deal_weights<LANES>(n, true, weight, cols, per_unit, most_decay, bins);
        s->squares = most_decay * most_decay * s->squares + of_weights;
        s->l = most_decay * s->l + (l_more - less) + (lane == 0 ? moved : 0);
        s->l_variance = most_decay * most_decay * s->l_variance + squares +
                        (lane == 0 ? n.roundings * BOUND_U * BOUND_U * reach * reach : 0);
    }
    err += n.l_error * (sum + err);
    s->sum = sum;
    s->sum_error = err;
    s->turned += s->turns;
    double unit[JUDGE_SIZES];
#pragma unroll
    for (int i = 0; i < JUDGE_SIZES; i++)
        unit[i] = judge_row_unit(most[i]);
    if (lane == 0) {
        numbers[ROW_DECAY] = decay;
        numbers[ROW_DECAY_ERROR] = decay_error;
        numbers[ROW_LIKELY_DECAY] = most_decay;
        numbers[ROW_LOST] = narrow ? n.u_error * (n.u_least * s->sum + cols * least_weight) * times : 0;
#pragma unroll
        for (int i = 0; i < JUDGE_SIZES; i++)
            numbers[ROW_W + i] = unit[i];
    }
    for (int col = lane; col < judge_whole(cols); col += LANES) {
        const bool there = col < cols;
        const int at = row * room.pitch_p + col;
        const auto narrowed = [there, col](const double *of, double unit) {
            return there ? judge_tf32(magnitude_narrow(of[col], judge_inverse(unit))) : 0;
        };
        room.sizes[0][at] = narrowed(weight, unit[0]);
        room.sizes[1][at] = narrowed(error, unit[1]);
        if (n.likely) {
            room.sizes[2][at] = narrowed(fixed, unit[2]);
            room.sizes[3][at] = narrowed(variance, unit[3]);
        }
        if (!there)
            weight[col] = 0;
    }
    __syncthreads();
}

/* What 1 of the narrowed magnitudes of V stands for, and of what they have beyond V. */
struct judge_units {
    double v, more;
};

/* P V of eight columns and all rows, added to what there was. d: the first column; *top: the largest |v| of column
   lane / 4 among keys that the lane has. */
template <bool MORE>
static __device__ void judge_values(const struct judge_numbers &n, const double *scales, const struct judge_room &room,
                                    int d, int key, int cols, double times, const struct judge_units &units,
                                    struct judge_element *u, double *top)
{
    const int upper = threadIdx.x % LANES / 4, quarter = threadIdx.x % 4, pitch = room.pitch_v,
              whole = judge_whole(cols), pitch_sizes = room.pitch_p;
    const double scale = judge_inverse(units.v), scale_more = MORE ? judge_inverse(units.more) : 0;
    const float narrow = (float)scale;
    double product[4] = {};
    float sizes[3][4] = {}, squares[1][4] = {}, more[1][4] = {};
    const auto taken = [&](int k, int column) {
        const float *of = room.values + k * pitch;
        if (!MORE)
            return (double)of[d + column];
        return k < cols && d + column < n.head_dim_v ? judge_taken(scales, n.input[2], of, key + k, d + column) : 0.0;
    };
    const auto most = [&](int k, int column) {
        return k < cols && d + column < n.head_dim_v
                   ? judge_most(n.input[2], room.values + k * pitch, d + column, taken(k, column))
                   : 0.0;
    };
    const auto size = [&](int k, int column) {
        return MORE ? magnitude_narrow(most(k, column), scale) : fabsf(room.values[k * pitch + d + column]) * narrow;
    };
    const auto square = [&](int k, int column) {
        const float x = size(k, column);
        return x * x;
    };
    const auto beyond = [&](int k, int column) {
        return magnitude_narrow(most(k, column) - fabs(taken(k, column)), scale_more);
    };
    judge_multiply(room.weight, room.pitch_p, whole, taken, product);
    const float *const three[3] = {room.sizes[0], room.sizes[1], n.likely ? room.sizes[2] : room.sizes[0]};
    judge_sizes(three, pitch_sizes, whole, size, sizes);
    if (n.likely)
        judge_sizes({room.sizes[3]}, pitch_sizes, whole, square, squares);
    if (MORE && n.input[2].lossy)
        judge_sizes({room.sizes[0]}, pitch_sizes, whole, beyond, more);
    float most_f32 = 0;
    for (int k = quarter; k < cols; k += 4) {
        if (MORE)
            *top = fmax(*top, most(k, upper) * times);
        else
            most_f32 = fmaxf(most_f32, fabsf(room.values[k * pitch + d + upper]));
    }
    *top = fmax(*top, (double)most_f32 * times);
    /* Units are powers of two: of each it is the same digits. */
    const double lost = magnitude_lost(cols), grown = judge_grown(), of_v = grown * times * units.v;
    const double of_more = times * BOUND_SLACK * grown * units.more,
                 of_vv = grown * (times * times) * (units.v * units.v);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const double *numbers = room.row + (upper + i / 2 * 8) * ROW_NUMBERS;
        const struct sum_terms terms = {numbers[ROW_DECAY], numbers[ROW_DECAY_ERROR], n.u_error, numbers[ROW_LOST]};
        const double of_tile = times * product[i], size_u = ((double)sizes[0][i] + lost) * (of_v * numbers[ROW_W]);
        const double off = MORE && n.input[2].lossy ? ((double)more[0][i] + lost) * (of_more * numbers[ROW_W]) : 0;
        double moved, reach;
        sum_element(&terms, of_tile, size_u, ((double)sizes[1][i] + lost) * (of_v * numbers[ROW_E]), off, &u[i].sum,
                    &u[i].error, &moved, &reach);
        if (n.likely)
            likely_value(numbers[ROW_LIKELY_DECAY], &n.share, of_tile, size_u, moved, reach,
                         ((double)sizes[2][i] + lost) * (of_v * numbers[ROW_F]),
                         ((double)squares[0][i] + lost) * (of_vv * numbers[ROW_V]), &u[i].likely);
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
    const double unit = judge_narrow_unit(judge_row_most<LANES>(most));
    for (int d = lane; d < judge_whole(D); d += LANES) {
        const double size = d < D ? judge_size(room.most_q ? room.most_q[row * pitch + d] : q[d], n.score_least) : 0;
        room.size_q[row * pitch + d] = judge_tf32(magnitude_narrow(size, judge_inverse(unit)));
    }
    if (lane == 0)
        room.row[row * ROW_NUMBERS + ROW_Q] = unit;
}

/* By all threads of a block. */
template <class T> static __device__ void judge_copy(T *to, const T *from)
{
    for (unsigned i = threadIdx.x; i < sizeof *to / sizeof(uint32_t); i += JUDGE_ROW_THREADS)
        ((uint32_t *)(void *)to)[i] = ((const uint32_t *)(const void *)from)[i];
}

/* A block's rows. A warp has eight columns of U, PASSES times, JUDGE_COLUMNS apart. MORE: judge_numbers.more. */
template <int PASSES, bool MORE>
__global__ void __launch_bounds__(JUDGE_ROW_THREADS) judge_rows(const struct judge_arrays work)
{
    enum { WARPS = JUDGE_ROW_THREADS / LANES, EACH = 4, W = JUDGE_COLUMNS };
    extern __shared__ double judge_shared[];
    const struct judge_block block = work.blocks[blockIdx.x];
    __shared__ struct judge_numbers n; /* which are read again and again, as is */
    __shared__ struct judge_tile tile;
    judge_copy(&tile, &work.tiles[block.tile]);
    __syncthreads();
    judge_copy(&n, &work.numbers[tile.numbers]);
    __syncthreads();
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
    double top[PASSES] = {};
    struct judge_merged merged;
    struct merged_value parts[MORE ? PASSES : 1][MORE ? EACH : 1] = {};
    double tiles = 0; /* of this split */
    const bool splits = MORE && n.splits > 0;
    const int visits = splits ? tile.visits : tile.last - tile.first + 1;
    judge_merge_begin(&merged);
    /* The state so far joins those of the splits before. */
    const auto merge = [&]() {
        judge_join_row(&s);
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
    const auto visited = [&](int visit) { return splits ? work.orders[tile.order + visit] : tile.first + visit; };
    const auto behind = [&](int visit) {
        do
            visit++;
        while (visit < visits && !splits && work.skips && work.skips[tile.skips + visit]);
        return visit;
    };
    const auto columns = [&](int kv) { return tile.keys - kv * n.bc < n.bc ? tile.keys - kv * n.bc : n.bc; };
    struct judge_pieces of_k, of_v;
    const bool ahead = judge_goes_ahead(work, n.type[1], 1, tile.k, n.bc, D, &of_k) &
                       judge_goes_ahead(work, n.type[2], 2, tile.v, n.bc, n.head_dim_v, &of_v);
    struct judge_ahead asked = {};
    const auto ask_keys = [&](int visit) {
        const int kv = visit < visits ? visited(visit) & ~JUDGE_BEGINS : 0;
        if (ahead && visit < visits)
            asked = judge_ask(work, 1, tile.k, kv * n.bc, columns(kv), of_k);
    };
    ask_keys(behind(-1));
    for (int visit = behind(-1); visit < visits; visit = behind(visit)) {
        const int at = visited(visit), kv = at & ~JUDGE_BEGINS, cols = columns(kv);
        if (splits && at != kv) {
            merge();
            judge_split_begin(n, false, &s);
            for (int i = lane; n.likely && i < JUDGE_BINS; i += LANES)
                room.bins[row * JUDGE_BINS + i] = 0;
            tiles = 0;
        }
        tiles++;
        if (!n.apart)
            __syncthreads();
        const struct judge_tile_room keys = {room.keys, room.pitch_q, cols, whole, room.most},
                                     values = {room.values, room.pitch_v, judge_whole(cols), n.head_dim_v,
                                               room.most + WARPS};
        uint32_t *beyond = room.most + 2 * WARPS;
        if (ahead)
            judge_take_tile(work, n.type[1], 1, asked, of_k, keys);
        else
            judge_load_tile<WARPS>(work, n.type[1], 1, tile.k, kv * n.bc, cols, D, keys);
        if (ahead)
            asked = judge_ask(work, 2, tile.v, kv * n.bc, cols, of_v);
        __syncthreads(); /* all have left U of the tile before, whose V and weights may be replaced */
        const double most_k = MORE && n.input[1].lossy
                                  ? judge_most_of_tile(n, work, 1, kv * n.bc, cols, D, n.score_least, keys, beyond)
                                  : judge_size(judge_block_largest<WARPS>(keys.most), n.score_least);
        const double times = n.scaled_v ? work.scales[n.by_tile + kv] : 1;
        judge_scores<MORE>(n, work, tile, block.row, kv * n.bc, room, judge_narrow_unit(most_k), cols);
        if (!n.apart)
            __syncthreads();
        if (ahead)
            judge_take_tile(work, n.type[2], 2, asked, of_v, values);
        else
            judge_load_tile<WARPS>(work, n.type[2], 2, tile.v, kv * n.bc, cols, n.head_dim_v, values);
        ask_keys(behind(visit));
        __syncthreads(); /* all scores are there, and V */
        const double most_v = MORE && n.input[2].lossy
                                  ? judge_most_of_tile(n, work, 2, kv * n.bc, cols, n.head_dim_v, 0, values, beyond)
                                  : judge_block_largest<WARPS>(values.most);
        const double unit_beyond = MORE && n.input[2].lossy ? judge_narrow_unit(judge_block_largest<WARPS>(beyond)) : 1;
        s.open |= !(most_k <= DBL_MAX) || !(most_v <= DBL_MAX);
        judge_weights(n, room, mask, kv, cols, times, &s);
        const struct judge_units units = {judge_narrow_unit(most_v), unit_beyond};
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (pass * W + first < n.head_dim_v)
                judge_values<MORE>(n, work.scales, room, pass * W + first, kv * n.bc, cols, times, units, u[pass],
                                   &top[pass]);
    }
    /* Of a column four lanes have seen some keys each, and two columns are a lane's. */
    double tops[PASSES][2];
    for (int pass = 0; pass < PASSES; pass++) {
        top[pass] = judge_row_most<4>(top[pass]);
        for (int i = 0; i < 2; i++)
            tops[pass][i] = __shfl_sync(0xffffffffu, top[pass], (lane % 4 * 2 + i) * 4);
    }
    const double turned = s.turned + n.alpha_arguments;
    double common = 0;
    if (splits) {
        merge();
        common = judge_merge_end(n, &merged, &s);
    } else {
        judge_join_row(&s);
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
            const struct judge_value value = judge_end_element(n, numbers[i], tops[pass][i % 2], &u[pass][i]);
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
