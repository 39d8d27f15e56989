// v2c_wmma_qk: v2c_cpasync with Q Kt on tensor cores, through WMMA fragments of 16x16x16. A warp owns 16 rows now,
// since that is what a fragment has, and keeps their Q in fragments for the whole run. Scores come out in a layout that
// CUDA does not tell, so they go through shared memory, where two lanes take a row of them each: one shuffle for a
// maximum or a sum instead of five. Weights take the place of the scores they were made of.
//
// A block is 4 warps on one 64-row q tile, a kv tile has 64 keys. P V is scalar: half a warp takes the even rows of the
// 16 and the other half the odd ones, a lane head_dim / 16 neighboring columns; a row of V that has been read is used
// for 8 rows at once.
//
// Shared memory in bytes, head_dim 64 / 128. Rows of Q and K are padded by 16 bytes, so that the 8 rows of which a
// fragment reads 16 bytes each meet all 32 banks; rows of scores by 32 bytes, so that 8 lanes on 4 rows do.
//     k   [2][64][D + 8] T    18432   34816
//     v   [2][64][D] T        16384   32768
//     q   [64][D + 8] T        9216   17408     gone before the first scores come
//     s,p [64][72] f32        18432   18432     in the place of q
//                             53248   86016
//
// Limits: P V, which now takes nearly all of the time, and the way of S through shared memory, there and
// back.

#include "ladder.cuh"

#include <mma.h>

namespace
{

using namespace ladder;
using namespace nvcuda;

constexpr int BR = 64, BC = 64, WARPS = 4, THREADS = 32 * WARPS;
constexpr int LDS = BC + 8; // floats in a row of scores

// N neighboring elements, 4 or 8.
template <class T, int N> __device__ __forceinline__ void load_columns(float (&out)[N], const T *from)
{
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const uint2 x = *reinterpret_cast<const uint2 *>(from + i);
        const float2 a = widen(x.x, T()), b = widen(x.y, T());
        out[i] = a.x;
        out[i + 1] = a.y;
        out[i + 2] = b.x;
        out[i + 3] = b.y;
    }
}

template <class T, int D> struct Shared {
    static constexpr int LDK = D + 8, K = BC * LDK, V = BC * D; /* elements of a row, of a tile */
    static constexpr size_t bytes = 2 * (K + V) * sizeof(T) + BR * LDS * sizeof(float);
    static_assert(BR * LDK * sizeof(T) <= BR * LDS * sizeof(float), "Q has the place of the scores");
};

// The element e of those that a lane has of a row of scores is this key of the tile.
#define KEY(e) ((e) / 4 * 8 + half * 4 + (e) % 4)

template <class T, int D, bool asc_probed> __global__ void __launch_bounds__(THREADS) v2c_wmma_qk(Params<T> p)
{
    using L = Shared<T, D>;
    constexpr int LDQ = L::LDK, LDK = L::LDK, LDV = D, COLS = D / 16;
    extern __shared__ __align__(128) unsigned char shared[];
    T *k_stages = reinterpret_cast<T *>(shared), *v_stages = k_stages + 2 * L::K, *sq = v_stages + 2 * L::V;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const T *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const T *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const T *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    const int keys = p.keys(q_tile, BR);

    copy_tile<T, D, LDQ, BR, THREADS>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
    __pipeline_commit();
    if (keys > 0) {
        copy_tile<T, D, LDK, BC, THREADS>(k_stages, k, p.kv_strides.row, 0, p.kv_len, p.aligned);
        copy_tile<T, D, LDV, BC, THREADS>(v_stages, v, p.kv_strides.row, 0, p.kv_len, p.aligned);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * LDQ + c]);

    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fq[D / 16];
#pragma unroll
    for (int d = 0; d < D / 16; d++)
        wmma::load_matrix_sync(fq[d], sq + warp * 16 * LDQ + d * 16, LDQ);
    __syncthreads(); // from here on the place of Q belongs to the scores

    float *strip = reinterpret_cast<float *>(v_stages + 2 * L::V) + warp * 16 * LDS; // this warp's scores
    const int row = lane / 2, half = lane % 2;                                       // of the strip; which of its lanes
    float m = -INFINITY, l = 0.0f;
    const int parity = lane / 16, col = lane % 16 * COLS;
    float u[8][COLS] = {}; // row 2 r + parity of the strip, columns col ..

    for (int kt = 0; kt * BC < keys; kt++) {
        T *sk = k_stages + kt % 2 * L::K, *sv = v_stages + kt % 2 * L::V;
        if ((kt + 1) * BC < keys) {
            const int other = (kt + 1) % 2, first = (kt + 1) * BC;
            copy_tile<T, D, LDK, BC, THREADS>(k_stages + other * L::K, k, p.kv_strides.row, first, p.kv_len, p.aligned);
            copy_tile<T, D, LDV, BC, THREADS>(v_stages + other * L::V, v, p.kv_strides.row, first, p.kv_len, p.aligned);
        }
        __pipeline_commit();      // of nothing, behind the last tile
        __pipeline_wait_prior(1); // this tile is there, the next one may be under way
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * LDK + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, sv[r * LDV + c]);

        // S = Q Kt: keys are the columns of a column-major matrix whose columns are the rows of the K tile.
