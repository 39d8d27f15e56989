// v2c_wmma: v2c_wmma_qk with P V on tensor cores as well. U stays in accumulator fragments from the first kv tile to
// the last, so that the rescaling by alpha has to know which row each of its elements is of. CUDA does not tell; a
// fragment that is loaded from a tile of indices, each element its own place, does.
//
// A block is 4 warps on one 64-row q tile, a kv tile has 64 keys; a warp owns 16 rows. Weights are rounded to the type
// of V and stored over the scores, from where they are loaded as fragments.
//
// Shared memory in bytes, head_dim 64 / 128 (paddings as in v2c_wmma_qk, now for V and P too):
//     k   [2][64][D + 8] T    18432   34816
//     v   [2][64][D + 8] T    18432   34816
//     q   [64][D + 8] T        9216   17408     gone before the first scores come
//     s   [64][72] f32        18432   18432     in the place of q; p [64][72] T and at the end u in that of s
//                             55296   88064
//
// Limits: the way through shared memory, twice for each tile (S there and back as f32, P once more), which
// mma.sync with its known layout needs not at all.

#include "ladder.cuh"

#include <mma.h>

namespace
{

using namespace ladder;
using namespace nvcuda;

constexpr int BR = 64, BC = 64, WARPS = 4, THREADS = 32 * WARPS;
constexpr int LDS = BC + 8; // floats in a row of scores

template <class T, int D> struct Shared {
    static constexpr int LD = D + 8, TILE = BC * LD; /* elements of a row, of a tile */
    static constexpr size_t bytes = 4 * TILE * sizeof(T) + BR * LDS * sizeof(float);
    static_assert(BR * LD * sizeof(T) <= BR * LDS * sizeof(float), "Q has the place of the scores");
};

// The element e of those that a lane has of a row of scores is this key of the tile.
#define KEY(e) ((e) / 4 * 8 + half * 4 + (e) % 4)

template <class T, int D> __global__ void __launch_bounds__(THREADS) v2c_wmma(Params<T> p)
{
    using L = Shared<T, D>;
    constexpr int LDQ = L::LD, LDK = L::LD, LDV = L::LD, LDP = BC + 8;
    extern __shared__ __align__(128) unsigned char shared[];
    T *k_stages = reinterpret_cast<T *>(shared), *v_stages = k_stages + 2 * L::TILE, *sq = v_stages + 2 * L::TILE;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const T *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const T *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const T *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    // Tiles beyond the reach of the tile's last row hold nothing for anybody.
    const int last_row = min(q_tile * BR + BR, p.q_len) - 1;
    const int keys = min(p.kv_len, last_row + p.reach + 1);

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

    float *strip = reinterpret_cast<float *>(v_stages + 2 * L::TILE) + warp * 16 * LDS; // this warp's scores
    T *weights = reinterpret_cast<T *>(strip);                                          // [16][LDP]
    const int row = lane / 2, half = lane % 2; // of the strip; which of its lanes
    float m = -INFINITY, l = 0.0f;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> map, u[D / 16];
    for (int e = lane; e < 256; e += 32)
        strip[e] = static_cast<float>(e / 16 * 32 + e % 16); // row * 32 + column
    __syncwarp();
    wmma::load_matrix_sync(map, strip, 16, wmma::mem_row_major);
#pragma unroll
    for (int j = 0; j < D / 16; j++)
        wmma::fill_fragment(u[j], 0.0f);

    for (int kt = 0; kt * BC < keys; kt++) {
        T *sk = k_stages + kt % 2 * L::TILE, *sv = v_stages + kt % 2 * L::TILE;
        if ((kt + 1) * BC < keys) {
            const int other = (kt + 1) % 2, first = (kt + 1) * BC;
            copy_tile<T, D, LDK, BC, THREADS>(k_stages + other * L::TILE, k, p.kv_strides.row, first, p.kv_len,
                                              p.aligned);
            copy_tile<T, D, LDV, BC, THREADS>(v_stages + other * L::TILE, v, p.kv_strides.row, first, p.kv_len,
                                              p.aligned);
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
        const int seen = min(p.kv_len, q_tile * BR + warp * 16 + row + p.reach + 1) - kt * BC;
#pragma unroll
        for (int e = 0; e < 32; e++)
            s[e] = KEY(e) < seen ? s[e] * p.scale : -INFINITY;
        ASC_RECORD(s, kt, i, 32, warp * 16 + row, KEY(i), s[i]);

        float largest = -INFINITY;
#pragma unroll
        for (int e = 0; e < 32; e++)
            largest = fmaxf(largest, s[e]);
        const float m_prev = m;
        m = fmaxf(m, fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1)));
        ASC_RECORD_ROW(m, kt, warp * 16 + row, half == 0, m);
        const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
        float alpha = __expf(m_prev - base);
        ASC_RECORD_ROW(alpha, kt, warp * 16 + row, half == 0, alpha);
#pragma unroll
        for (int e = 0; e < 32; e++)
            s[e] = __expf(s[e] - base);
        ASC_RECORD(p, kt, i, 32, warp * 16 + row, KEY(i), s[i]);
        float sum = 0.0f;
#pragma unroll
        for (int e = 0; e < 32; e++)
            sum += s[e];
        l = l * alpha + sum + __shfl_xor_sync(0xffffffffu, sum, 1);
        ASC_RECORD_ROW(l, kt, warp * 16 + row, half == 0, l);
        __syncwarp(); // all scores of the strip have been read
#pragma unroll
        for (int g = 0; g < 8; g++) {
#pragma unroll
            for (int e = 4 * g; e < 4 * g + 4; e++)
                from_float(weights[row * LDP + KEY(e)], s[e]);
        }
        __syncwarp();

#pragma unroll
        for (int e = 0; e < map.num_elements; e++) {
            const float factor = __shfl_sync(0xffffffffu, alpha, static_cast<int>(map.x[e]) / 32 * 2);
#pragma unroll
            for (int j = 0; j < D / 16; j++)
                u[j].x[e] *= factor;
        }
#pragma unroll
        for (int n = 0; n < BC / 16; n++) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fp;
            wmma::load_matrix_sync(fp, weights + n * 16, LDP);
#pragma unroll
            for (int j = 0; j < D / 16; j++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> fv;
                wmma::load_matrix_sync(fv, sv + n * 16 * LDV + j * 16, LDV);
                wmma::mma_sync(u[j], fp, fv, u[j]);
            }
        }
        ASC_RECORD_FRAGMENT(u, kt, warp * 16, 0, u);
        __syncthreads(); // the tile after the next is copied into this stage
    }

    const float inverse = l > 0.0f ? 1.0f / l : 0.0f; // a row without any key gives zero
    if (half == 0 && q_tile * BR + warp * 16 + row < p.q_len) {
        float lse = l > 0.0f ? m + __logf(l) : -INFINITY;
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + q_tile * BR + warp * 16 + row] = lse;
        ASC_RECORD_ROW(lse, 0, warp * 16 + row, true, lse);
    }
