// fp8_mixed: fp8_e4m3 with Q as it is, in f16. K and V are what fills memory, as a cache of keys and values does, and Q
// is read once: codes would save nothing there, and their rounding would add to that of K in every score.
//
// A block is 4 warps on one 64-row q tile, a kv tile has 64 keys; a warp owns 16 rows. The codes of the next kv tile
// are on their way by cp.async while this one is worked on. Each thread takes the codes that it copied itself, so that
// only the f16 tiles need barriers: one that they are there, one that they have been read.
//
// Shared memory in bytes, head_dim 64 / 128 (paddings as in v2c_wmma):
//     codes  [2][64][D] e4m3       8192   16384     of K and V
//     k      [64][D + 8] f16       9216   17408
//     v      [64][D + 8] f16       9216   17408
//     q      [64][D + 8] f16       9216   17408     gone before the first scores come
//     s      [64][72] f32         18432   18432     in the place of q; p [64][72] f16 and at the end u in that of s
//                                 45056   69632
//
// Known to be bad at: short kv, where there is little to save; speed, since all products are those of f16 and the
// conversion comes on top.

#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <limits.h>
#include <math.h>
#include <mma.h>

#include "attnscope.h"

namespace
{

using namespace nvcuda;

constexpr int BR = 64, BC = 64, WARPS = 4, THREADS = 32 * WARPS;
constexpr int LDS = BC + 8; // floats in a row of scores

// K or V: codes, and the scale that each `group_rows` rows of a head share.
struct Operand {
    const __nv_fp8_e4m3 *codes;
    const float *scales; /* [batch][heads][groups] */
    asc_strides strides;
    int heads, rows;
    int groups, group_rows;
};

struct Params {
    const __half *q;
    asc_strides q_strides;
    Operand k, v;
    __half *o;
    float *lse;       /* [batch][heads][q_len] */
    int heads, group; /* group: query heads that share a kv head */
    int q_len, kv_len;
    int reach; /* row i sees keys 0 .. i + reach */
    float scale;
    bool aligned; /* q, k, v and o to 16 bytes */
};

// One head of an operand.
struct Head {
    const __nv_fp8_e4m3 *codes;
    const float *scales;
    int64_t row_stride;
    int rows, group_rows;
};

__device__ __forceinline__ Head head_of(const Operand &x, int batch, int head)
{
    return {x.codes + batch * x.strides.batch + head * x.strides.head,
            x.scales + (static_cast<int64_t>(batch) * x.heads + head) * x.groups, x.strides.row, x.rows, x.group_rows};
}

// Begins to copy rows first .. first + 63 of a head of Q into rows of LD elements; rows beyond `rows` become zero.
template <int D, int LD>
__device__ void copy_tile(__half *tile, const __half *head, int64_t row_stride, int first, int rows, bool aligned)
{
    for (int i = threadIdx.x; i < 64 * D / 8; i += THREADS) {
        const int r = i / (D / 8), d = i % (D / 8) * 8;
        __half *to = tile + r * LD + d;
        const __half *from = head + (first + r) * row_stride + d;
        if (first + r >= rows) {
            *reinterpret_cast<uint4 *>(to) = make_uint4(0, 0, 0, 0);
        } else if (aligned) {
            __pipeline_memcpy_async(to, from, 16);
        } else {
            for (int e = 0; e < 8; e++)
                to[e] = from[e];
        }
    }
}

// Begins to copy the codes of rows first .. first + 63; rows beyond the head's become zero.
template <int D> __device__ void copy_codes(__nv_fp8_e4m3 *tile, const Head &x, int first, bool aligned)
{
    for (int i = threadIdx.x; i < 64 * D / 16; i += THREADS) {
        const int r = i / (D / 16), d = i % (D / 16) * 16;
        __nv_fp8_e4m3 *to = tile + r * D + d;
        const __nv_fp8_e4m3 *from = x.codes + (first + r) * x.row_stride + d;
        if (first + r >= x.rows) {
            *reinterpret_cast<uint4 *>(to) = make_uint4(0, 0, 0, 0);
        } else if (aligned) {
            __pipeline_memcpy_async(to, from, 16);
        } else {
            for (int e = 0; e < 16; e++)
                to[e] = from[e];
        }
    }
}

// The same elements as copy_codes, each thread those that it has copied. Every e4m3 number is an f16 number; the
// product with the scale is rounded to f16 once it is made in f32.
template <int D, int LD> __device__ void dequantize(__half *tile, const __nv_fp8_e4m3 *codes, const Head &x, int first)
{
    for (int i = threadIdx.x; i < 64 * D / 16; i += THREADS) {
        const int r = i / (D / 16), d = i % (D / 16) * 16;
        const float scale = x.scales[min(first + r, x.rows - 1) / x.group_rows];
        __align__(16) __nv_fp8x2_storage_t two[8];
        __align__(16) __half2 out[8];
        *reinterpret_cast<uint4 *>(two) = *reinterpret_cast<const uint4 *>(codes + r * D + d);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const float2 value = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(two[e], __NV_E4M3)));
            out[e] = __floats2half2_rn(value.x * scale, value.y * scale);
        }
        reinterpret_cast<uint4 *>(tile + r * LD + d)[0] = reinterpret_cast<const uint4 *>(out)[0];
        reinterpret_cast<uint4 *>(tile + r * LD + d)[1] = reinterpret_cast<const uint4 *>(out)[1];
    }
}

