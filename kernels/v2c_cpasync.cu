// v2c_cpasync: v2b_scalar with its K and V in a pipeline of two stages. While the warps work on one kv tile, cp.async
// copies the next one into the other stage, 16 bytes at a time and past the registers; a pointer that is not aligned to
// 16 bytes takes plain loads instead. Reads of shared memory are as wide: 16 bytes of Q and K, a pair of V.
//
// A block is 8 warps on one 64-row q tile; a warp takes its 8 rows one after the other. A kv tile has 8192 / D keys.
// For a row, a lane owns the keys lane, lane + 32, ... and head_dim / 64 pairs of neighboring output columns.
//
// The pipeline, stage by stage: copy tile j + 1, commit; wait until all but the last group are there, which is tile j;
// barrier, since a thread waits for its own copies alone; work on tile j; barrier, before its stage is copied into.
//
// Shared memory in bytes, head_dim 64 / 128 (rows of K are padded by 16 bytes, so that 8 lanes that read 16 bytes of 8
// different rows meet all 32 banks; Q is read by all lanes at one place, V along a row: neither needs it):
//     q   [64][D] T            8192   16384
//     k   [2][BC][D + 8] T    36864   34816
//     v   [2][BC][D] T        32768   32768
//     p   [8][BC] f32          4096    2048     weights of the row each warp works on
//     m,l [64] f32              512     512
//                             82432   86528
//
// Known to be bad at: arithmetic. Every product is still a scalar FMA behind two conversions, and every row reads all
// of K and V from shared memory again. Two blocks fill an SM.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <math.h>

#include "attnscope.h"

namespace
{

constexpr int BR = 64, WARPS = 8, THREADS = 32 * WARPS, ROWS_PER_WARP = BR / WARPS;

template <class T> struct Params {
    const T *q, *k, *v;
    T *o;
    float *lse; /* [batch][heads][q_len] */
    asc_strides q_strides, kv_strides;
    int heads, group; /* group: query heads that share a kv head */
    int q_len, kv_len;
    int reach; /* row i sees keys 0 .. i + reach */
    float scale;
    bool aligned; /* q, k and v to 16 bytes */
};

// Two neighboring elements, as they lie in memory.
[[maybe_unused]] __device__ __forceinline__ float2 widen(unsigned pair, __half)
{
    return __half22float2(*reinterpret_cast<const __half2 *>(&pair));
}
[[maybe_unused]] __device__ __forceinline__ float2 widen(unsigned pair, __nv_bfloat16)
{
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(&pair));
}
[[maybe_unused]] __device__ __forceinline__ void from_float(__half &out, float x)
{
    out = __float2half(x);
}
[[maybe_unused]] __device__ __forceinline__ void from_float(__nv_bfloat16 &out, float x)
{
    out = __float2bfloat16(x);
}

__device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

