/* Forced in front of an unmodified .cu (g++ -include): CUDA's keywords, built-in variables and functions on the CPU.
   Standard headers come first, then our own, and only then the macros that tell the user's code that nvcc compiles. */
#ifndef SIMT_DEVICE_H
#define SIMT_DEVICE_H

#define SIMT_HOST 1

/* exit() in a user's host code leaves it as an exception does, so that destructors run and locks are given back; the C
   library's is declared to throw nothing, and compilers know its name. It gets another name in its own declaration, and
   a C++ function is there in its place. */
#define exit(status)                                                                                                   \
    simt_before_exit(status);                                                                                          \
    extern "C++" void exit(status) __attribute__((__noreturn__));                                                      \
    extern void simt_libc_exit(status)
#include <stdlib.h>
#undef exit
extern "C" bool debuggee_may_leave(void); /* engine/child/debuggee */
extern "C" void __wrap_exit(int status) __attribute__((__noreturn__));
namespace simt
{
struct left {
    int status;
};
} // namespace simt
inline void exit(int status)
{
    if (debuggee_may_leave())
        throw simt::left{status};
    __wrap_exit(status);
}

/* No "cassert": assert is the user's to include. math.h in its C++ form puts isnan, abs and the float overloads into
   the global namespace, as nvcc has them. */
#include <exception>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simt_keywords.h"

#include "cuda_runtime.h"
#include "simt_atomics.h"
#include "simt_launch.h"
#include "simt_math.h"
#include "simt_memory.h"
#include "simt_ptx.h"
#include "simt_warp.h"

/* What the headers of cuda/std/ have is the C++ library's. */
namespace cuda
{
namespace std
{
using namespace ::std;
}
} // namespace cuda

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 9

#endif