#pragma unroll
    for (int e = 0; e < map.num_elements; e++) {
        const float factor = __shfl_sync(0xffffffffu, inverse, static_cast<int>(map.x[e]) / 32 * 2);
#pragma unroll
        for (int j = 0; j < D / 16; j++)
            u[j].x[e] *= factor;
    }
    const int global_row = q_tile * BR + warp * 16 + row;
    T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + global_row * p.q_strides.row;
#pragma unroll
    for (int side = 0; side < D; side += BC) { // a row of scores has room for this many columns
        __syncwarp();
#pragma unroll
        for (int n = 0; n < BC / 16; n++)
            wmma::store_matrix_sync(strip + n * 16, u[side / 16 + n], LDS, wmma::mem_row_major);
        __syncwarp();
        if (global_row >= p.q_len)
            continue;
#pragma unroll
        for (int g = 0; g < BC / 16; g++) {
            const int col = (2 * g + half) * 8;
            __align__(16) T out[8];
#pragma unroll
            for (int e = 0; e < 8; e++)
                from_float(out[e], strip[row * LDS + col + e]);
            ASC_RECORD(o, 0, i, 8, warp * 16 + row, side + col + i, out[i]);
            if (p.aligned) {
                *reinterpret_cast<uint4 *>(o + side + col) = *reinterpret_cast<const uint4 *>(out);
            } else {
                for (int e = 0; e < 8; e++)
                    o[side + col + e] = out[e];
            }
        }
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
        return ASC_LAUNCH((v2c_wmma<T, D>), grid_of(problem, BR), THREADS, (Shared<T, D>::bytes), stream, p);
    });
}

} // namespace

ASC_KERNEL(v2c_wmma)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.acc_s = ASC_ACC_MMA;
    kernel.conventions.acc_u = ASC_ACC_MMA;
    kernel.conventions.p_rounded = ASC_P_INPUT;
    kernel.conventions.empty_lse_negative = 1;
}