__device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// Begins to copy rows first .. first + ROWS - 1 of a head into rows of LD elements; rows beyond `rows` become zero.
template <class T, int D, int LD, int ROWS>
__device__ void copy_tile(T *tile, const T *head, int64_t row_stride, int first, int rows, bool aligned)
{
    for (int i = threadIdx.x; i < ROWS * D / 8; i += THREADS) {
        const int r = i / (D / 8), d = i % (D / 8) * 8;
        T *to = tile + r * LD + d;
        const T *from = head + (first + r) * row_stride + d;
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

template <class T, int D> struct Shared {
    static constexpr int BC = 8192 / D, LDK = D + 8;
    static constexpr int Q = BR * D, K = BC * LDK, V = BC * D; /* elements of a tile */
    static constexpr size_t bytes = (Q + 2 * K + 2 * V) * sizeof(T) + (WARPS * BC + 2 * BR) * sizeof(float);
};

template <class T, int D> __global__ void __launch_bounds__(THREADS) v2c_cpasync(Params<T> p)
{
    using L = Shared<T, D>;
    constexpr int BC = L::BC, LDK = L::LDK, KEYS = BC / 32, COLS = D / 32;
    extern __shared__ __align__(16) unsigned char shared[];
    T *sq = reinterpret_cast<T *>(shared), *k_stages = sq + L::Q, *v_stages = k_stages + 2 * L::K;
    float *sp = reinterpret_cast<float *>(v_stages + 2 * L::V), *sm = sp + WARPS * BC, *sl = sm + BR;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const T *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head;
    const T *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const T *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    ASC_AT(batch, head, q_tile);

    // Tiles beyond the reach of the tile's last row hold nothing for anybody.
    const int last_row = min(q_tile * BR + BR, p.q_len) - 1;
    const int keys = min(p.kv_len, last_row + p.reach + 1);

    copy_tile<T, D, D, BR>(sq, q, p.q_strides.row, q_tile * BR, p.q_len, p.aligned);
    __pipeline_commit();
    if (keys > 0) {
        copy_tile<T, D, LDK, BC>(k_stages, k, p.kv_strides.row, 0, p.kv_len, p.aligned);
        copy_tile<T, D, D, BC>(v_stages, v, p.kv_strides.row, 0, p.kv_len, p.aligned);
    }
    __pipeline_commit();
    if (threadIdx.x < BR) {
        sm[threadIdx.x] = -INFINITY;
        sl[threadIdx.x] = 0.0f;
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    ASC_RECORD_SHARED(q, 0, r, BR, c, D, sq[r * D + c]);

    float u[ROWS_PER_WARP][COLS];
#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++)
#pragma unroll
        for (int i = 0; i < COLS; i++)
            u[r][i] = 0.0f;

    for (int kt = 0; kt * BC < keys; kt++) {
        T *sk = k_stages + kt % 2 * L::K, *sv = v_stages + kt % 2 * L::V;
        if ((kt + 1) * BC < keys) {
            const int other = (kt + 1) % 2, first = (kt + 1) * BC;
            copy_tile<T, D, LDK, BC>(k_stages + other * L::K, k, p.kv_strides.row, first, p.kv_len, p.aligned);
            copy_tile<T, D, D, BC>(v_stages + other * L::V, v, p.kv_strides.row, first, p.kv_len, p.aligned);
        }
        __pipeline_commit();      // of nothing, behind the last tile
        __pipeline_wait_prior(1); // this tile is there, the next one may be under way
        __syncthreads();
        ASC_RECORD_SHARED(k, kt, r, BC, c, D, sk[r * LDK + c]);
        ASC_RECORD_SHARED(v, kt, r, BC, c, D, sv[r * D + c]);

#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            const int row = warp * ROWS_PER_WARP + r;
            float s[KEYS] = {};
#pragma unroll 1
            for (int d = 0; d < D; d += 8) {
                const uint4 x = *reinterpret_cast<const uint4 *>(sq + row * D + d);
                const float2 x0 = widen(x.x, T()), x1 = widen(x.y, T()), x2 = widen(x.z, T()), x3 = widen(x.w, T());
#pragma unroll
                for (int i = 0; i < KEYS; i++) {
                    const uint4 y = *reinterpret_cast<const uint4 *>(sk + (lane + 32 * i) * LDK + d);
                    const float2 y0 = widen(y.x, T()), y1 = widen(y.y, T());
                    const float2 y2 = widen(y.z, T()), y3 = widen(y.w, T());
                    s[i] += x0.x * y0.x + x0.y * y0.y + x1.x * y1.x + x1.y * y1.y;
                    s[i] += x2.x * y2.x + x2.y * y2.y + x3.x * y3.x + x3.y * y3.y;
                }
            }
            float largest = -INFINITY;
#pragma unroll
            for (int i = 0; i < KEYS; i++) {
                const int key = kt * BC + lane + 32 * i;
                s[i] *= p.scale;
                if (key >= p.kv_len || key > q_tile * BR + row + p.reach)
                    s[i] = -INFINITY;
            }
            ASC_RECORD(s, kt, i, KEYS, row, lane + 32 * i, s[i]);
#pragma unroll
            for (int i = 0; i < KEYS; i++)
                largest = fmaxf(largest, s[i]);

            const float m_prev = sm[row];
            float m = fmaxf(m_prev, warp_max(largest));
            ASC_RECORD_ROW(m, kt, row, lane == 0, m);
            const float base = m == -INFINITY ? 0.0f : m; // no key yet: -inf - -inf would be NaN
            float alpha = __expf(m_prev - base);
            ASC_RECORD_ROW(alpha, kt, row, lane == 0, alpha);
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < KEYS; i++)
                s[i] = __expf(s[i] - base);
            ASC_RECORD(p, kt, i, KEYS, row, lane + 32 * i, s[i]);
#pragma unroll
            for (int i = 0; i < KEYS; i++) {
                sp[warp * BC + lane + 32 * i] = s[i];
                sum += s[i];
            }
            float l = sl[row] * alpha + warp_sum(sum);
            ASC_RECORD_ROW(l, kt, row, lane == 0, l);
            __syncwarp(); // every lane has read m_prev and l_prev, and the row's weights are there
            if (lane == 0) {
                sm[row] = m;
                sl[row] = l;
            }

#pragma unroll
            for (int i = 0; i < COLS; i++)
                u[r][i] *= alpha;
#pragma unroll 4
            for (int c = 0; c < BC; c++) {
                const float weight = sp[warp * BC + c];
#pragma unroll
                for (int i = 0; i < COLS; i += 2) {
                    const unsigned pair = *reinterpret_cast<const unsigned *>(sv + c * D + 32 * i + 2 * lane);
                    const float2 x = widen(pair, T());
                    u[r][i] += weight * x.x;
                    u[r][i + 1] += weight * x.y;
                }
            }
            ASC_RECORD(u, kt, i, COLS, row, i / 2 * 64 + 2 * lane + i % 2, u[r][i]);
            __syncwarp(); // the next row overwrites the weights
        }
        __syncthreads(); // the tile after the next is copied into this stage
    }

#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        const int row = warp * ROWS_PER_WARP + r, global_row = q_tile * BR + row;
        const float l = sl[row], inverse = l > 0.0f ? 1.0f / l : 0.0f; // a row without any key gives zero
        const float lse = l > 0.0f ? sm[row] + __logf(l) : -INFINITY;
        T out[COLS];
#pragma unroll
        for (int i = 0; i < COLS; i++)
            from_float(out[i], u[r][i] * inverse);
        if (global_row < p.q_len) {
            T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + global_row * p.q_strides.row;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                o[i / 2 * 64 + 2 * lane + i % 2] = out[i];
            if (lane == 0)
                p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + global_row] = lse;
            ASC_RECORD(o, 0, i, COLS, row, i / 2 * 64 + 2 * lane + i % 2, out[i]);
            if (lane == 0)
                ASC_RECORD_ROW(lse, 0, row, true, lse);
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
    plan->bc = 8192 / problem->head_dim;
    plan->threads = THREADS;
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    return NULL;
}

template <class T, int D> const char *run(const asc_problem *problem, void *stream)
{
    Params<T> p;
    p.q = static_cast<const T *>(problem->q);
    p.k = static_cast<const T *>(problem->k);
    p.v = static_cast<const T *>(problem->v);
    p.o = static_cast<T *>(problem->o);
    p.lse = problem->lse;
    p.q_strides = asc_strides_of(problem, problem->heads, problem->q_len);
    p.kv_strides = asc_strides_of(problem, problem->kv_heads, problem->kv_len);
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
    p.aligned =
        (reinterpret_cast<uintptr_t>(p.q) | reinterpret_cast<uintptr_t>(p.k) | reinterpret_cast<uintptr_t>(p.v)) % 16 ==
        0;

    const dim3 grid((problem->q_len + BR - 1) / BR, problem->heads, problem->batch);
    return ASC_LAUNCH((v2c_cpasync<T, D>), grid, THREADS, (Shared<T, D>::bytes), stream, p);
}

template <class T, int dtype, int D> const char *run_if_built(const asc_problem *problem, void *stream)
{
    if constexpr (asc_built_for(dtype, D))
        return run<T, D>(problem, stream);
    return "this build has no such instance";
}

const char *launch(const asc_problem *problem, void *stream)
{
    const bool narrow = problem->head_dim == 64;
    if (problem->dtype == ASC_F16)
        return narrow ? run_if_built<__half, ASC_F16, 64>(problem, stream)
                      : run_if_built<__half, ASC_F16, 128>(problem, stream);
    return narrow ? run_if_built<__nv_bfloat16, ASC_BF16, 64>(problem, stream)
                  : run_if_built<__nv_bfloat16, ASC_BF16, 128>(problem, stream);
}

} // namespace

ASC_KERNEL(v2c_cpasync)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
