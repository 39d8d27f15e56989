/* Scores of a tile and their bounds: oracle/score.c. */
#ifndef JUDGE_SCORES_CUH
#define JUDGE_SCORES_CUH

#include "engine/judge/tiles.cuh"

/* What all lanes of a row know of it. Of max_bound, l, l_variance and squares a lane has what its own keys made, until
   judge_join_row(). */
struct judge_state {
    double max, max_bound, frame, start, sum, sum_error, turned, l, l_variance, squares;
    /* Of the maximum at hand; the same for all tiles that leave it as it is, and what such a tile does to the sums. */
    double p_unit, per_unit, limit, tiny, turns, still, still_error;
    int first, last, keys;
    bool open, framed; /* framed: these are there */
};

/* An element of U as far as the tiles have come. */
struct judge_element {
    double sum, error;
    struct likely_value likely;
};

/* What deal_weights() of likely.c leaves out; per_unit: weights to P's own unit. */
static __device__ bool judge_deals(double w, double per_unit)
{
    return w > 0 && fabs(w * per_unit) <= DBL_MAX;
}

/* deal_weights() by the SHARE lanes of each row, but for its squares. there: the row is one. A bin gets its weights one
   after the other, as the CPU adds them: the first lane that has one of them takes the others' in turn. */
template <int SHARE>
static __device__ void judge_deal_weights(const struct judge_numbers &n, bool there, const double *weight, int cols,
                                          double per_unit, double decay, double *bins)
{
    const int lane = threadIdx.x % LANES, mine = lane % SHARE;
    for (int i = mine; there && decay != 1 && i < JUDGE_BINS; i += SHARE)
        bins[i] *= decay;
    __syncwarp();
    for (int begin = 0; begin < cols; begin += SHARE) {
        const double w = there && begin + mine < cols ? weight[begin + mine] : 0;
        const bool some = judge_deals(w, per_unit);
        const int bin = some ? likely_bin(w * per_unit, n.bin_bits, n.bin_least, JUDGE_BINS) : -1;
        unsigned same = __match_any_sync(0xffffffffu, lane / SHARE * (JUDGE_BINS + 1) + bin + 1);
        const bool first = some && __ffs((int)same) - 1 == lane;
        double sum = first ? bins[bin] : 0;
        same = first ? same : 0;
        while (__any_sync(0xffffffffu, same != 0)) {
            const double x = __shfl_sync(0xffffffffu, w, same ? __ffs((int)same) - 1 : lane);
            sum += same ? x : 0;
            same &= same - 1;
        }
        if (first)
            bins[bin] = sum;
        __syncwarp();
    }
}

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

/* S of row `row` of the q tile and key `key`, of its product: local_score(), local_score_lossy(). lossy: how far
   operands that are off move the product. */
static __device__ void judge_score(const struct judge_numbers &n, const struct judge_arrays &work,
                                   const struct judge_tile &tile, int row, int key, double tiny, double lossy,
                                   double *score, double *bound)
{
    double x = *score, off = *bound, size = 0;
    const bool biased = n.bias_terms > 0, capped = n.cap > 0;
    const double bias = biased ? judge_bias(n, work, tile, row, key, &size) : 0;
    if (n.scaled) {
        const double by = work.scales[tile.by_row + row] * work.scales[n.by_key + key];
        x *= by;
        off *= by;
        lossy *= by;
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
    if (off != 0) /* capping makes differences smaller, but for a change of unit */
        off += lossy * (n.before / n.after) * BOUND_SLACK;
    *score = x;
    *bound = off;
}

/* What m and P read of a score, but for the mask: local_see_scores(). */
static __device__ void judge_see(const struct judge_numbers &n, const struct judge_arrays &work,
                                 const struct judge_tile &tile, int row, int key, double *score, double *bound)
{
    if (!(n.cap_later || n.bias_later) || !(fabs(*score) <= DBL_MAX))
        return;
    double x = *score * n.after, size;
    *bound = *bound * n.after + n.folded_lse * fabs(x);
    if (n.cap_later)
        x = score_capped(n.cap, n.tanh_error, x, bound);
    if (n.bias_later && n.bias_terms > 0) {
        const double bias = judge_bias(n, work, tile, row, key, &size);
        x = score_biased(x, bias, size, n.bias_terms, 1, bound);
    }
    *score = x;
}

/* c += A B of a warp: 16 rows of A, `pitch` apart, 8 columns of b(k, column), k of them, whole instructions. A lane has
   of c rows lane / 4 and that + 8, of each the columns lane % 4 * 2 and the one behind. Tensor cores of Hopper make of
   float64 what one fma() after the other does, in ascending k (measured in all of 25,600 products), which is what the
   CPU has; that others do has not been seen. */
template <class B> static __device__ void judge_multiply(const double *a, int pitch, int k, const B &b, double (&c)[4])
{
    const int row = threadIdx.x % LANES / 4, quarter = threadIdx.x % 4;
    const double *upper = a + row * pitch, *lower = upper + 8 * pitch;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900 && !defined SIMT_KEYWORDS_H /* the executor has no such word */
    for (int i = 0; i < k; i += 16) {
        double x[8], y[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            x[2 * j] = upper[i + 4 * j + quarter];
            x[2 * j + 1] = lower[i + 4 * j + quarter];
            y[j] = b(i + 4 * j + quarter, row);
        }
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(x[0]), "d"(x[1]), "d"(x[2]), "d"(x[3]), "d"(x[4]), "d"(x[5]), "d"(x[6]), "d"(x[7]), "d"(y[0]),
              "d"(y[1]), "d"(y[2]), "d"(y[3]));
    }
#else
    for (int i = 0; i < k; i++) {
        const double left = b(i, 2 * quarter), right = b(i, 2 * quarter + 1);
        c[0] = fma(upper[i], left, c[0]);
        c[1] = fma(upper[i], right, c[1]);
        c[2] = fma(lower[i], left, c[2]);
        c[3] = fma(lower[i], right, c[3]);
    }
#endif
}