template <int D> struct Shared {
    static constexpr int LD = D + 8, TILE = BC * LD; /* elements of a row, of a tile */
    static constexpr size_t bytes = 2 * BC * D + 2 * TILE * sizeof(__half) + BR * LDS * sizeof(float);
    static_assert(BR * LD * sizeof(__half) <= BR * LDS * sizeof(float), "Q has the place of the scores");
};

// The element e of those that a lane has of a row of scores is this key of the tile.
#define KEY(e) ((e) / 4 * 8 + half * 4 + (e) % 4)

template <int D> __global__ void __launch_bounds__(THREADS) fp8_mixed(Params p)
{
    using L = Shared<D>;
    constexpr int LD = L::LD, LDP = BC + 8;
    extern __shared__ __align__(128) unsigned char shared[];
    __nv_fp8_e4m3 *k_codes = reinterpret_cast<__nv_fp8_e4m3 *>(shared), *v_codes = k_codes + BC * D;
    __half *sk = reinterpret_cast<__half *>(v_codes + BC * D), *sv = sk + L::TILE, *sq = sv + L::TILE;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const __half *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const Head k = head_of(p.k, batch, head / p.group), v = head_of(p.v, batch, head / p.group);
    ASC_AT(batch, head, q_tile);

    // Tiles beyond the reach of the tile's last row hold nothing for anybody.
    const int last_row = min(q_tile * BR + BR, p.q_len) - 1;
    const int keys = min(p.kv_len, last_row + p.reach + 1);

    copy_tile<D, LD>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
    __pipeline_commit();
    if (keys > 0) {
        copy_codes<D>(k_codes, k, 0, p.aligned);
        copy_codes<D>(v_codes, v, 0, p.aligned);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * LD + c]);

    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fq[D / 16];
#pragma unroll
    for (int d = 0; d < D / 16; d++)
        wmma::load_matrix_sync(fq[d], sq + warp * 16 * LD + d * 16, LD);
    __syncthreads(); // from here on the place of Q belongs to the scores

    float *strip = reinterpret_cast<float *>(sv + L::TILE) + warp * 16 * LDS; // this warp's scores
    __half *weights = reinterpret_cast<__half *>(strip);                      // [16][LDP]
    const int row = lane / 2, half = lane % 2;                                // of the strip; which of its lanes
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
        __pipeline_wait_prior(0);
        dequantize<D, LD>(sk, k_codes, k, kt * BC);
        dequantize<D, LD>(sv, v_codes, v, kt * BC);
        if ((kt + 1) * BC < keys) {
            copy_codes<D>(k_codes, k, (kt + 1) * BC, p.aligned);
            copy_codes<D>(v_codes, v, (kt + 1) * BC, p.aligned);
        }
        __pipeline_commit();
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * LD + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, sv[r * LD + c]);

        // S = Q Kt: keys are the columns of a column-major matrix whose columns are the rows of the K tile.
#pragma unroll
        for (int n = 0; n < BC / 16; n++) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
            wmma::fill_fragment(acc, 0.0f);
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fk;
                wmma::load_matrix_sync(fk, sk + n * 16 * LD + d * 16, LD);
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
                weights[row * LDP + KEY(e)] = __float2half(s[e]);
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
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fp;
            wmma::load_matrix_sync(fp, weights + n * 16, LDP);
