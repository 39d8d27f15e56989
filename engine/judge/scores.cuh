/* Scores of a tile and their bounds: oracle/score.c. */
#ifndef JUDGE_SCORES_CUH
#define JUDGE_SCORES_CUH

#include "engine/judge/tiles.cuh"

/* What all threads of a row know of it. */
struct judge_state {
    double max, max_bound, frame, start, sum, sum_error, turned, l, l_variance, squares;
    double unit_q;
    int first, last, keys;
    bool open;
};

/* An element of U as far as the tiles have come. */
struct judge_element {
    double sum, error;
    struct likely_value likely;
};

/* deal_weights() of likely.c, but for the decay of *squares. */
static __device__ void judge_deal_weights(const struct judge_numbers &n, const double *weight, int cols, double p_unit,
                                          double decay, double *bins, double *squares)
{
    const double per_unit = p_unit > 0 ? 1 / p_unit : 0;
    for (int i = 0; decay != 1 && i < JUDGE_BINS; i++)
        bins[i] *= decay;
    for (int i = 0; i < cols; i++) {
        const double w = weight[i], p = w * per_unit;
        if (!(w > 0) || !(fabs(p) <= DBL_MAX))
            continue;
        bins[likely_bin(p, n.bin_bits, n.bin_least, JUDGE_BINS)] += w;
        *squares += w * w;
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

/* Scores of the tile and their bounds: every thread one column of EACH rows at a time. row: of the q tile, the block's
   first. MORE: operands may be off. */
template <int EACH, bool MORE>
static __device__ void judge_scores(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int row, int key, const struct judge_room &room,
                                    double unit, double tiny, int cols)
{
    enum { WIDE = ROWS * EACH, GROUPS = THREADS / WIDE };
    const int D = n.head_dim, first = threadIdx.x / WIDE;
    const double scale = 1 / unit;
    const bool lossy = MORE && room.most_q;
    for (int col = threadIdx.x % WIDE; col < cols; col += WIDE) {
        const float *keys = room.tile + col * (D + 1);
        double sums[EACH], with[MORE ? EACH : 1], without[MORE ? EACH : 1];
        float sizes[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++)
            sums[i] = 0, sizes[i] = 0, with[MORE ? i : 0] = 0, without[MORE ? i : 0] = 0;
        for (int d = 0; d < D; d++) {
            const double k = MORE ? judge_taken(work.scales, n.input[1], keys, key + col, d) : (double)keys[d];
            const double most = MORE ? judge_most(n.input[1], keys, d, k) : fabs(k);
            const float size = magnitude_narrow(judge_size(most, n.score_least), scale);
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int at = (first + i * GROUPS) * D + d;
                sums[i] = fma(room.q[at], k, sums[i]);
                sizes[i] = fmaf(room.size_q[at], size, sizes[i]);
                if (lossy) {
                    with[MORE ? i : 0] = fma(room.most_q[at], most, with[MORE ? i : 0]);
                    without[MORE ? i : 0] = fma(fabs(room.q[at]), fabs(k), without[MORE ? i : 0]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int r = first + i * GROUPS;
            const double grown = n.score_grown * magnitude_grown(unit * room.row[r * ROW_NUMBERS + ROW_W], D);
            double score = n.factor * sums[i], loose = ((double)sizes[i] + magnitude_lost(D)) * grown;
            if (row + r < tile.rows) {
                judge_score(n, work, tile, row + r, key + col, tiny,
                            lossy ? fabs(n.factor) * with[MORE ? i : 0] + -fabs(n.factor) * without[MORE ? i : 0] : 0,
                            &score, &loose);
                judge_see(n, work, tile, row + r, key + col, &score, &loose);
            }
            room.score[r * n.bc + col] = score;
            room.loose[r * n.bc + col] = loose;
        }
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

template <bool MORE>
static __device__ void judge_scores_of(const struct judge_numbers &n, const struct judge_arrays &work,
                                       const struct judge_tile &tile, int row, int key, const struct judge_room &room,
                                       double unit, int cols)
{
    const double tiny = judge_tiny(n, work, tile, key, cols);
    if (n.bc <= 16)
        return judge_scores<1, MORE>(n, work, tile, row, key, room, unit, tiny, cols);
    if (n.bc <= 32)
        return judge_scores<2, MORE>(n, work, tile, row, key, room, unit, tiny, cols);
    if (n.bc <= 64)
        return judge_scores<4, MORE>(n, work, tile, row, key, room, unit, tiny, cols);
    judge_scores<8, MORE>(n, work, tile, row, key, room, unit, tiny, cols);
}

#endif