/* Sums of magnitudes are those of tensor cores, of tf32: f32 of 11 bits. What 1 of a narrowed magnitude stands for is a
   power of two that brings the largest to [1, 2), and by which f32 can be divided. */
static __device__ double judge_narrow_unit(double largest)
{
    return fmax(judge_unit(largest), BOUND_TINY);
}
/* 1 / x of a power of two, which is no subnormal. */
static __device__ double judge_inverse(double x)
{
    return format_f64_of((UINT64_C(2046) << 52) - format_f64_bits(x));
}
/* To the nearest tf32; a half goes up. */
static __device__ float judge_tf32(float x)
{
    return format_f32_of((format_f32_bits(x) + 0x1000u) & ~0x1FFFu);
}
/* As magnitude_grown() of such sums: two operands are up to 2^-11 smaller each, and a tensor core loses at most 9 2^-23
   of the sum per 8 products, up to 64 times. They may as well be as much larger: such a sum is 0.3 % above the true one
   at most, and no smaller. What underflows is magnitude_lost(). */
static __device__ double judge_grown()
{
    return 1 + 0x1.4p-10;
}

/* c[i] += A[i] B of magnitudes, as judge_multiply() has them: A of 16 rows, `pitch` apart, of tf32; b(k, column) in
 * f32.
 */
template <int N, class B>
static __device__ void judge_sizes(const float *const (&a)[N], int pitch, int k, const B &b, float (&c)[N][4])
{
    const int row = threadIdx.x % LANES / 4, quarter = threadIdx.x % 4;
#if defined __CUDA_ARCH__ && !defined SIMT_KEYWORDS_H
    for (int i = 0; i < k; i += 8) {
        const uint32_t y[2] = {format_f32_bits(judge_tf32(b(i + quarter, row))),
                               format_f32_bits(judge_tf32(b(i + 4 + quarter, row)))};
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float *upper = a[j] + row * pitch + i + quarter, *lower = upper + 8 * pitch;
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                "{%0, %1, %2, %3};"
                : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
                : "r"(format_f32_bits(upper[0])), "r"(format_f32_bits(lower[0])), "r"(format_f32_bits(upper[4])),
                  "r"(format_f32_bits(lower[4])), "r"(y[0]), "r"(y[1]));
        }
    }
#else
    for (int i = 0; i < k; i++)
        for (int side = 0; side < 2; side++) {
            const float y = judge_tf32(b(i, 2 * quarter + side));
            for (int j = 0; j < N; j++)
                for (int half = 0; half < 2; half++)
                    c[j][2 * half + side] = fmaf(a[j][(row + 8 * half) * pitch + i], y, c[j][2 * half + side]);
        }
#endif
}

