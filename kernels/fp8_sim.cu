// fp8_sim: v2c_wmma on codes of one byte. A first kernel of the same launch gives each head of Q, K and V a scale, its
// largest magnitude / 127, and each element a code, 128 + x / scale rounded; a head of zeros gets scale 1 and codes
// 128. The second kernel reads codes alone, half of the bytes, and makes f16 of them by a table of what each of the 256
// is worth in this head. From there on it is v2c_wmma.
//
// A block of the second kernel is 4 warps on one 64-row q tile, a kv tile has 64 keys; a warp owns 16 rows. The codes
// of the next kv tile are on their way by cp.async while this one is worked on. Each thread takes the codes that it
// copied itself, so that only the f16 tiles need barriers: one that they are there, one that they have been read.
//
// Shared memory in bytes, head_dim 64 / 128 (paddings as in v2c_wmma):
//     codes   [2][64][D] u8         8192   16384     of K and V
//     tables  [3][256] f16          1536    1536     of Q, K and V
//     k       [64][D + 8] f16       9216   17408
//     v       [64][D + 8] f16       9216   17408
//     q       [64][D + 8] f16       9216   17408     gone before the first scores come
//     s       [64][72] f32         18432   18432     in the place of q; p [64][72] f16 and at the end u in that of s
//                                  46592   71168
//
// Workspace, in global memory: the codes of Q, K and V as these lie, and a scale for each head of each.
//
// Known to be bad at: outliers, since one large element of a head costs all others of it their bits; lookups, whose
// addresses are as random as the data, so that banks collide; long heads, which one block quantizes alone.

#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <math.h>
#include <mma.h>

#include "attnscope.h"

namespace
{

using namespace nvcuda;

constexpr int BR = 64, BC = 64, WARPS = 4, THREADS = 32 * WARPS;
constexpr int LDS = BC + 8; // floats in a row of scores
constexpr uint8_t MIDPOINT = ASC_U8_MIDPOINT;

// One of Q, K and V.
struct Operand {
    const __half *x;
    uint8_t *codes;
    float *scales; /* [batch][heads] */
    asc_strides strides;
    int heads, rows;
};

struct Params {
    Operand q, k, v;
    __half *o;
    float *lse;                 /* [batch][heads][q_len] */
    int heads, kv_heads, group; /* group: query heads that share a kv head */
    int q_len, kv_len;
    int reach; /* row i sees keys 0 .. i + reach */
    float scale;
    bool aligned; /* q, k, v and o to 16 bytes */
};

// Eight elements of a row.
__device__ __forceinline__ void load_eight(__half (&to)[8], const __half *from, bool aligned)
{
    if (aligned) {
        *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
    } else {
        for (int e = 0; e < 8; e++)
            to[e] = from[e];
    }
}

// A block for each head of Q, then of K, then of V.
template <int D> __global__ void __launch_bounds__(THREADS) fp8_sim_quantize(Params p)
{
    __shared__ float largest[THREADS / 32];
    const int which = blockIdx.x, batch = blockIdx.y;
    const bool is_q = which < p.heads, is_k = !is_q && which < p.heads + p.kv_heads;
    const Operand &of = is_q ? p.q : is_k ? p.k : p.v;
    const int head = is_q ? which : (which - p.heads) % p.kv_heads;
    const int64_t begin = batch * of.strides.batch + head * of.strides.head;
    __align__(16) __half x[8];

    float amax = 0.0f;
    for (int i = threadIdx.x; i < of.rows * (D / 8); i += THREADS) {
        load_eight(x, of.x + begin + i / (D / 8) * of.strides.row + i % (D / 8) * 8, p.aligned);
#pragma unroll
        for (int e = 0; e < 8; e++)
            amax = fmaxf(amax, fabsf(__half2float(x[e])));
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, lanes));
    if (threadIdx.x % 32 == 0)
        largest[threadIdx.x / 32] = amax;
    __syncthreads();
    for (int warp = 0; warp < THREADS / 32; warp++)
        amax = fmaxf(amax, largest[warp]);
    const float scale = amax > 0.0f ? amax / 127.0f : 1.0f; // zeros: 0 / 0 would be NaN
    if (threadIdx.x == 0)
        of.scales[batch * of.heads + head] = scale;

