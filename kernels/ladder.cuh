// ladder.cuh: what the kernels of this folder share, so that each of them shows its own idea alone. From above: the
// problem as a kernel gets it, how an instance is chosen and launched, reductions over a warp, copies of tiles, PTX.

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

} // namespace ladder
