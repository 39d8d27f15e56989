// fp8_mma: fp16_mma on codes. Both products are mma.sync m16n8k32 of e4m3, which takes twice as many elements from the
// same registers; weights become codes too. Scores stay in codes, the scales of Q and K are part of the exponential;
// U stays in codes, the scale of V leaves with the output.
//
// P lies between 0 and 1, where most of e4m3's numbers are of no use, so that it carries a factor of 2^8, as l and U
// do: 256 is well below 448, where the format ends. l sums weights as they are before they become codes.
//
// A block is 4 warps on one 64-row q tile, a kv tile has 64 keys; a warp owns 16 rows. Of an A operand of 16 x 32 a
// lane has columns 4 t .. 4 t + 3 and the same sixteen on (t = lane % 4) of rows g and g + 8 (g = lane / 4), of an
// accumulator of 16 x 8 columns 2 t and 2 t + 1. So that its scores are the weights it needs, the columns of two
// accumulators are taken to be keys 4 t, 4 t + 1 and 4 t + 2, 4 t + 3 of sixteen: K's rows are read in that order.
//
// B operands of P V have four keys of a column in a register, while V has four columns of a key in a word, and ldmatrix
// transposes pairs of bytes. Read in that same order of keys it gives a lane columns 2 g and 2 g + 1 of keys 4 t, 4 t +
// 1 from one matrix, of 4 t + 2, 4 t + 3 from the next; prmt picks the four bytes of column 2 g for one product and of
// 2 g + 1 for another. U's accumulators come in pairs, then: even columns, odd columns. All sums run over keys and
// columns in the order of the problem.
//
// Shared memory in bytes, head_dim 64 / 128. Rows are not padded: sixteen elements are a chunk, and chunk c of row r
// stands at c ^ swizzle(r), so that the eight rows that ldmatrix reads at once, neighbors or in the order above, lie
// in different banks.
//     k  [2][64][D] e4m3    8192   16384     before the first tile q [64][D] in the place of the second stage
//     v  [2][64][D] e4m3    8192   16384
//                          16384   32768
//
// Limits: precision, since P is rounded to three bits as well; sm_90, which has no such instruction and
// makes two of f16 and an addition of each, so that only wgmma is faster there; scales for blocks of rows, which would
// have to be applied tile by tile.

#include "ladder.cuh"

#include <cuda_fp8.h>

namespace
{

using namespace ladder;

constexpr int BR = 64, BC = 64, WARPS = 4, THREADS = 32 * WARPS;
constexpr float P_OFFSET = 8.0f; // log2 of the factor in P, l and U

struct ScaledParams : Params<__nv_fp8_e4m3, __nv_fp8_e4m3, __half> {
    const float *q_scale;           /* [batch][heads] */
    const float *k_scale, *v_scale; /* [batch][kv_heads] */
};

// c += a b, of 16 x 32 and 32 x 8.
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Codes of four numbers, the first in the lowest byte; what is beyond 448 becomes 448.
__device__ __forceinline__ uint32_t four(float x0, float x1, float x2, float x3)
{
    uint16_t low, high;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\n" : "=h"(low) : "f"(x1), "f"(x0));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\n" : "=h"(high) : "f"(x3), "f"(x2));
    return low | static_cast<uint32_t>(high) << 16;
}

// A line of shared memory, 128 bytes, holds 128 / D rows. Of rows 0 .. 7 and of rows 0, 1, 4, 5, 8, 9, 12, 13 those at
// the same place of their line differ here, and so do the other eight of sixteen.
template <int D> __device__ __forceinline__ int swizzle(int row)
{
    return (row ^ (row / 4 & 2)) % 8 / (128 / D);
}

// Where chunk `chunk` of row `row` of a tile begins, in elements.
template <int D> __device__ __forceinline__ int place(int row, int chunk)
{
    return row * D + (chunk ^ swizzle<D>(row)) * 16;
}

