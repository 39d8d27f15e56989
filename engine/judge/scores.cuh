/* Scores of a tile and their bounds: oracle/score.c. */
#ifndef JUDGE_SCORES_CUH
#define JUDGE_SCORES_CUH

#include "engine/judge/tiles.cuh"

/* A row's threads, which follow each other. */
enum { ROW_LANES = JUDGE_ROW_THREADS / ROWS };

/* What a row's sums have come to at an end: of all tiles, or of a split's. */
struct judge_state {
    double max, max_bound, frame, sum, sum_error, turned, l, l_variance, squares;
};

/* Magnitudes of weights, of U and of what it errs by are sums of f32 in units of 2^-24, U's of that of V's unit,
   variances in their squares: so those of the largest and of the smallest weights stay numbers. V may be up to
   JUDGE_V_MOST of its units; of a larger one nothing is said. */
#define JUDGE_LIFT 0x1p24
#define JUDGE_V_MOST 0x1p20
/* Numbers that f32 made in a dozen operations are too small by a 2^-20 at most. */
#define JUDGE_ROUNDED (1 + 0x1p-20)

/* What one of a row's threads has of it, of the keys that are its own. l and what follows are in JUDGE_LIFT's units. */
struct judge_share {
    float max_bound, l, l_variance, squares;
    int first, last, keys; /* of the row, see judge_range */
    bool open;
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
/* To the nearest tf32 of x, which is not negative; a half goes up, and what is no number becomes infinite. */
static __device__ float judge_tf32(float x)
{
    return format_f32_of((min(format_f32_bits(x), 0x7F800000u) + 0x1000u) & ~0x1FFFu);
}
/* The f32 at or above x, which is not negative. */
static __device__ float judge_up(double x)
{
    return (float)(x * (1 + 0x1p-23));
}
/* A factor of magnitudes, which is not negative. A tensor core may take what is below BOUND_TINY for 0: none is. */
static __device__ float judge_narrow(float x)
{
    return judge_tf32(x + 0x1p-125f);
}
/* As magnitude_grown() of such sums: two operands are up to 2^-11 smaller each, and a tensor core loses at most 9 2^-23
   of the sum per 8 products, up to 64 times. They may as well be as much larger: such a sum is 0.3 % above the true one
   at most, and no smaller. What underflows is magnitude_lost(). */
static __device__ double judge_grown()
{
    return 1 + 0x1.4p-10;
}

/* An element of B: what the products take of it, and magnitudes. */
template <int KINDS> struct judge_factor {
    double taken;
    float size[KINDS];
};

/* Arrays of magnitudes that are factors: all meet the first kind but the fourth and the fifth. */
static __device__ constexpr int judge_kind(int array)
{
    return array < 3 ? 0 : array - 2;
}

/* c += A B of a warp: 16 rows of A, `pitch` apart, 8 columns of B, k of them, whole instructions. A lane has of c rows
   lane / 4 and that + 8, of each the columns lane % 4 * 2 and the one behind. Tensor cores of Hopper make of float64
   what one fma() after the other does, in ascending k (measured in all of 25,600 products), which is what the CPU has;
   that others do has not been seen. And sums[i] += A[i] B of magnitudes, in f32: A of 16 rows, pitch_sizes apart, of
   tf32, the first n arrays or ALL. b(k, more, column): of row k + more, where `more` is known to the compiler. EXACT:
   magnitudes of the first kind are of tf32 as they are. */
template <int ARRAYS, int KINDS, bool EXACT, bool ALL, class B>
static __device__ void judge_multiply(const double *a, int pitch, const float *const (&sizes)[ARRAYS], int pitch_sizes,
                                      int n, int k, const B &b, double (&c)[4], float (&sums)[ARRAYS][4])
{
    const int lane = threadIdx.x % LANES, row = lane / 4, quarter = lane % 4;
    const double *upper = a + row * pitch, *lower = upper + 8 * pitch;
    const auto narrowed = [](float x, int array) { return EXACT && judge_kind(array) == 0 ? x : judge_tf32(x); };
#if JUDGE_HAS_CORES
    /* Where a lane's row of a fragment of magnitudes begins. */
    const int begin = (lane % 16 * pitch_sizes + lane / 16 * 4) * (int)sizeof(float);
    uint32_t fragment[ARRAYS];
#pragma unroll
    for (int j = 0; j < ARRAYS; j++)
        fragment[j] = (uint32_t)__cvta_generic_to_shared(sizes[j]) + begin;
#pragma unroll 4
    for (int i = 0; i < k; i += 8) {
        const struct judge_factor<KINDS> y[2] = {
            b(i + quarter, 0, row), b(i + quarter, 4, row)
        };
#if JUDGE_HAS_F64_CORES
        const double *left = upper + quarter + i, *right = lower + quarter + i;
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(left[0]), "d"(right[0]), "d"(left[4]), "d"(right[4]), "d"(y[0].taken), "d"(y[1].taken));
#endif
#pragma unroll
        for (int j = 0; j < ARRAYS; j++) {
            uint32_t x[4];
            if (!ALL && j >= n)
                break;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                         : "r"(fragment[j] + i * (int)sizeof(float)));
            const float first = narrowed(y[0].size[judge_kind(j)], j), second = narrowed(y[1].size[judge_kind(j)], j);
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                "{%0, %1, %2, %3};"
                : "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(format_f32_bits(first)),
                  "r"(format_f32_bits(second)));
        }
    }
