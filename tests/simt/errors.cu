// One mistake per kernel; the test knows what must be reported, and finds the line by its comment "at: CASE".
#include <assert.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
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

__device__ __attribute__((noinline)) int deep(int n)
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

__global__ void atomic_local()
{
    int mine = 0;
    __shared__ int ours;
    atomicExch(&ours, 0);
    if (threadIdx.x == 6)
        for (int i = 0; i < 3; i++)
            sink[i] = (float)atomicAdd(&mine, 1); // at: atomic-local
    atomicAdd(&ours, 1);
}

__global__ void copy_misaligned(const float *in)
{
    __shared__ float to[64];
    __pipeline_memcpy_async(&to[0], in + threadIdx.x, 16); // at: copy-misaligned
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

__global__ void copy_bytes(const float *in)
{
    __shared__ float to[64];
    __pipeline_memcpy_async(&to[0], in, 12); // at: copy-bytes
}

__global__ void copy_wild(const float *in)
{
    __shared__ float4 to;
    __pipeline_memcpy_async(&to, in, 16, 16); // nothing is read
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (threadIdx.x == 2)
        __pipeline_memcpy_async(&to, in, 16); // at: copy-wild
}

template <class T> using sum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, T>;

__global__ void matrix_misaligned()
{
    __shared__ __align__(128) float tile[512];
    sum<float> f;
    nvcuda::wmma::fill_fragment(f, 1.0f);
    nvcuda::wmma::store_matrix_sync(tile + 4, f, 16, nvcuda::wmma::mem_row_major); // at: matrix-misaligned
    nvcuda::wmma::store_matrix_sync(tile, f, 17, nvcuda::wmma::mem_row_major);     // at: matrix-ldm
    nvcuda::wmma::load_matrix_sync(f, tile + threadIdx.x / 16 * 256, 16,           // at: matrix-two
                                   nvcuda::wmma::mem_row_major);
}

__global__ void matrix_apart()
{
    __shared__ __align__(128) float tile[256];
    sum<float> f;
    nvcuda::wmma::fill_fragment(f, 1.0f);
    if (threadIdx.x < 20)
        nvcuda::wmma::store_matrix_sync(tile, f, 16, nvcuda::wmma::mem_row_major); // at: matrix-apart
}

__global__ void matrix_overflow()
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
    sum<__half> s;
    wmma::fill_fragment(a, 256.0f);
    wmma::fill_fragment(b, 64.0f);
    wmma::fill_fragment(s, 0.0f);
    wmma::mma_sync(s, a, b, s); // at: matrix-overflow
    wmma::fill_fragment(a, -256.0f);
    wmma::mma_sync(s, a, b, s); // what comes in infinite is no news
    sink[threadIdx.x] = __half2float(s.x[0]);
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
    CASE("atomic-local", atomic_local, 1, 32)
    CASE("copy-misaligned", copy_misaligned, 1, 32, sink)
    CASE("copy-bytes", copy_bytes, 1, 32, sink)
    CASE("copy-wild", copy_wild, 1, 32, (const float *)nullptr)
    CASE("matrix-misaligned", matrix_misaligned, 1, 32)
    CASE("matrix-apart", matrix_apart, 1, 32)
    CASE("matrix-overflow", matrix_overflow, 1, 32)
    int *end = nullptr;
    cudaMalloc(&end, 4096);
    CASE("far-read", far_read, 1, 32, (const int *)(((uintptr_t)end & 0xFFFFFFFFu) | (uintptr_t)0x10000000000))
    return -1;
}
