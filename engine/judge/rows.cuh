/* The reference of O and LSE on a GPU: oracle/reference.c, tile by tile, 16 rows to a block. What is expected is summed
   in its order, and has the bits that the CPU gives it; bounds are a little wider, see scores.cuh and values.cuh. A
   block holds its rows' Q, a tile of K and one of V, and the weights of the tile in shared memory; what U has come to
   is in registers, where a tensor core leaves it. */
#ifndef JUDGE_ROWS_CUH
#define JUDGE_ROWS_CUH

#include "engine/judge/values.cuh"

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
                                     const struct judge_tile &tile, int row, int keys, double *numbers,
                                     const struct judge_state &s, double of_bins, double turned, struct judge_row *out)
{
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
        together = of_bins;
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
    moved = moved >= 0 ? fmin(moved, fabs(want) + 2 * top) : (double)INFINITY; /* of no number nothing follows */
    value.bound = output_scaled(want, bound_divide(want) + moved, n.o_roundings, n.o_times);
    return value;
}

/* Rows of Q, and their magnitudes. */
static __device__ void judge_load_q(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int first, int rows, const struct judge_room &room,
                                    struct judge_share *s)
{
    const int D = n.head_dim, row = threadIdx.x / ROW_LANES, lane = threadIdx.x % ROW_LANES, pitch = room.pitch_q;
    double *q = room.q + row * pitch, most = 0;
    for (int i = lane; i < ROW_NUMBERS; i += ROW_LANES)
        room.row[row * ROW_NUMBERS + i] = 0;
    for (int d = lane; d < judge_whole(D); d += ROW_LANES)
        q[d] = row < rows && d < D
                   ? judge_load(n.type[0], work.code, work.input[0] + tile.q, (first + row) * work.stride[0] + d)
                   : 0;
    __syncwarp();
    for (int d = lane; room.most_q && d < D; d += ROW_LANES) {
        const double x = row < rows ? judge_taken(work.scales, n.input[0], q, tile.first_row + first + row, d) : 0;
        room.most_q[row * pitch + d] = judge_most(n.input[0], q, d, x);
    }
    __syncwarp();
    for (int d = lane; d < D; d += ROW_LANES) {
        if (n.input[0].descaled && row < rows)
            q[d] = judge_taken(work.scales, n.input[0], q, tile.first_row + first + row, d);
        const double size = judge_size(room.most_q ? room.most_q[row * pitch + d] : q[d], n.score_least);
        s->open |= !(size <= DBL_MAX);
        most = fmax(most, size);
    }
    const double unit = judge_narrow_unit(judge_row_most<ROW_LANES>(most));
    for (int d = lane; d < judge_whole(D); d += ROW_LANES) {
        const double size = d < D ? judge_size(room.most_q ? room.most_q[row * pitch + d] : q[d], n.score_least) : 0;
        room.size_q[row * pitch + d] = judge_narrow((float)(size * judge_inverse(unit)));
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

/* A block's rows. A warp has eight columns of U, PASSES times, JUDGE_COLUMNS apart. ELEMENT: of K and V in shared
   memory; DIM: see judge_dim(); MORE: judge_numbers.more. */
template <class ELEMENT, int DIM, int PASSES, bool MORE>
__global__ void __launch_bounds__(JUDGE_ROW_THREADS, PASSES <= 2 && !MORE ? 2 : 1)
    judge_rows(const struct judge_arrays work)
{
    enum { EACH = 4, W = JUDGE_COLUMNS, AS_IT_COMES = sizeof(ELEMENT) == 2 };
    extern __shared__ double judge_shared[];
    const struct judge_block block = work.blocks[blockIdx.x];
    __shared__ struct judge_numbers n; /* which are read again and again, as is */
    __shared__ struct judge_tile tile;
    judge_copy(&tile, &work.tiles[block.tile]);
    __syncthreads();
    judge_copy(&n, &work.numbers[tile.numbers]);
    __syncthreads();
    const struct judge_room room = judge_room_at<DIM>(judge_shared, &n);
    const int rows = tile.rows - block.row < ROWS ? tile.rows - block.row : ROWS, D = judge_dim<DIM>(n.head_dim),
              dim_v = judge_dim<DIM>(n.head_dim_v);
    const int row = threadIdx.x / ROW_LANES, lane = threadIdx.x % ROW_LANES;
    const int upper = threadIdx.x % LANES / 4, first = (int)threadIdx.x / LANES * 8; /* of a pass's columns */
    ELEMENT *keys = (ELEMENT *)room.keys, *values = (ELEMENT *)room.values;
    struct judge_share s = {};
    if (row < rows) {
        const struct judge_range range = work.ranges[tile.row + block.row + row];
        s.first = range.first;
        s.last = range.last;
        s.keys = range.keys;
    }
    judge_load_q(n, work, tile, block.row, rows, room, &s);
    for (int i = threadIdx.x; i < JUDGE_SIZES * ROWS * room.pitch_p; i += JUDGE_ROW_THREADS)
        room.sizes[0][i] = 0; /* in short rows two of these stay so */
    for (int i = threadIdx.x; i < judge_whole(n.bc) * room.pitch_k; i += JUDGE_ROW_THREADS)
        keys[i] = ELEMENT{};
    for (int i = threadIdx.x; AS_IT_COMES && i < judge_whole(n.bc) * room.pitch_v; i += JUDGE_ROW_THREADS)
        values[i] = ELEMENT{};
    struct judge_running u[PASSES][EACH] = {};
    float top[PASSES] = {};
    struct judge_merged merged;
    struct merged_value parts[MORE ? PASSES : 1][MORE ? EACH : 1] = {};
    double tiles = 0, unit_k = 0, unit_v = 0,
           together; /* tiles: of this split; units: 0: of zeros so far, taken for 1 */
    const bool splits = MORE && n.splits > 0;
    const int visits = splits ? tile.visits : tile.last - tile.first + 1;
    bool begun = false; /* a split behind the first */
    judge_merge_begin(&merged);
    judge_split_begin(n, room, true, &s);
    /* The state so far joins those of the splits before. */
    const auto merge = [&]() {
        struct judge_state state = judge_join_row(n, room, !begun, tiles, s, &together);
        judge_turn_row(n, tiles, &state);
        judge_merge_row(n, together, &state, &merged, room.row + row * ROW_NUMBERS, &s.open);
        __syncthreads();
#pragma unroll
        for (int pass = 0; MORE && pass < PASSES; pass++)
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                struct judge_element x = judge_element_of(u[pass][i], judge_unit_or(unit_v), tiles);
                judge_merge_element(n, tiles, room.row + (upper + i / 2 * 8) * ROW_NUMBERS, &x,
                                    &parts[MORE ? pass : 0][MORE ? i : 0]);
                u[pass][i] = {};
            }
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
    const auto bring_keys = [&](int visit) {
        const int kv = visit < visits ? visited(visit) & ~JUDGE_BEGINS : 0, cols = visit < visits ? columns(kv) : 0;
        if (AS_IT_COMES)
            judge_ask_tile<ELEMENT, DIM ? DIM : 64>(work, 1, tile.k, kv * n.bc, cols,
                                                    visit < visits ? judge_whole(n.bc) : 0, keys, room.pitch_k);
        else
            judge_load_tile<WARPS_OF_ROWS>(work, n.type[1], 1, tile.k, kv * n.bc, cols, D,
                                           {(float *)room.keys, room.pitch_k, cols, judge_whole(D), room.most});
    };
    const auto bring_values = [&](int kv, int cols) {
        if (AS_IT_COMES)
            judge_ask_tile<ELEMENT, DIM ? DIM : 64>(work, 2, tile.v, kv * n.bc, cols, judge_whole(n.bc), values,
                                                    room.pitch_v);
        else
            judge_load_tile<WARPS_OF_ROWS>(
                work, n.type[2], 2, tile.v, kv * n.bc, cols, dim_v,
                {(float *)room.values, room.pitch_v, judge_whole(cols), judge_whole(dim_v), room.most + WARPS_OF_ROWS});
    };
    int visit = behind(-1);
    __syncthreads(); /* the room for tiles is empty */
    if (AS_IT_COMES)
        bring_keys(visit);
    while (visit < visits) {
        const int at = visited(visit), kv = at & ~JUDGE_BEGINS, key = kv * n.bc, cols = columns(kv);
        if (splits && at != kv) {
            merge();
            judge_split_begin(n, room, false, &s);
            begun = true;
            tiles = 0;
        }
        tiles++;
        if (AS_IT_COMES)
            judge_await_tile<0>();
        __syncthreads(); /* K is there, and all have left U of the tile before, whose V and weights may be replaced */
        if (AS_IT_COMES)
            bring_values(kv, cols);
        else {
            bring_keys(visit);
            __syncthreads();
        }
        if (unit_k == 0)
            unit_k = judge_tile_unit(n, work, 1, key, cols, D, keys, room.pitch_k, room.most);
        judge_scores<ELEMENT, DIM, MORE>(n, work, tile, block.row, key, room, judge_unit_or(unit_k), cols);
        __syncthreads(); /* all scores are there, and nobody reads K any more */
        visit = behind(visit);
        if (AS_IT_COMES)
            bring_keys(visit);
        else
            bring_values(kv, cols);
        const double times = DIM == 0 && n.scaled_v ? work.scales[n.by_tile + kv] : 1;
        if (unit_v == 0 && !ELEMENT::UNIT) {
            if (AS_IT_COMES)
                judge_await_tile<1>();
            __syncthreads();
            unit_v = judge_tile_unit(n, work, 2, key, cols, dim_v, values, room.pitch_v, room.most + WARPS_OF_ROWS);
            /* Of zeros U has come to nothing but what is lost of small weights. */
            const float by = n.u_least > BOUND_TINY ? (float)judge_inverse(judge_unit_or(unit_v)) : 0;
#pragma unroll
            for (int i = 0; i < PASSES * EACH; i++)
                if (unit_v > 0)
                    judge_rescale(&u[i / EACH][i % EACH], by);
        }
        const double per_v = judge_inverse(judge_unit_or(unit_v));
        const unsigned char *mask =
            work.skips && row < rows ? work.tensors + tile.mask + (block.row + row) * work.mask_stride : NULL;
        judge_weights(n, room, {mask, key}, cols, times, begun ? n.start_later : n.start, per_v, &s);
        if (AS_IT_COMES)
            judge_await_tile<1>();
        __syncthreads(); /* all weights are there, and V */
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (pass * W + first < dim_v)
                judge_values<ELEMENT, DIM, MORE>(n, work.scales, room, pass * W + first, key, cols, times, per_v,
                                                 u[pass], &top[pass], &s.open);
    }
    const double turned = room.kept[row].turned + n.alpha_arguments;
    struct judge_state state;
    double common = 0;
    if (splits) {
        merge();
        common = judge_merge_end(n, &merged, &state);
        together = 1;
    } else {
        state = judge_join_row(n, room, true, tiles, s, &together);
        judge_turn_row(n, tiles, &state);
    }
    struct judge_row out = {};
    const int place = block.row + row;
    if (row < rows && lane == 0) {
        judge_end_row(n, work, tile, place, s.keys, room.row + row * ROW_NUMBERS, state, together, turned, &out);
        room.row[row * ROW_NUMBERS + ROW_SHARE] = common;
        out.judged = 1;
    }
    __syncthreads();
    /* Element by element, and then each row by one thread in the CPU's order. What the tiles needed is room for it. */
    double *want = judge_shared, *variance = want + ROWS * W, *cut = variance + ROWS * W, *bound = cut + ROWS * W;
    double numbers[2][ROW_NUMBERS];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < ROW_NUMBERS; j++)
            numbers[i][j] = room.row[(upper + i * 8) * ROW_NUMBERS + j];
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) {
        __syncthreads();
        /* Of a column four lanes have seen some keys each, and two columns are a lane's. */
        const float most = (float)judge_row_most<4>((double)top[pass]);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int column = first + threadIdx.x % 4 * 2 + i % 2, r = upper + i / 2 * 8;
            const double *of_row = numbers[i / 2],
                         largest = judge_unit_or(unit_v) *
                                   (double)__shfl_sync(0xffffffffu, most, (threadIdx.x % 4 * 2 + i % 2) * 4);
            if (pass * W + column >= dim_v)
                continue;
            struct judge_element x = judge_element_of(u[pass][i], judge_unit_or(unit_v), tiles);
            if (splits)
                judge_merge_end_element(of_row[ROW_SHARE], parts[MORE ? pass : 0][MORE ? i : 0], &x);
            else
                judge_turn_element(n, tiles, of_row[ROW_ALPHA], &x);
            const struct judge_value value = judge_end_element(n, of_row, largest * (1 + 4 * BOUND_U), &x);
            want[r * W + column] = value.want;
            bound[r * W + column] = value.bound;
            if (n.likely) {
                variance[r * W + column] = likely_variance(of_row[ROW_TOGETHER], &x.likely, of_row[ROW_SUM], value.want,
                                                           n.o_times, n.o_unit, n.o_half_tiny);
                cut[r * W + column] = x.likely.cut / of_row[ROW_SUM] * fabs(n.o_times);
            }
        }
        __syncthreads();
        const int end = dim_v - pass * W < W ? dim_v - pass * W : W;
        for (int i = lane; row < rows && i < end; i += ROW_LANES) {
            const int d = pass * W + i, at = row * W + i;
            const double got = judge_load(n.type[3], NULL, work.tensors + tile.o, place * work.stride[3] + d);
            const double ratio = judge_ratio(n.type[3], got, want[at], bound[at]);
            out.open |= ratio < 0;
            out.bad_o += ratio > 1;
            out.worst_o = fmax(out.worst_o, ratio);
            if (work.values) {
                struct judge_value *value = work.values + tile.values + (int64_t)place * dim_v + d;
                value->want = want[at];
                value->bound = bound[at];
            }
            bound[at] = got;
        }
        __syncwarp();
        for (int i = 0; n.likely && row < rows && lane == 0 && i < end; i++) {
            const int at = row * W + i;
            noise_add(&out.noise, bound[at], want[at], judge_round(n.type[3], want[at]), variance[at], cut[at]);
        }
    }
    for (int flip = ROW_LANES / 2; flip > 0; flip /= 2)
        out.bad_o += __shfl_xor_sync(0xffffffffu, out.bad_o, flip);
    out.worst_o = judge_row_most<ROW_LANES>(out.worst_o);
    /* Of one row all go to the CPU: what is too large in V was found by warps whose columns all rows have. */
    out.open = __syncthreads_or(out.open || s.open);
    if (row < rows && lane == 0) {
        work.rows[tile.row + place] = out;
    }
}

#endif