    for (int i = threadIdx.x; i < of.rows * (D / 8); i += THREADS) {
        const int64_t at = begin + i / (D / 8) * of.strides.row + i % (D / 8) * 8;
        __align__(8) uint8_t codes[8];
        load_eight(x, of.x + at, p.aligned);
#pragma unroll
        for (int e = 0; e < 8; e++)
            codes[e] = static_cast<uint8_t>(MIDPOINT + __float2int_rn(__half2float(x[e]) / scale));
        *reinterpret_cast<uint2 *>(of.codes + at) = *reinterpret_cast<const uint2 *>(codes);
    }
}

// Begins to copy the codes of rows first .. first + 63 of a head; rows beyond `rows` become zeros, the midpoint.
template <int D> __device__ void copy_codes(uint8_t *tile, const uint8_t *head, int64_t row_stride, int first, int rows)
{
    constexpr unsigned zeros = MIDPOINT * 0x01010101u;
    for (int i = threadIdx.x; i < 64 * D / 16; i += THREADS) {
        const int r = i / (D / 16), d = i % (D / 16) * 16;
        if (first + r < rows)
            __pipeline_memcpy_async(tile + r * D + d, head + (first + r) * row_stride + d, 16);
        else
            *reinterpret_cast<uint4 *>(tile + r * D + d) = make_uint4(zeros, zeros, zeros, zeros);
    }
}

// The same elements as copy_codes, each thread those that it has copied.
template <int D, int LD> __device__ void dequantize(__half *tile, const uint8_t *codes, const __half *table)
{
    for (int i = threadIdx.x; i < 64 * D / 16; i += THREADS) {
        const int r = i / (D / 16), d = i % (D / 16) * 16;
        __align__(16) uint8_t sixteen[16];
        __align__(16) __half out[16];
        *reinterpret_cast<uint4 *>(sixteen) = *reinterpret_cast<const uint4 *>(codes + r * D + d);
#pragma unroll
        for (int e = 0; e < 16; e++)
            out[e] = table[sixteen[e]];
        reinterpret_cast<uint4 *>(tile + r * LD + d)[0] = reinterpret_cast<const uint4 *>(out)[0];
        reinterpret_cast<uint4 *>(tile + r * LD + d)[1] = reinterpret_cast<const uint4 *>(out)[1];
    }
}

template <int D> struct Shared {
    static constexpr int LD = D + 8, TILE = BC * LD; /* elements of a row, of a tile */
    static constexpr size_t bytes = 2 * BC * D + (3 * 256 + 2 * TILE) * sizeof(__half) + BR * LDS * sizeof(float);
    static_assert(BR * LD * sizeof(__half) <= BR * LDS * sizeof(float), "Q has the place of the scores");
};

// The element e of those that a lane has of a row of scores is this key of the tile.
#define KEY(e) ((e) / 4 * 8 + half * 4 + (e) % 4)