/* What the scales of codes may make of a small number: of the rows of the q tile and the keys of this tile. */
static __device__ double judge_tiny(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int key, int cols)
{
    double row = 1, col = 1;
    if (n.scaled) {
        row = tile.largest_by_row;
        for (int i = threadIdx.x % LANES; i < cols; i += LANES)
            col = fmax(col, work.scales[n.by_key + key + i]);
        col = judge_row_most<LANES>(col);
    }
    return n.score_tiny * fmax(1.0, fabs(n.factor) * (row * col));
}

/* How far lossy operands move a lane's four scores besides. Of a key's elements each is made by one lane. */
template <class TAKEN, class MOST>
static __device__ void judge_score_lossy(const struct judge_numbers &n, const struct judge_room &room,
                                         const TAKEN &taken, const MOST &most_of, double (&moved)[4])
{
    const int D = n.head_dim, pitch = room.pitch_q, upper = threadIdx.x % LANES / 4, left = threadIdx.x % 4 * 2;
    double with[4] = {}, without[4] = {};
    for (int begin = 0; begin < D; begin += 8) {
        double own[2], own_most[2];
        for (int j = 0; j < 2; j++) {
            own[j] = taken(begin + upper, left + j);
            own_most[j] = most_of(begin + upper, left + j, own[j]);
        }
        for (int i = 0; i < 8 && begin + i < D; i++) {
            const int from = i * 4 + threadIdx.x % 4;
            for (int j = 0; j < 4; j++) {
                const int at = (upper + j / 2 * 8) * pitch + begin + i;
                const double k = __shfl_sync(0xffffffffu, own[j % 2], from),
                             most = __shfl_sync(0xffffffffu, own_most[j % 2], from);
                with[j] = fma(room.most_q[at], most, with[j]);
                without[j] = fma(fabs(room.q[at]), fabs(k), without[j]);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        moved[j] = fabs(n.factor) * with[j] + -fabs(n.factor) * without[j];
}

/* Scores of the tile and their bounds, of eight keys to a warp at a time. row: of the q tile, the block's first. MORE:
   operands may be off. */
template <bool MORE>
static __device__ void judge_scores(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int row, int key, const struct judge_room &room,
                                    double unit, int cols)
{
    const int D = n.head_dim, whole = judge_whole(D), upper = threadIdx.x % LANES / 4, left = threadIdx.x % 4 * 2;
    const double tiny = judge_tiny(n, work, tile, key, cols), scale = judge_inverse(unit);
    const double grown = n.score_grown * judge_grown() * unit;
    const float narrow = (float)scale, small = (float)(n.score_least * scale);
    for (int begin = threadIdx.x / LANES * 8; begin < cols; begin += JUDGE_ROW_THREADS / LANES * 8) {
        const float *keys = room.keys + begin * room.pitch_q;
        double sums[4] = {}, moved[4] = {};
        float sizes[1][4] = {};
        const float *const size_q[1] = {room.size_q};
        const auto taken = [&](int d, int col) {
            const float *of = keys + col * room.pitch_q;
            if (MORE && (begin + col >= cols || d >= D)) /* there are no scales for it */
                return 0.0;
            return MORE ? judge_taken(work.scales, n.input[1], of, key + begin + col, d) : (double)of[d];
        };
        const auto most = [&](int d, int col, double k) {
            return begin + col < cols && d < D ? judge_most(n.input[1], keys + col * room.pitch_q, d, k) : 0.0;
        };
        const auto size = [&](int d, int col) {
            if (MORE)
                return magnitude_narrow(judge_size(most(d, col, taken(d, col)), n.score_least), scale);
            const float x = keys[col * room.pitch_q + d];
            return x != 0 ? fmaxf(fabsf(x) * narrow, small) : 0;
        };
        judge_multiply(room.q, room.pitch_q, whole, taken, sums);
        judge_sizes(size_q, room.pitch_q, whole, size, sizes);
        if (MORE && room.most_q)
            judge_score_lossy(n, room, taken, most, moved);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = upper + i / 2 * 8, col = begin + left + i % 2;
            double score = n.factor * sums[i];
            double loose = ((double)sizes[0][i] + magnitude_lost(D)) * (grown * room.row[r * ROW_NUMBERS + ROW_Q]);
            if (col >= cols)
                continue;
            if (row + r < tile.rows) {
                judge_score(n, work, tile, row + r, key + col, tiny, moved[i], &score, &loose);
                judge_see(n, work, tile, row + r, key + col, &score, &loose);
            }
            room.score[r * n.bc + col] = score;
            room.loose[r * n.bc + col] = loose;
        }
    }
}

#endif
