// ladder.cuh: what the kernels of this folder share, so that each of them shows its own idea alone. From above: the
// problem as a kernel gets it, how an instance is chosen and launched, reductions, copies of tiles, PTX, barriers.

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <math.h>
#include <stdint.h>
#include <type_traits>

#include "attnscope.h"

namespace ladder
{

// Q and O are [batch][heads][q_len][D], K and V [batch][kv_heads][kv_len][D], at these strides.
template <class Q, class KV = Q, class O = Q> struct Params {
    const Q *q;
    const KV *k, *v;
    O *o;
    float *lse; /* [batch][heads][q_len] */
    asc_strides q_strides, kv_strides;
    int heads, group; /* group: query heads that share a kv head */
    int q_len, kv_len;
    int reach;               /* row i sees keys 0 .. i + reach */
    float scale, scale_log2; /* times log2(e) */
    bool aligned;            /* q, k, v and o to 16 bytes */
    int kv_heads;

    // Row `row` sees this many keys, the first ones.
    __device__ __forceinline__ int seen(int row) const
    {
        return min(kv_len, row + reach + 1);
    }
    // The q tile's last row, which sees most: tiles beyond hold nothing for anybody.
    __device__ __forceinline__ int keys(int q_tile, int br) const
    {
        return seen(min(q_tile * br + br, q_len) - 1);
    }
};

// Of Params, or of a struct that adds to them; what it adds is zero.
template <class P> P params_of(const asc_problem *problem)
{
    P p = {};
    p.q = static_cast<decltype(p.q)>(problem->q);
    p.k = static_cast<decltype(p.k)>(problem->k);
    p.v = static_cast<decltype(p.v)>(problem->v);
    p.o = static_cast<decltype(p.o)>(problem->o);
    p.lse = problem->lse;
    p.q_strides = asc_strides_of(problem, problem->heads, problem->q_len);
    p.kv_strides = asc_strides_of(problem, problem->kv_heads, problem->kv_len);
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
    p.scale_log2 = problem->scale * 1.44269504088896340736f;
    // All strides are multiples of head_dim.
    p.aligned = (reinterpret_cast<uintptr_t>(p.q) | reinterpret_cast<uintptr_t>(p.k) |
                 reinterpret_cast<uintptr_t>(p.v) | reinterpret_cast<uintptr_t>(p.o)) %
                    16 ==
                0;
    return p;
}

// Fills the plan; returns why no rung takes this problem, or NULL.
inline const char *plan_tiles(const asc_problem *problem, asc_plan *plan, int br, int bc, int threads)
{
    plan->br = br;
    plan->bc = bc;
    plan->threads = threads;
    if (problem->head_dim != 64 && problem->head_dim != 128)
        return "head_dim must be 64 or 128";
    if (problem->heads > 65535 || problem->batch > 65535)
        return "batch and heads are grid dimensions y and z: at most 65535 each";
    if (problem->window_left >= 0 || problem->window_right >= 0)
        return "there is no sliding window in this kernel: window must be none";
    if (problem->softcap != 0)
        return "there is no soft cap in this kernel: softcap must be 0";
    return NULL;
}

// A block for each q tile of each head.
inline dim3 grid_of(const asc_problem *problem, int br)
{
    return dim3((problem->q_len - 1) / br + 1, problem->heads, problem->batch);
}

template <int dtype, class T, int D, class F> const char *if_built(F launch)
{
    if constexpr (asc_built_for(dtype, D))
        return launch(T(), std::integral_constant<int, D>());
    return "this build has no such instance";
}

// launch(T(), D) for the problem's head_dim, D a constant.
template <int dtype, class T, class F> const char *for_head_dim(const asc_problem *problem, F launch)
{
    return problem->head_dim == 64 ? if_built<dtype, T, 64>(launch) : if_built<dtype, T, 128>(launch);
}

// For the problem's type, too: f16 or bf16.
template <class F> const char *for_instance(const asc_problem *problem, F launch)
{
    return problem->dtype == ASC_F16 ? for_head_dim<ASC_F16, __half>(problem, launch)
                                     : for_head_dim<ASC_BF16, __nv_bfloat16>(problem, launch);
}

__device__ __forceinline__ float to_float(__half x)
{
    return __half2float(x);
}
__device__ __forceinline__ float to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
__device__ __forceinline__ void from_float(__half &out, float x)
{
    out = __float2half(x);
}
__device__ __forceinline__ void from_float(__nv_bfloat16 &out, float x)
{
    out = __float2bfloat16(x);
}

// Two neighbors, as they lie in memory.
__device__ __forceinline__ float2 widen(unsigned pair, __half)
{
    return __half22float2(*reinterpret_cast<const __half2 *>(&pair));
}
__device__ __forceinline__ float2 widen(unsigned pair, __nv_bfloat16)
{
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(&pair));
}