#pragma unroll
        for (int n = 0; n < BC / 16; n++) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
            wmma::fill_fragment(acc, 0.0f);
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> fk;
                wmma::load_matrix_sync(fk, sk + n * 16 * LDK + d * 16, LDK);
                wmma::mma_sync(acc, fq[d], fk, acc);
            }
            wmma::store_matrix_sync(strip + n * 16, acc, LDS, wmma::mem_row_major);
        }
        __syncwarp();

        // Two lanes share a row; a lane has every other group of four keys.
        float s[32];
#pragma unroll
        for (int g = 0; g < 8; g++) {
            const float4 x = *reinterpret_cast<const float4 *>(strip + row * LDS + KEY(4 * g));
            s[4 * g] = x.x;
            s[4 * g + 1] = x.y;
            s[4 * g + 2] = x.z;
            s[4 * g + 3] = x.w;
        }
        const int seen = p.seen(q_tile * BR + warp * 16 + row) - kt * BC;
#pragma unroll
        for (int e = 0; e < 32; e++)
            s[e] = KEY(e) < seen ? s[e] * p.scale : -INFINITY;
        ASC_RECORD(s, kt, i, 32, warp * 16 + row, KEY(i), s[i]);

        const float m_prev = m, largest = largest_of(s);
        m = fmaxf(m, fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1)));
        ASC_RECORD_ROW(m, kt, warp * 16 + row, half == 0, m);
        const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
        float alpha = __expf(m_prev - base);
        ASC_RECORD_ROW(alpha, kt, warp * 16 + row, half == 0, alpha);
#pragma unroll
        for (int e = 0; e < 32; e++)
            s[e] = __expf(s[e] - base);
        ASC_RECORD(p, kt, i, 32, warp * 16 + row, KEY(i), s[i]);
        const float sum = sum_of(s);
        l = l * alpha + sum + __shfl_xor_sync(0xffffffffu, sum, 1);
        ASC_RECORD_ROW(l, kt, warp * 16 + row, half == 0, l);
#pragma unroll
        for (int g = 0; g < 8; g++)
            *reinterpret_cast<float4 *>(strip + row * LDS + KEY(4 * g)) =
                make_float4(s[4 * g], s[4 * g + 1], s[4 * g + 2], s[4 * g + 3]);
        __syncwarp();

#pragma unroll
        for (int r = 0; r < 8; r++) {
            const float factor = __shfl_sync(0xffffffffu, alpha, 2 * (2 * r + parity));
#pragma unroll
            for (int i = 0; i < COLS; i++)
                u[r][i] *= factor;
        }
        for (int key = 0; key < BC; key += 4) {
            float x[4][COLS];
#pragma unroll
            for (int e = 0; e < 4; e++)
                load_columns<T, COLS>(x[e], sv + (key + e) * LDV + col);
#pragma unroll
            for (int r = 0; r < 8; r++) {
                const float4 w = *reinterpret_cast<const float4 *>(strip + (2 * r + parity) * LDS + key);
#pragma unroll
                for (int i = 0; i < COLS; i++)
                    u[r][i] += w.x * x[0][i] + w.y * x[1][i] + w.z * x[2][i] + w.w * x[3][i];
            }
        }
#pragma unroll
        for (int r = 0; r < 8; r++)
            ASC_RECORD(u, kt, i, COLS, warp * 16 + 2 * r + parity, col + i, u[r][i]);
        __syncthreads(); // the tile after the next is copied into this stage
    }

    const float inverse = l > 0.0f ? 1.0f / l : 0.0f; // a row without any key gives zero
    if (half == 0 && q_tile * BR + warp * 16 + row < p.q_len) {
        float lse = l > 0.0f ? m + __logf(l) : -INFINITY;
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + q_tile * BR + warp * 16 + row] = lse;
        ASC_RECORD_ROW(lse, 0, warp * 16 + row, true, lse);
    }
#pragma unroll
    for (int r = 0; r < 8; r++) {
        const int strip_row = 2 * r + parity, global_row = q_tile * BR + warp * 16 + strip_row;
        const float factor = __shfl_sync(0xffffffffu, inverse, 2 * strip_row);
        if (global_row >= p.q_len)
            continue;
        T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + global_row * p.q_strides.row + col;
        __align__(16) T out[COLS];
#pragma unroll
        for (int i = 0; i < COLS; i++)
            from_float(out[i], u[r][i] * factor);
        ASC_RECORD(o, 0, i, COLS, warp * 16 + strip_row, col + i, out[i]);
#pragma unroll
        for (int i = 0; i < COLS; i++)
            o[i] = out[i];
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    return plan_tiles(problem, plan, BR, BC, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return for_instance(problem, [&](auto type, auto head_dim) {
        using T = decltype(type);
        constexpr int D = head_dim;
        const auto p = params_of<Params<T>>(problem);
        return ASC_TWICE(ASC_LAUNCH((v2c_wmma_qk<T, D, asc_probed>), grid_of(problem, BR), THREADS,
                                    (Shared<T, D>::bytes), stream, p));
    });
}

} // namespace

ASC_KERNEL(v2c_wmma_qk)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.acc_s = ASC_ACC_MMA;
    kernel.conventions.empty_lse_negative = 1;
}