// Begins to copy rows first .. first + 63 of a head; rows beyond `rows` become zero.
template <int D>
__device__ __forceinline__ void copy_tile(__nv_fp8_e4m3 *tile, const __nv_fp8_e4m3 *head, int64_t row_stride, int first,
                                          int rows, bool aligned)
{
#pragma unroll
    for (int n = 0; n < 64 * D / 16 / THREADS; n++) {
        const int i = n * THREADS + threadIdx.x, r = i / (D / 16), chunk = i % (D / 16);
        const bool there = first + r < rows;
        __nv_fp8_e4m3 *to = tile + place<D>(r, chunk);
        const __nv_fp8_e4m3 *from = head + min(first + r, rows - 1) * row_stride + chunk * 16;
        if (aligned) {
            copy_async(shared_address(to), from, there ? 16 : 0);
        } else {
            for (int e = 0; e < 16; e++)
                to[e] = there ? from[e] : __nv_fp8_e4m3(0.0f);
        }
    }
}

// A tile's element as the probes see it.
#define AT(tile, row, col) (tile)[place<D>(row, (col) / 16) + (col) % 16]
// Element i of the accumulators of a warp's 16 rows, 8 columns each: its row; its key; its column of U.
#define ROW(i) (warp * 16 + g + (i) / 2 % 2 * 8)
#define KEY(i) ((i) / 8 * 16 + 4 * t + (i) / 4 % 2 * 2 + (i) % 2)
#define COL(i) ((i) / 8 * 16 + 4 * t + (i) % 2 * 2 + (i) / 4 % 2)

template <int D> __global__ void __launch_bounds__(THREADS) fp8_mma(ScaledParams p)
{
    constexpr int TILE = 64 * D;
    extern __shared__ __align__(128) unsigned char shared[];
    __nv_fp8_e4m3 *k_stages = reinterpret_cast<__nv_fp8_e4m3 *>(shared), *v_stages = k_stages + 2 * TILE;
    __nv_fp8_e4m3 *sq = k_stages + TILE;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, kv_head = head / p.group;
    const __nv_fp8_e4m3 *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const __nv_fp8_e4m3 *k = p.k + batch * p.kv_strides.batch + kv_head * p.kv_strides.head;
    const __nv_fp8_e4m3 *v = p.v + batch * p.kv_strides.batch + kv_head * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    // What a score of codes is worth, and the same for powers of two.
    const float score = p.scale * p.q_scale[batch * p.heads + head] * p.k_scale[batch * p.kv_heads + kv_head];
    const float score_log2 = score * 1.44269504088896340736f;

    const int keys = p.keys(q_tile, BR);
    // Up to here all rows of this warp see all keys.
    const int seen_by_all = p.seen(q_tile * BR + warp * 16);

    copy_tile<D>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
    copy_commit();
    if (keys > 0) {
        copy_tile<D>(k_stages, k, p.kv_strides.row, 0, p.kv_len, p.aligned);
        copy_tile<D>(v_stages, v, p.kv_strides.row, 0, p.kv_len, p.aligned);
    }
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, AT(sq, r, c));

    // Matrices of A: rows 0-7, rows 8-15, then the same sixteen columns on.
    uint32_t a_q[D / 32][4];
    const int q_row = warp * 16 + lane % 16;
#pragma unroll
    for (int d = 0; d < D / 32; d++)
        load_matrices(a_q[d], shared_address(sq + place<D>(q_row, 2 * d + lane / 16)));

    // Of the sixteen keys of four matrices of B this lane gives row 4 (c / 2) + c % 2 or the one two further, c being
    // its number in the matrix. Of K matrices are: keys, the same keys sixteen elements on, then the keys two further;
    // of V: keys, two further, then both of the next sixteen keys.
    const int key = lane % 8 / 2 * 4 + lane % 2, k_key = key + lane / 16 * 2;
    const int v_key = key + lane / 8 % 2 * 2 + lane / 16 * 16;
    const int k_swizzle = swizzle<D>(k_key), v_swizzle = swizzle<D>(v_key); // the same sixteen keys on

    float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.0f, 0.0f}; /* of rows g and g + 8 */
    float u[D / 8][4] = {};

    for (int kt = 0; kt * BC < keys; kt++) {
        copy_wait<0>();
        __syncthreads();
        __nv_fp8_e4m3 *sk = k_stages + kt % 2 * TILE, *sv = v_stages + kt % 2 * TILE;
        if ((kt + 1) * BC < keys) {
            const int other = (kt + 1) % 2, first = (kt + 1) * BC;
            copy_tile<D>(k_stages + other * TILE, k, p.kv_strides.row, first, p.kv_len, p.aligned);
            copy_tile<D>(v_stages + other * TILE, v, p.kv_strides.row, first, p.kv_len, p.aligned);
        }
        copy_commit();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, AT(sk, r, c));
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, AT(sv, r, c));

        // S = Q Kt, of codes.
        float s[BC / 8][4] = {};
        const uint32_t k_row = shared_address(sk) + k_key * D;