#pragma unroll
            for (int j = 0; j < D / 16; j++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fv;
                wmma::load_matrix_sync(fv, sv + n * 16 * LD + j * 16, LD);
                wmma::mma_sync(u[j], fp, fv, u[j]);
            }
        }
        ASC_RECORD_FRAGMENT(u, kt, warp * 16, 0, u);
        __syncthreads(); // the next tile takes this one's place
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
    __half *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + global_row * p.q_strides.row;
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
            __align__(16) __half out[8];
#pragma unroll
            for (int e = 0; e < 8; e++)
                out[e] = __float2half(strip[row * LDS + col + e]);
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
    if (problem->head_dim != 64 && problem->head_dim != 128)
        return "head_dim must be 64 or 128";
    if (problem->heads > 65535 || problem->batch > 65535)
        return "batch and heads are grid dimensions y and z: at most 65535 each";
    if (problem->window_left >= 0 || problem->window_right >= 0)
        return "there is no sliding window in this kernel: window must be none";
    if (problem->softcap != 0)
        return "there is no soft cap in this kernel: softcap must be 0";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = THREADS;
    return NULL;
}

Operand operand(const asc_problem *problem, const void *codes, const float *scales, int heads, int rows)
{
    Operand x;
    x.codes = static_cast<const __nv_fp8_e4m3 *>(codes);
    x.scales = scales;
    x.strides = asc_strides_of(problem, heads, rows);
    x.heads = heads;
    x.rows = rows;
    x.groups = asc_scale_groups(problem, rows);
    x.group_rows = problem->scale_rows > 0 ? problem->scale_rows : INT_MAX;
    return x;
}

template <int D> const char *run(const asc_problem *problem, void *stream)
{
    Params p;
    p.q = static_cast<const __half *>(problem->q);
    p.q_strides = asc_strides_of(problem, problem->heads, problem->q_len);
    p.k = operand(problem, problem->k, problem->k_scale, problem->kv_heads, problem->kv_len);
    p.v = operand(problem, problem->v, problem->v_scale, problem->kv_heads, problem->kv_len);
    p.o = static_cast<__half *>(problem->o);
    p.lse = problem->lse;
    p.heads = problem->heads;
    p.group = problem->heads / problem->kv_heads;
    p.q_len = problem->q_len;
    p.kv_len = problem->kv_len;
    p.reach = problem->kv_len; // everything
    if (problem->causal == ASC_CAUSAL_TOP_LEFT)
        p.reach = 0;
    else if (problem->causal == ASC_CAUSAL_BOTTOM_RIGHT)
        p.reach = problem->kv_len - problem->q_len;
    p.scale = problem->scale;
    // All strides are multiples of head_dim.
    p.aligned = (reinterpret_cast<uintptr_t>(problem->q) | reinterpret_cast<uintptr_t>(problem->k) |
                 reinterpret_cast<uintptr_t>(problem->v) | reinterpret_cast<uintptr_t>(problem->o)) %
                    16 ==
                0;

    const dim3 grid((problem->q_len + BR - 1) / BR, problem->heads, problem->batch);
    return ASC_LAUNCH((fp8_mixed<D>), grid, THREADS, (Shared<D>::bytes), stream, p);
}

template <int D> const char *run_if_built(const asc_problem *problem, void *stream)
{
    if constexpr (asc_built_for(ASC_F16, D))
        return run<D>(problem, stream);
    return "this build has no such instance";
}

const char *launch(const asc_problem *problem, void *stream)
{
    return problem->head_dim == 64 ? run_if_built<64>(problem, stream) : run_if_built<128>(problem, stream);
}

} // namespace

ASC_KERNEL(fp8_mixed)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16);
    kernel.k_dtypes = ASC_SUPPORTS(E4M3);
    kernel.v_dtypes = ASC_SUPPORTS(E4M3);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.o_dtype = ASC_F16;
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.acc_s = ASC_ACC_MMA_F16;
    kernel.conventions.acc_u = ASC_ACC_MMA_F16;
    kernel.conventions.p_rounded = ASC_P_F16;
    kernel.conventions.empty_lse_negative = 1;
}
