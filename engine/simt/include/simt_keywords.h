/* CUDA's keywords and built-in variables. */
#ifndef SIMT_KEYWORDS_H
#define SIMT_KEYWORDS_H

#include "simt_runtime.h"

#include "vector_types.h"

/* 1: a build with access checks; the program tells it to the executor. */
#ifndef SIMT_CHECKS
#define SIMT_CHECKS 0
#endif
#if SIMT_CHECKS
extern "C" const int simt_checked;
extern "C" const int simt_checked __attribute__((weak)) = 1;
#endif

#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
/* It may give a pointer to a local of its own, which on a GPU is registers. g++ cleans it up before it inlines it: with
   these passes the stores to that local would be gone as the function's end is theirs. */
#ifdef __clang__
#define __forceinline__ inline __attribute__((always_inline))
#else
#define __forceinline__ inline __attribute__((always_inline, optimize("no-tree-dse", "no-tree-dce")))
#endif
/* Empty: the C++ library spells __attribute__((__noinline__, ...)), and an attribute list may have empty places. */
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

/* A block runs on one thread, and its threads are fibers of it: thread-local storage is what they share. __constinit
   keeps g++ from adding guard variables for class types; clang has no such keyword before C++20 and needs none. */
#if SIMT_CHECKS /* used: no access is optimized away because one thread alone would not see it */
#define SIMT_SHARED __attribute__((used)) thread_local
#else
#define SIMT_SHARED thread_local
#endif
#ifdef __clang__
#define __shared__ SIMT_SHARED
#else
#define __shared__ __constinit SIMT_SHARED
#endif

namespace simt
{
/* What alignas(x) asks for: a number, or what a type has. */
template <size_t n> constexpr size_t alignment()
{
    return n;
}
template <class T> constexpr size_t alignment()
{
    return alignof(T);
}

} // namespace simt

/* In the global namespace: code may say ::threadIdx. */
#define SIMT_INDEX(type, name, of)                                                                                     \
    static inline __attribute__((const)) type simt_##name()                                                            \
    {                                                                                                                  \
        const simt_dim d = of();                                                                                       \
        return type{d.x, d.y, d.z};                                                                                    \
    }
SIMT_INDEX(uint3, threadIdx, simt_thread_index)
SIMT_INDEX(uint3, blockIdx, simt_block_index)
SIMT_INDEX(dim3, blockDim, simt_block_dim)
SIMT_INDEX(dim3, gridDim, simt_grid_dim)
#undef SIMT_INDEX
#define threadIdx simt_threadIdx()
#define blockIdx simt_blockIdx()
#define blockDim simt_blockDim()
#define gridDim simt_gridDim()
static constexpr int warpSize = 32;

/* Default arguments that name the caller's line. */
#define SIMT_SITE const char *simt_file = __builtin_FILE(), int simt_line = __builtin_LINE()

#endif