#pragma unroll
        for (int d = 0; d < D / 32; d++) {
#pragma unroll
            for (int n = 0; n < BC / 16; n++) {
                uint32_t b[4];
                load_matrices(b, k_row + n * 16 * D + ((2 * d + lane / 8 % 2) ^ k_swizzle) * 16);
                mma(s[2 * n], a_q[d], b[0], b[1]);
                mma(s[2 * n + 1], a_q[d], b[2], b[3]);
            }
        }
        if ((kt + 1) * BC > seen_by_all) {
#pragma unroll
            for (int i = 0; i < BC / 2; i++) {
                const int seen = p.seen(q_tile * BR + ROW(i)) - kt * BC;
                if (KEY(i) >= seen)
                    s[i / 4][i % 4] = -INFINITY;
            }
        }
        ASC_RECORD(s, kt, i, BC / 2, ROW(i), KEY(i), s[i / 4][i % 4]);

        float m_prev[2], alpha[2], base[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float largest = -INFINITY;
#pragma unroll
            for (int j = 0; j < BC / 8; j++)
                largest = fmaxf(largest, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
            m_prev[r] = m[r];
            m[r] = fmaxf(m[r], largest);
        }
        ASC_RECORD(m, kt, i, 2, warp * 16 + g + 8 * i, 0, m[i]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            base[r] = m[r] == -INFINITY ? 0.0f : m[r]; // no key yet: -inf - -inf would be NaN
            alpha[r] = exp2_fast((m_prev[r] - base[r]) * score_log2);
        }
        ASC_RECORD(alpha, kt, i, 2, warp * 16 + g + 8 * i, 0, alpha[i]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float shift = base[r] * score_log2 - P_OFFSET;
#pragma unroll
            for (int j = 0; j < BC / 8; j++)
#pragma unroll
                for (int e = 2 * r; e < 2 * r + 2; e++)
                    s[j][e] = exp2_fast(fmaf(s[j][e], score_log2, -shift));
        }
        ASC_RECORD(p, kt, i, BC / 2, ROW(i), KEY(i), s[i / 4][i % 4]);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            l[r] *= alpha[r];
#pragma unroll
            for (int j = 0; j < BC / 8; j++)
                l[r] += s[j][2 * r] + s[j][2 * r + 1];
        }
        ASC_RECORD(l, kt, i, 2, warp * 16 + g + 8 * i, t, l[i]);
#pragma unroll
        for (int j = 0; j < D / 8; j++) {
            u[j][0] *= alpha[0];
            u[j][1] *= alpha[0];
            u[j][2] *= alpha[1];
            u[j][3] *= alpha[1];
        }

        // U += P V, of codes.
        const uint32_t v_row = shared_address(sv) + v_key * D;
#pragma unroll
        for (int n = 0; n < BC / 32; n++) {
            uint32_t a_p[4];
#pragma unroll
            for (int x = 0; x < 4; x++) { // rows g, rows g + 8, then the same of the next sixteen keys
                const float(&low)[4] = s[4 * n + x / 2 * 2], (&high)[4] = s[4 * n + x / 2 * 2 + 1];
                const int e = x % 2 * 2;
                a_p[x] = four(low[e], low[e + 1], high[e], high[e + 1]);
            }
#pragma unroll
            for (int j = 0; j < D / 16; j++) {
                uint32_t b[4];
                load_matrices_transposed(b, v_row + n * 32 * D + (j ^ v_swizzle) * 16);
                mma(u[2 * j], a_p, __byte_perm(b[0], b[1], 0x6420), __byte_perm(b[2], b[3], 0x6420));
                mma(u[2 * j + 1], a_p, __byte_perm(b[0], b[1], 0x7531), __byte_perm(b[2], b[3], 0x7531));
            }
        }
        ASC_RECORD(u, kt, i, D / 2, ROW(i), COL(i), u[i / 4][i % 4]);
    }

    float factor[2]; /* of U, to O */