template <int N> __device__ __forceinline__ float largest_of(const float (&x)[N])
{
    float largest = -INFINITY;
#pragma unroll
    for (int i = 0; i < N; i++)
        largest = fmaxf(largest, x[i]);
    return largest;
}

template <int N> __device__ __forceinline__ float sum_of(const float (&x)[N])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++)
        sum += x[i];
    return sum;
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

// Begins to copy rows first .. first + ROWS - 1 of a head into rows of LD elements, 16 bytes at a time by cp.async;
// plain loads do it where arrays are not aligned. Rows beyond `rows` become zero.
template <class T, int D, int LD, int ROWS, int THREADS>
__device__ __forceinline__ void copy_tile(T *tile, const T *head, int64_t row_stride, int first, int rows, bool aligned)
{
    constexpr int N = 16 / sizeof(T);
    for (int i = threadIdx.x; i < ROWS * D / N; i += THREADS) {
        const int r = i / (D / N), d = i % (D / N) * N;
        T *to = tile + r * LD + d;
        const T *from = head + (first + r) * row_stride + d;
        if (first + r >= rows) {
            *reinterpret_cast<uint4 *>(to) = make_uint4(0, 0, 0, 0);
        } else if (aligned) {
            __pipeline_memcpy_async(to, from, 16);
        } else {
            for (int e = 0; e < N; e++)
                to[e] = from[e];
        }
    }
}

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Of 16 bytes the first `bytes` are copied, 0 or 16; the others become zero.
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy_commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

template <int groups_left> __device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(groups_left) : "memory");
}

// Barriers of a block with specialised warps: 128 threads consume, those behind them produce. Of the first two there is
// one for each of two stages.
constexpr int CONSUMERS = 128, FULL = 1, EMPTY = 3, READERS = 5;

template <int threads> __device__ __forceinline__ void barrier_wait(int barrier)
{
    asm volatile("bar.sync %0, %1;\n" ::"r"(barrier), "n"(threads) : "memory");
}

template <int threads> __device__ __forceinline__ void barrier_arrive(int barrier)
{
    asm volatile("bar.arrive %0, %1;\n" ::"r"(barrier), "n"(threads) : "memory");
}

__device__ __forceinline__ void consumers_meet()
{
    asm volatile("bar.sync %0, %1;\n" ::"n"(READERS), "n"(CONSUMERS) : "memory");
}

// Four 8 x 8 matrices of 16 bits an element, or of 8 rows of 16 bytes: lanes 8 i .. 8 i + 7 give the addresses of the
// rows of matrix i.
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], uint32_t row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

template <class T> inline constexpr bool is_half = false;
template <> inline constexpr bool is_half<__half> = true;

// c += a b, of 16 x 16 and 16 x 8.
template <class T> __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    if constexpr (is_half<T>)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class T> __device__ __forceinline__ uint32_t two(float low, float high)
{
    uint32_t out;
    if constexpr (is_half<T>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(out) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

} // namespace ladder