template <int D> __global__ void __launch_bounds__(THREADS) fp8_sim(Params p)
{
    using L = Shared<D>;
    constexpr int LD = L::LD, LDP = BC + 8;
    extern __shared__ __align__(128) unsigned char shared[];
    uint8_t *k_codes = shared, *v_codes = k_codes + BC * D;
    __half *tables = reinterpret_cast<__half *>(v_codes + BC * D);
    __half *sk = tables + 3 * 256, *sv = sk + L::TILE, *sq = sv + L::TILE;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, kv_head = head / p.group;
    const uint8_t *q = p.q.codes + batch * p.q.strides.batch + head * p.q.strides.head;
    const uint8_t *k = p.k.codes + batch * p.k.strides.batch + kv_head * p.k.strides.head;
    const uint8_t *v = p.v.codes + batch * p.v.strides.batch + kv_head * p.v.strides.head;
    ASC_AT(batch, head, q_tile);

    // Tiles beyond the reach of the tile's last row hold nothing for anybody.
    const int last_row = min(q_tile * BR + BR, p.q_len) - 1;
    const int keys = min(p.kv_len, last_row + p.reach + 1);

    copy_codes<D>(k_codes, q, p.q.strides.row, q_tile * BR, p.q_len);
    __pipeline_commit();
    const float scales[3] = {p.q.scales[batch * p.heads + head], p.k.scales[batch * p.kv_heads + kv_head],
                             p.v.scales[batch * p.kv_heads + kv_head]};
#pragma unroll
    for (int x = 0; x < 3; x++)
        for (int code = threadIdx.x; code < 256; code += THREADS)
            tables[x * 256 + code] = __float2half(static_cast<float>(code - MIDPOINT) * scales[x]);
    __pipeline_wait_prior(0);
    __syncthreads();
    dequantize<D, LD>(sq, k_codes, tables);
    if (keys > 0) {
        copy_codes<D>(k_codes, k, p.k.strides.row, 0, p.kv_len);
        copy_codes<D>(v_codes, v, p.v.strides.row, 0, p.kv_len);
    }
    __pipeline_commit();
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
        dequantize<D, LD>(sk, k_codes, tables + 256);
        dequantize<D, LD>(sv, v_codes, tables + 512);
        if ((kt + 1) * BC < keys) {
            copy_codes<D>(k_codes, k, p.k.strides.row, (kt + 1) * BC, p.kv_len);
            copy_codes<D>(v_codes, v, p.v.strides.row, (kt + 1) * BC, p.kv_len);
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
    __half *o = p.o + batch * p.q.strides.batch + head * p.q.strides.head + global_row * p.q.strides.row;
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

// Where everything lies in the workspace, from its start in bytes; all parts are multiples of 64 but the scales.
struct Workspace {
    uint64_t q, k, v, q_scales, k_scales, v_scales, bytes;
    explicit Workspace(const asc_problem *problem)
    {
        const uint64_t batch = problem->batch, d = problem->head_dim;
        const uint64_t of_q = batch * problem->heads, of_kv = batch * problem->kv_heads;
        q = 0;
        k = q + of_q * problem->q_len * d;
        v = k + of_kv * problem->kv_len * d;
        q_scales = v + of_kv * problem->kv_len * d;
        k_scales = q_scales + of_q * sizeof(float);
        v_scales = k_scales + of_kv * sizeof(float);
        bytes = v_scales + of_kv * sizeof(float);
    }
};

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
    plan->workspace_bytes = Workspace(problem).bytes;
    plan->error_limit = 0.06f;
    return NULL;
}

Operand operand(const asc_problem *problem, const void *x, uint64_t codes, uint64_t scales, int heads, int rows)
{
    unsigned char *workspace = static_cast<unsigned char *>(problem->workspace);
    Operand of;
    of.x = static_cast<const __half *>(x);
    of.codes = workspace + codes;
    of.scales = reinterpret_cast<float *>(workspace + scales);
    of.strides = asc_strides_of(problem, heads, rows);
    of.heads = heads;
    of.rows = rows;
    return of;
}

template <int D> const char *run(const asc_problem *problem, void *stream)
{
    const Workspace at(problem);
    Params p;
    p.q = operand(problem, problem->q, at.q, at.q_scales, problem->heads, problem->q_len);
    p.k = operand(problem, problem->k, at.k, at.k_scales, problem->kv_heads, problem->kv_len);
    p.v = operand(problem, problem->v, at.v, at.v_scales, problem->kv_heads, problem->kv_len);
    p.o = static_cast<__half *>(problem->o);
    p.lse = problem->lse;
    p.heads = problem->heads;
    p.kv_heads = problem->kv_heads;
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

    const dim3 heads(problem->heads + 2 * problem->kv_heads, problem->batch);
    const char *failed = ASC_LAUNCH((fp8_sim_quantize<D>), heads, THREADS, 0, stream, p);
    if (failed)
        return failed;
    const dim3 grid((problem->q_len + BR - 1) / BR, problem->heads, problem->batch);
    return ASC_LAUNCH((fp8_sim<D>), grid, THREADS, (Shared<D>::bytes), stream, p);
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

ASC_KERNEL(fp8_sim)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.quantized = ASC_QUANTIZED_U8;
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.acc_s = ASC_ACC_MMA_F16;
    kernel.conventions.acc_u = ASC_ACC_MMA_F16;
    kernel.conventions.p_rounded = ASC_P_F16;
    kernel.conventions.empty_lse_negative = 1;
}
