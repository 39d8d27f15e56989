// One mistake per kernel; the test knows what must be reported, and finds the line by its comment "at: CASE".
#include <assert.h>
#include <cuda_fp16.h>
#include <string.h>

__device__ float sink[1024];
__device__ volatile float zero = 0, big = 3e38f;
__device__ int *volatile nowhere;
__device__ volatile int int_zero;

__global__ void partial()
{
    if (threadIdx.x >= 40)
        return;
    __syncthreads(); // at: partial
}

__global__ void lines()
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads(); // at: lines
}

__global__ void deadlock()
{
    if (threadIdx.x < 20)
        __shfl_sync(0xFFFFFFFFu, 1, 0); // at: deadlock
    else
        __syncthreads(); // at: deadlock-barrier
}

__global__ void outside()
{
    if (threadIdx.x < 4)
        sink[threadIdx.x] = (float)__shfl_sync(0x0000000Fu, threadIdx.x, 9); // at: outside
}

__global__ void unnamed()
{
    if (threadIdx.x == 5)
        __syncwarp(0x0000000Fu); // at: unnamed
}

__global__ void mixed()
{
    int v = threadIdx.x;
    if (threadIdx.x % 2)
        v = __shfl_xor_sync(~0u, v, 1); // at: mixed
    else
        v = __shfl_xor_sync(~0u, v, 2);
    sink[threadIdx.x] = (float)v;
}

__global__ void invalid()
{
    for (int i = 0; i < 100; i++) { // a thousand times over, one report
        if (blockIdx.x == 1 && threadIdx.x == 33)
            sink[0] = zero / zero; // at: invalid
        __syncthreads();
    }
}

__global__ void poison()
{
    __shared__ float never[64];
    if (threadIdx.x > 64)
        never[threadIdx.x % 64] = 1;
    __syncthreads();
    sink[threadIdx.x] = never[threadIdx.x] * 2.0f; // at: poison
}

__global__ void divide()
{
    if (threadIdx.x == 3)
        sink[1] = 1.0f / zero; // at: divide
}

__global__ void divide_long()
{
    if (threadIdx.x == 3)
        sink[1] = (float)(1.0L / (long double)zero); // at: divide-long
    __syncthreads();
}

__global__ void overflow()
{
    if (threadIdx.x == 7)
        sink[2] = big * 2.0f; // at: overflow
    __syncthreads();
    if (threadIdx.x == 8)
        sink[3] = __expf(big); // at: overflow-libm
    __syncthreads();
    if (threadIdx.x == 9)
        sink[4] = __half2float(__float2half(big)); // at: overflow-half
}

__global__ void quiet()
{
    // What honest kernels do: masked scores, a first maximum of -inf, exponentials that vanish.
    const float minus_inf = -INFINITY;
    float m = fmaxf(minus_inf, zero);
    sink[threadIdx.x] = __expf(minus_inf - m) + expf(-200.0f + zero) + exp2f(minus_inf);
    sink[threadIdx.x] += __half2float(__float2half(minus_inf)) < 0 ? 1.0f : 0.0f;
    __half nan = __ushort_as_half(0x7E00);
    sink[threadIdx.x] = fmaxf(__half2float(nan), 1.0f);
}

__global__ void null_write()
{
    if (blockIdx.y == 1 && threadIdx.x == 2)
        *nowhere = 1; // at: null-write
}

__device__ __forceinline__ int load(const int *p)
{
    return p[1 << 20] * 3; // at: far-read
}

__global__ void far_read(const int *p)
{
    if (threadIdx.x == 1)
        sink[0] = (float)load(p);
}

__device__ __noinline__ int deep(int n)
{
    volatile char local[8192];
    local[n % 8192] = (char)n;
    return n ? deep(n - 1) + local[n % 8192] : 0; // stack overflow somewhere in this function
}

__global__ void stack_overflow()
{
    if (threadIdx.x == 31)
        sink[0] = (float)deep(1000);
}

__global__ void assertion()
{
    assert(threadIdx.y < 2 || threadIdx.x == 0); // at: assertion
}

__global__ void trap()
{
    if (threadIdx.x == 63)
        __trap(); // at: trap
}

__global__ void int_divide()
{
    if (threadIdx.x == 4)
        sink[0] = (float)(7 / int_zero); // at: int-divide
}

#define CASE(text, kernel, grid, block, ...)                                                                           \
    if (!strcmp(name, text))                                                                                           \
        return simt_launch_kernel(text, kernel, grid, block, 0, ##__VA_ARGS__);

extern "C" int simt_case(const char *name)
{
    CASE("partial", partial, 3, 64)
    CASE("lines", lines, 2, 64)
    CASE("deadlock", deadlock, 4, 64)
    CASE("outside", outside, 2, 32)
    CASE("unnamed", unnamed, 1, 32)
    CASE("mixed", mixed, 1, 32)
    CASE("invalid", invalid, 2, 64)
    CASE("poison", poison, 1, 64)
    CASE("divide", divide, 2, 32)
    CASE("divide-long", divide_long, 2, 32)
    CASE("overflow", overflow, 1, 32)
    CASE("quiet", quiet, 1, 64)
    CASE("null-write", null_write, dim3(1, 2), 32)
    CASE("stack-overflow", stack_overflow, 1, 64)
    CASE("assertion", assertion, 1, dim3(2, 3))
    CASE("trap", trap, 1, 64)
    CASE("int-divide", int_divide, 1, 32)
    int *end = nullptr;
    cudaMalloc(&end, 4096);
    CASE("far-read", far_read, 1, 32, (const int *)(((uintptr_t)end & 0xFFFFFFFFu) | (uintptr_t)0x10000000000))
    return -1;
}