#pragma unroll
    for (int r = 0; r < 2; r++) {
        l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
        l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
        factor[r] = l[r] > 0.0f ? p.v_scale[batch * p.kv_heads + kv_head] / l[r] : 0.0f; // no key at all: zero
    }
    // Lane t = 0 tells the first row's, lane t = 1 the second's.
    const int own = warp * 16 + g + 8 * t;
    if (t < 2 && q_tile * BR + own < p.q_len) {
        const float l_own = t ? l[1] : l[0], m_own = t ? m[1] : m[0];
        float lse = l_own > 0.0f ? m_own * score + __logf(l_own) - P_OFFSET * 0.693147180559945309417f : -INFINITY;
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + q_tile * BR + own] = lse;
        ASC_RECORD_ROW(lse, 0, own, true, lse);
    }

    // A lane has four neighbors of each sixteen columns of a row, so that the four lanes of a row fill a sector.
#pragma unroll
    for (int r = 0; r < 2; r++) {
        __align__(8) __half out[D / 4];
#pragma unroll
        for (int i = 0; i < D / 4; i++)
            out[i] = __float2half(u[i / 4 * 2 + i % 2][2 * r + i / 2 % 2] * factor[r]);
        const int row = warp * 16 + g + 8 * r;
        ASC_RECORD(o, 0, i, D / 4, row, i / 4 * 16 + 4 * t + i % 4, out[i]);
        if (q_tile * BR + row >= p.q_len)
            continue;
        __half *o =
            p.o + batch * p.q_strides.batch + head * p.q_strides.head + (q_tile * BR + row) * p.q_strides.row + 4 * t;
#pragma unroll
        for (int j = 0; j < D / 16; j++) {
            if (p.aligned) {
                *reinterpret_cast<uint2 *>(o + j * 16) = *reinterpret_cast<const uint2 *>(out + j * 4);
            } else {
                for (int e = 0; e < 4; e++)
                    o[j * 16 + e] = out[j * 4 + e];
            }
        }
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (!(problem->scale > 0))
        return "the maximum is taken before scores are scaled: scale must be above 0";
    if (problem->scale_rows > 0)
        return "scales are applied to scores and to the output, one for each head: quant.scales must be tensor or head";
    return plan_tiles(problem, plan, BR, BC, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_head_dim<ASC_E4M3, __nv_fp8_e4m3>(problem, [&](auto, auto head_dim) {
        constexpr int D = head_dim;
        auto p = params_of<ScaledParams>(problem);
        p.q_scale = problem->q_scale;
        p.k_scale = problem->k_scale;
        p.v_scale = problem->v_scale;
        return ASC_LAUNCH((fp8_mma<D>), grid_of(problem, BR), THREADS, (4 * 64 * D), stream, p);
    });
}

} // namespace

ASC_KERNEL(fp8_mma)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(E4M3);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.o_dtype = ASC_F16;
    kernel.conventions.s_unit = ASC_UNIT_RAW;
    kernel.conventions.m_unit = ASC_UNIT_RAW;
    // On sm_90 and on sm_89, which add up in different ways: which of them it was is seen from what came out.
    kernel.conventions.acc_s = ASC_ACC_MMA_E4M3;
    kernel.conventions.acc_u = ASC_ACC_MMA_E4M3;
    kernel.conventions.qk_descale = ASC_QK_FOLDED;
    kernel.conventions.v_descale = ASC_V_OUTPUT;
    kernel.conventions.p_rounded = ASC_P_E4M3;
    kernel.conventions.p_offset = static_cast<int32_t>(P_OFFSET);
    kernel.conventions.l_lanes = 4;
    kernel.conventions.empty_lse_negative = 1;
}
