/* Forced in front of an unmodified .cu (g++ -include): CUDA's keywords, built-in variables and functions on the CPU.
   Standard headers come first, then our own, and only then the macros that tell the user's code that nvcc compiles. */
#ifndef SIMT_DEVICE_H
#define SIMT_DEVICE_H

#define SIMT_HOST 1

/* No "cassert": assert is the user's to include. math.h in its C++ form puts isnan, abs and the float overloads into
   the global namespace, as nvcc has them. */
#include <exception>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