#endif
#if !JUDGE_HAS_F64_CORES
    for (int i = 0; i < k; i++)
#pragma unroll
        for (int side = 0; side < 2; side++) {
            const struct judge_factor<KINDS> y = b(i, 0, 2 * quarter + side);
            c[side] = fma(upper[i], y.taken, c[side]);
            c[2 + side] = fma(lower[i], y.taken, c[2 + side]);
#if !JUDGE_HAS_CORES
            for (int j = 0; j < (ALL ? ARRAYS : n); j++)
                for (int half = 0; half < 2; half++)
                    sums[j][2 * half + side] = fmaf(sizes[j][(row + 8 * half) * pitch_sizes + i],
                                                    narrowed(y.size[judge_kind(j)], j), sums[j][2 * half + side]);
#endif
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

/* Scores of the tile and their bounds, of eight keys to a warp at a time. row: of the q tile, the block's first; unit:
   of K's magnitudes. MORE: operands may be off. */
template <class ELEMENT, int DIM, bool MORE>
static __device__ void judge_scores(const struct judge_numbers &n, const struct judge_arrays &work,
                                    const struct judge_tile &tile, int row, int key, const struct judge_room &room,
                                    double unit, int cols)
{
    enum { PLAIN = DIM > 0 }; /* nothing is between products and the softmax but a factor */
    const int D = judge_dim<DIM>(n.head_dim), upper = threadIdx.x % LANES / 4, left = threadIdx.x % 4 * 2;
    const double tiny = PLAIN ? n.score_tiny * fmax(1.0, fabs(n.factor)) : judge_tiny(n, work, tile, key, cols),
                 scale = judge_inverse(unit);
    const double grown = n.score_grown * judge_grown() * unit;
    const float narrow = (float)scale, small = (float)(n.score_least * scale);
    for (int begin = threadIdx.x / LANES * 8; begin < cols; begin += WARPS_OF_ROWS * 8) {
        const ELEMENT *keys = (const ELEMENT *)room.keys + begin * room.pitch_k;
        double sums[4] = {}, moved[4] = {};
        float sizes[1][4] = {};
        const float *const size_q[1] = {room.size_q};
        const auto taken = [&](int d, int col) {
            if (begin + col >= cols || d >= D) /* there are no scales for it */
                return 0.0;
            return judge_taken(work.scales, n.input[1], keys + col * room.pitch_k, key + begin + col, d);
        };
        const auto most = [&](int d, int col, double k) {
            return begin + col < cols && d < D ? judge_most(n.input[1], keys + col * room.pitch_k, d, k) : 0.0;
        };
        const auto factor = [&](int d, int more, int col) {
            struct judge_factor<1> y;
            if (MORE) {
                y.taken = taken(d + more, col);
                y.size[0] = magnitude_narrow(judge_size(most(d + more, col, y.taken), n.score_least), scale);
            } else {
                const float x = judge_number((keys + col * room.pitch_k + d)[more]);
                y.taken = (double)x;
                y.size[0] = x != 0 ? fmaxf(ELEMENT::UNIT ? fabsf(x) : fabsf(x) * narrow, small) : 0;
            }
            return y;
        };
        judge_multiply<1, 1, ELEMENT::EXACT && !MORE, true>(room.q, room.pitch_q, size_q, room.pitch_q, 1,
                                                            judge_whole(D), factor, sums, sizes);
        if (MORE && room.most_q)
            judge_score_lossy(n, room, taken, most, moved);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = upper + i / 2 * 8, col = begin + left + i % 2;
            double score = n.factor * sums[i];
            double loose = ((double)sizes[0][i] + magnitude_lost(D)) * (grown * room.row[r * ROW_NUMBERS + ROW_Q]);
            if (col >= cols)
                continue;
            if (PLAIN)
                loose += tiny;
            else if (row + r < tile.rows) {
                judge_score(n, work, tile, row + r, key + col, tiny, moved[i], &score, &loose);
                judge_see(n, work, tile, row + r, key + col, &score, &loose);
            }
            room.weight[r * room.pitch_p + col] = score;
            room.loose[r * room.pitch_p + col] = judge_up(loose);
        }
    }
}

#endif
