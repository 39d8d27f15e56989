// What the checks must find, at the line of "at: CASE", colliding with that of "with: CASE"; and beside each what comes
// close and is correct ("clean-...": nothing may be reported).
#include "tests/simt/checks_helpers.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#include <stdint.h>
#include <string.h>
#include <utility>

__device__ float sink[1024];
__device__ alignas(64) float source[1024];

__global__ void write_write()
{
    __shared__ int x[4];
    x[threadIdx.x / 64] = 1; // at: write-write
}

// The same value by two threads: right by luck.
__global__ void same_value()
{
    __shared__ float m[64];
    m[threadIdx.x % 64] = 3; // at: same-value
    __syncthreads();
    sink[threadIdx.x] = m[threadIdx.x % 64];
}

// A harmful race behind one of the same value, and one that is harmful not at first.
__global__ void ranked()
{
    __shared__ int x[4], y[4], z[4];
    x[threadIdx.x / 64] = 1;                    // at: ranked-same
    y[threadIdx.x / 64] = threadIdx.x;          // at: ranked
    z[threadIdx.x / 64] = threadIdx.x / 48 % 2; // at: ranked-later
}

__global__ void write_read(bool barrier)
{
    __shared__ float x[128];
    x[threadIdx.x] = threadIdx.x; // with: write-read
    if (barrier)
        __syncthreads();
    sink[threadIdx.x] = x[127 - threadIdx.x]; // at: write-read
}

__global__ void read_write(bool barrier)
{
    __shared__ float x[128];
    x[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const float y = x[(threadIdx.x + 32) % 128]; // with: read-write
    if (barrier)
        __syncthreads();
    x[threadIdx.x] = y; // at: read-write
}

// Two vectors side by side, which a compiler would store as one of 32 bytes.
__global__ void wide_write(bool barrier)
{
    __shared__ __align__(32) __half x[128 * 16];
    __align__(16) __half2 out[8];
#pragma unroll
    for (int e = 0; e < 8; e++)
        out[e] = __floats2half2_rn(source[2 * e] * threadIdx.x, source[2 * e + 1] * threadIdx.x);
    reinterpret_cast<uint4 *>(x + threadIdx.x * 16)[0] = reinterpret_cast<const uint4 *>(out)[0]; // with: wide-write
    reinterpret_cast<uint4 *>(x + threadIdx.x * 16)[1] = reinterpret_cast<const uint4 *>(out)[1];
    if (barrier)
        __syncthreads();
    sink[threadIdx.x] = __half2float(x[(threadIdx.x + 32) % 128 * 16]); // at: wide-write
}

// Each warp's weights behind a tile that all read; where they begin too early no barrier is missing.
__global__ void overlapping(int weights)
{
    extern __shared__ __align__(16) unsigned char dynamic[];
    __half *tile = reinterpret_cast<__half *>(dynamic);
    float *w = reinterpret_cast<float *>(dynamic + weights) + threadIdx.x / 32 * 32, sum = 0;
    for (int i = threadIdx.x; i < 256; i += 64)
        tile[i] = __float2half(source[i]);
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn < 3; turn++) {
        w[threadIdx.x % 32] = source[turn] + threadIdx.x; // with: overlap
        __syncwarp();
        sum += w[31 - threadIdx.x % 32];
        for (int i = 0; i < 256; i++) {
            const __half x = tile[i]; // at: overlap
            sum += __half2float(x);
        }
        __syncwarp();
    }
    sink[threadIdx.x] = sum;
}

// All warps read, only the one that read last has met the writer.
__global__ void many_readers(bool barrier)
{
    __shared__ float x[1];
    if (threadIdx.x == 0)
        x[0] = 1;
    __syncthreads();
    sink[threadIdx.x] = x[0]; // with: many-readers
    if (barrier)
        __syncthreads();
    else
        __syncwarp();
    if (threadIdx.x == 127)
        x[0] = 2; // at: many-readers
}

// op 0: nothing, 1: __syncwarp, 2: a shuffle, which orders no memory, 3: __syncwarp of half the warp, twice.
__global__ void lanes(int op)
{
    __shared__ float x[32];
    float y = threadIdx.x;
    x[threadIdx.x] = y; // with: lanes
    if (op == 1)
        __syncwarp();
    else if (op == 2)
        y = __shfl_xor_sync(0xffffffffu, y, 1);
    else if (op == 3)
        __syncwarp(threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u);
    sink[threadIdx.x] = x[threadIdx.x ^ 1] + y; // at: lanes
}

__global__ void half_warps()
{
    __shared__ float x[32];
    x[threadIdx.x] = 1; // with: half-warps
    __syncwarp(threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u);
    sink[threadIdx.x] = x[threadIdx.x ^ 16]; // at: half-warps
}

// The writer has read it last itself: what it races with is the other warp's read.
__global__ void other_reader()
{
    __shared__ float x[1];
    if (threadIdx.x == 0)
        x[0] = 1;
    __syncthreads();
    if (threadIdx.x >= 32)
        sink[threadIdx.x] = x[0]; // with: other-reader
    if (threadIdx.x == 0) {
        const float y = x[0];
        x[0] = y + 1; // at: other-reader
    }
}

__global__ void two_warps()
{
    __shared__ float x[64];
    x[threadIdx.x] = 1; // with: two-warps
    __syncwarp();
    sink[threadIdx.x] = x[threadIdx.x ^ 32]; // at: two-warps
}

__global__ void bytes()
{
    __shared__ unsigned char x[128];
    __shared__ __half y[128];
    x[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = __float2half(1);
    sink[threadIdx.x] = x[threadIdx.x] + __half2float(y[threadIdx.x]);
}

__global__ void atomics()
{
    __shared__ int n;
    if (threadIdx.x == 0)
        n = 0;
    __syncthreads();
    atomicAdd(&n, 1);
    __syncthreads();
    sink[threadIdx.x] = n;
}

__global__ void atomic_and_plain()
{
    __shared__ int n;
    if (threadIdx.x == 0)
        n = 0;
    __syncthreads();
    atomicAdd(&n, 1); // with: atomic-and-plain
    if (threadIdx.x == 127)
        n = 5; // at: atomic-and-plain
}

// Warps 1 to 3 read what warp 0 wrote, behind barrier 1; warp 0 only arrives.
__global__ void named(bool sync)
{
    __shared__ float x[32];
    if (threadIdx.x < 32) {
        x[threadIdx.x] = 1; // with: named
        if (sync)
            asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        if (sync)
            asm volatile("bar.sync 1, 128;" ::: "memory");
        sink[threadIdx.x] = x[threadIdx.x % 32]; // at: named
    }
}

// What a warp does behind its arrival is not ordered by it.
__global__ void arrived()
{
    __shared__ float x[32];
    if (threadIdx.x < 32) {
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        x[threadIdx.x] = 1; // with: arrived
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        sink[threadIdx.x] = x[threadIdx.x % 32]; // at: arrived
    }
}

__global__ void unwritten()
{
    __shared__ float x[64];
    if (threadIdx.x < 63)
        x[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x < 64)
        memcpy(&sink[threadIdx.x], &x[threadIdx.x], 4); // at: unwritten
}

__global__ void unwritten_half()
{
    extern __shared__ __half h[];
    if (threadIdx.x < 63)
        h[threadIdx.x] = __float2half(1);
    __syncthreads();
    if (threadIdx.x < 64)
        sink[threadIdx.x] = __half2float(h[threadIdx.x]); // at: unwritten-half
}

__global__ void beyond_dynamic(int n)
{
    extern __shared__ float d[];
    d[threadIdx.x + n] = 1; // at: beyond-dynamic
}

__global__ void beyond_static(int n)
{
    __shared__ float x[64], y[64];
    y[threadIdx.x % 64] = 1;
    __syncthreads();
    if (threadIdx.x < 64)
        x[threadIdx.x + n] = 2; // at: beyond-static
    __syncthreads();
    sink[threadIdx.x] = x[0] + y[threadIdx.x % 64];
}

__global__ void beyond_global(float *o, int n)
{
    o[threadIdx.x + n] = 1; // at: beyond-global
}

__global__ void blocks(float *o, int step)
{
    o[blockIdx.x * step + threadIdx.x] = 1; // at: blocks
}

__global__ void block_atomics(float *o)
{
    atomicAdd(&o[threadIdx.x], 1.0f); // at: block-atomics
}

__global__ void same_element(float *o, int divide)
{
    o[threadIdx.x / divide] = 1; // at: same-element
}

// Elements from n on stay as they are.
__global__ void fill(float *to, int n)
{
    if (threadIdx.x < n)
        to[threadIdx.x] = threadIdx.x;
}

__global__ void unfilled(const float *from)
{
    sink[threadIdx.x] = from[threadIdx.x]; // at: unfilled
}

__global__ void unfilled_vector(const float *from)
{
    const float4 x = reinterpret_cast<const float4 *>(from)[threadIdx.x]; // at: unfilled-vector
    sink[threadIdx.x] = x.x + x.w;
}

__global__ void unfilled_copy(const float *from)
{
    __shared__ __align__(16) float x[128 * 4];
    __pipeline_memcpy_async(&x[threadIdx.x * 4], &from[threadIdx.x * 4], 16); // at: unfilled-copy
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

// The bytes that memory holds before anybody writes: they are written as values too.
__global__ void fill_bytes(uint8_t *to, int but)
{
    if (threadIdx.x != but)
        to[threadIdx.x] = threadIdx.x % 2 ? 0x7F : 0xA5;
}

__global__ void unfilled_bytes(const uint8_t *from)
{
    sink[threadIdx.x] = from[threadIdx.x]; // at: unfilled-bytes
}

// wait 0: right; 1: no wait; 2: no commit; 3: the thread returns; 4: no barrier behind the wait; 5: one before it
// alone.
__global__ void copies(int wrong)
{
    __shared__ __align__(16) float x[128 * 4];
    __pipeline_memcpy_async(&x[threadIdx.x * 4], &source[threadIdx.x * 4], 16); // with: copies
    if (wrong != 2)
        __pipeline_commit();
    if (wrong == 5)
        __syncthreads();
    if (wrong != 1 && wrong != 3)
        __pipeline_wait_prior(0);
    if (wrong == 3)
        return;
    if (wrong != 4 && wrong != 5)
        __syncthreads();
    sink[threadIdx.x] = x[(127 - threadIdx.x) * 4]; // at: copies
    if (wrong == 1)
        __pipeline_wait_prior(0);
    __syncthreads();
    if (wrong == 2)
        __pipeline_commit();
    __pipeline_wait_prior(0);
}

__global__ void copy_over(bool barrier)
{
    __shared__ __align__(16) float x[128 * 4];
    x[threadIdx.x * 4] = 1;
    __syncthreads();
    sink[threadIdx.x] = x[(127 - threadIdx.x) * 4]; // with: copy-over
    if (barrier)
        __syncthreads();
    __pipeline_memcpy_async(&x[threadIdx.x * 4], &source[threadIdx.x * 4], 16); // at: copy-over
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

__global__ void wmma_load(bool sync)
{
    using namespace nvcuda;
    __shared__ __align__(32) __half x[16 * 24];
    for (int i = threadIdx.x; i < 16 * 24; i += 32)
        x[i] = __float2half(1); // with: wmma-load
    if (sync)
        __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::load_matrix_sync(a, x, 24); // at: wmma-load
    sink[threadIdx.x] = __half2float(a.x[0]);
}

// The last eight columns of each row are padding that nobody writes; as columns they would be read.
__global__ void wmma_padding(bool columns)
{
    using namespace nvcuda;
    __shared__ __align__(32) __half x[16 * 24];
    for (int i = threadIdx.x; i < 16 * 16; i += 32)
        x[i / 16 * 24 + i % 16] = __float2half(1);
    __syncwarp();
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::load_matrix_sync(b, columns ? x + 8 : x, 24); // at: wmma-padding
    sink[threadIdx.x] = __half2float(b.x[0]);
}

__global__ void wmma_store(bool sync)
{
    using namespace nvcuda;
    __shared__ __align__(32) float x[256];
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 1.0f);
    wmma::store_matrix_sync(x, c, 16, wmma::mem_row_major); // with: wmma-store
    if (sync)
        __syncwarp();
    sink[threadIdx.x] = x[threadIdx.x]; // at: wmma-store
}

__global__ void matrices(bool sync)
{
    __shared__ __align__(16) __half x[64];
    for (int i = threadIdx.x; i < 64; i += 32)
        x[i] = __float2half(1); // with: matrices
    if (sync)
        __syncwarp();
    uint32_t r, row = static_cast<uint32_t>(__cvta_generic_to_shared(x + threadIdx.x % 8 * 8));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(row)); // at: matrices
    sink[threadIdx.x] = r;
}

__global__ void misaligned(int by)
{
    __shared__ __align__(16) float x[256];
    for (int i = threadIdx.x; i < 256; i += 32)
        x[i] = 1;
    __syncthreads();
    const float4 *y = reinterpret_cast<const float4 *>(x + by);
    sink[threadIdx.x] = y->w; // at: misaligned
}

__global__ void nan_store(float *o, float x)
{
    o[threadIdx.x] = threadIdx.x == 77 ? x - x : 1.0f; // at: nan-store
}

__global__ void several(const float *in, float *o)
{
    __shared__ float row[128];
    for (int round = 0; round < 3; round++) {
        row[threadIdx.x] = in[threadIdx.x] + round;
        __syncthreads();
        float sum = 0;
        for (int i = 0; i < 128; i++)
            sum += row[i];
        __syncthreads();
        o[blockIdx.x * 128 + threadIdx.x] = sum;
    }
}

// What a function does that the kernel calls; one that is not inlined too.
__global__ void called()
{
    __shared__ float x[128];
    simt_place(0, 0, 0);
    helpers::put(x, threadIdx.x, 1.0f);                      // with: called
    sink[threadIdx.x] = helpers::get(&x[127 - threadIdx.x]); // at: called
}

__global__ void copied()
{
    __shared__ __align__(16) float x[256];
    simt_place(0, 0, 0);
    auto load = [&] {
        helpers::copy_row(&x[threadIdx.x * 2], &source[threadIdx.x * 2], 2); // in: lambda
    };
    load();                             // with: copied
    sink[threadIdx.x] = x[threadIdx.x]; // at: copied
}

__global__ void swapped()
{
    __shared__ float x[128];
    x[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 127)
        std::swap(x[threadIdx.x], x[threadIdx.x + 1]); // at: swapped
}

// Stores that a compiler would make one of: each at its line.
__global__ void alike(float *o, bool whole)
{
    __align__(16) __half out[8];
    for (int i = 0; i < 8; i++)
        out[i] = __float2half(source[i] + 0.0f / source[0]);
    __half *to = reinterpret_cast<__half *>(o) + threadIdx.x * 8;
    if (whole)
        *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(out); // at: alike-whole
    else
        for (int i = 0; i < 8; i++)
            to[i] = out[i]; // at: alike
}

// Another block ends the process before this one writes what is the other's.
__global__ void late(float *o)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (int i = 0; i < 100000000; i++)
            asm volatile("" ::: "memory");
    o[threadIdx.x] = blockIdx.x; // at: late
    if (blockIdx.x == 1 && threadIdx.x == 31)
        *reinterpret_cast<volatile int *>(16) = 1; // at: end
}

// What has no place is dropped; what follows it is seen all the same.
__global__ void dropped(float *in, float *o)
{
    __shared__ float x[64];
    o[512 + threadIdx.x] = 1;                       // at: dropped
    *reinterpret_cast<uint4 *>(in - 516) = uint4{}; // at: dropped-before
    in[threadIdx.x] = 2;                            // at: dropped-input
    x[threadIdx.x / 2] = in[threadIdx.x];           // at: dropped-then
    o[threadIdx.x] = x[0];                          // at: dropped-writers
}

extern "C" float *simt_array(int which);

namespace cg = cooperative_groups;

// op 0: nothing, 1: the tile's barrier, 2: a reduction, which orders no memory, 3: the block's barrier
__global__ void group_lanes(int op)
{
    __shared__ float x[64];
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<8>(block);
    float y = threadIdx.x;
    x[threadIdx.x] = y; // with: group-lanes
    if (op == 1)
        tile.sync();
    else if (op == 2)
        y = cg::reduce(tile, y, cg::plus<float>());
    else if (op == 3)
        block.sync();
    sink[threadIdx.x] = x[threadIdx.x ^ (op == 3 ? 32 : 7)] + y; // at: group-lanes
}

__global__ void group_copy(bool wait)
{
    __shared__ __align__(16) float x[128];
    const auto block = cg::this_thread_block();
    cg::memcpy_async(block, x, source, sizeof x); // with: group-copy
    if (wait)
        cg::wait(block);
    else
        block.sync();
    sink[threadIdx.x] = x[127 - threadIdx.x]; // at: group-copy
}

extern "C" int simt_case(const char *name)
{
    float *in = simt_array(0), *out = simt_array(1), *work = simt_array(2);
    uint8_t *work_bytes = reinterpret_cast<uint8_t *>(work);
#define CASE(text, kernel, grid, block, shared, ...)                                                                   \
    if (!strcmp(name, text))                                                                                           \
        return simt_launch_kernel(text, kernel, dim3(grid), dim3(block), shared, ##__VA_ARGS__);
    CASE("write-write", write_write, 1, 128, 0)
    CASE("ranked", ranked, 2, 128, 0)
    CASE("same-value", same_value, 1, 128, 0)
    CASE("write-read", write_read, 1, 128, 0, false)
    CASE("clean-write-read", write_read, 1, 128, 0, true)
    CASE("read-write", read_write, 1, 128, 0, false)
    CASE("clean-read-write", read_write, 1, 128, 0, true)
    CASE("wide-write", wide_write, 1, 128, 0, false)
    CASE("clean-wide-write", wide_write, 1, 128, 0, true)
    CASE("overlap", overlapping, 1, 64, 1024, 448)
    CASE("clean-overlap", overlapping, 1, 64, 1024, 512)
    CASE("many-readers", many_readers, 1, 128, 0, false)
    CASE("clean-many-readers", many_readers, 1, 128, 0, true)
    CASE("lanes", lanes, 1, 32, 0, 0)
    CASE("clean-lanes", lanes, 1, 32, 0, 1)
    CASE("lanes-shuffle", lanes, 1, 32, 0, 2)
    CASE("clean-lanes-half", lanes, 1, 32, 0, 3)
    CASE("half-warps", half_warps, 1, 32, 0)
    CASE("two-warps", two_warps, 1, 64, 0)
    CASE("other-reader", other_reader, 1, 64, 0)
    CASE("clean-bytes", bytes, 1, 128, 0)
    CASE("clean-atomics", atomics, 2, 128, 0)
    CASE("atomic-and-plain", atomic_and_plain, 1, 128, 0)
    CASE("named", named, 1, 128, 0, false)
    CASE("clean-named", named, 1, 128, 0, true)
    CASE("arrived", arrived, 1, 64, 0)
    CASE("unwritten", unwritten, 2, 64, 0)
    CASE("unwritten-half", unwritten_half, 1, 64, 128)
    CASE("beyond-dynamic", beyond_dynamic, 1, 32, 256, 33)
    CASE("clean-beyond-dynamic", beyond_dynamic, 1, 32, 256, 32)
    CASE("beyond-static", beyond_static, 1, 64, 0, 1)
    CASE("clean-beyond-static", beyond_static, 1, 64, 0, 0)
    CASE("beyond-global", beyond_global, 1, 32, 0, out, 512 - 3 - 31)
    CASE("clean-beyond-global", beyond_global, 1, 32, 0, out, 512 - 3 - 32)
    CASE("blocks", blocks, 2, 128, 0, out, 127)
    CASE("clean-blocks", blocks, 2, 128, 0, out, 128)
#define FIRST(text, kernel, ...)                                                                                       \
    if (!strcmp(name, text) && simt_launch_kernel(text, kernel, dim3(1), dim3(128), 0, __VA_ARGS__))                   \
        return -1;
#define CLEARED(text, array)                                                                                           \
    if (!strcmp(name, text))                                                                                           \
        cudaMemset(array, 0x7F, 512);
    CLEARED("clean-block-atomics", out)
    CASE("clean-block-atomics", block_atomics, 2, 128, 0, out)
    FIRST("unfilled", fill, work, 127)
    CASE("unfilled", unfilled, 1, 128, 0, work)
    FIRST("unfilled-output", fill, out, 127)
    CASE("unfilled-output", unfilled, 1, 128, 0, out)
    FIRST("clean-unfilled", fill, work, 128)
    CASE("clean-unfilled", unfilled, 1, 128, 0, work)
    CLEARED("clean-unfilled-memset", work)
    CASE("clean-unfilled-memset", unfilled, 1, 128, 0, work)
    CASE("clean-unfilled-input", unfilled, 1, 128, 0, in)
    FIRST("unfilled-vector", fill, work, 127)
    CASE("unfilled-vector", unfilled_vector, 1, 32, 0, work)
    FIRST("clean-unfilled-vector", fill, work, 128)
    CASE("clean-unfilled-vector", unfilled_vector, 1, 32, 0, work)
    FIRST("unfilled-copy", fill, work, 127)
    CASE("unfilled-copy", unfilled_copy, 1, 32, 0, work)
    FIRST("block-atomics", fill, work, 127)
    CASE("block-atomics", block_atomics, 1, 128, 0, work)
    FIRST("unfilled-bytes", fill_bytes, work_bytes, 77)
    CASE("unfilled-bytes", unfilled_bytes, 1, 128, 0, work_bytes)
    FIRST("clean-unfilled-bytes", fill_bytes, work_bytes, -1)
    CASE("clean-unfilled-bytes", unfilled_bytes, 1, 128, 0, work_bytes)
    CASE("same-element", same_element, 1, 128, 0, out, 2)
    CASE("clean-same-element", same_element, 1, 128, 0, out, 1)
    CASE("clean-copies", copies, 1, 128, 0, 0)
    CASE("copies", copies, 1, 128, 0, 1)
    CASE("copies-commit", copies, 1, 128, 0, 2)
    CASE("copies-return", copies, 1, 128, 0, 3)
    CASE("copies-barrier", copies, 1, 128, 0, 4)
    CASE("copies-order", copies, 1, 128, 0, 5)
    CASE("group-lanes", group_lanes, 1, 64, 0, 0)
    CASE("group-reduce", group_lanes, 1, 64, 0, 2)
    CASE("clean-group-lanes", group_lanes, 1, 64, 0, 1)
    CASE("clean-group-block", group_lanes, 1, 64, 0, 3)
    CASE("group-copy", group_copy, 1, 128, 0, false)
    CASE("clean-group-copy", group_copy, 1, 128, 0, true)
    CASE("copy-over", copy_over, 1, 128, 0, false)
    CASE("clean-copy-over", copy_over, 1, 128, 0, true)
    CASE("wmma-load", wmma_load, 1, 32, 0, false)
    CASE("clean-wmma-load", wmma_load, 1, 32, 0, true)
    CASE("wmma-padding", wmma_padding, 1, 32, 0, true)
    CASE("clean-wmma-padding", wmma_padding, 1, 32, 0, false)
    CASE("wmma-store", wmma_store, 1, 32, 0, false)
    CASE("clean-wmma-store", wmma_store, 1, 32, 0, true)
    CASE("matrices", matrices, 1, 32, 0, false)
    CASE("clean-matrices", matrices, 1, 32, 0, true)
    CASE("misaligned", misaligned, 1, 32, 0, 2)
    CASE("clean-misaligned", misaligned, 1, 32, 0, 4)
    CASE("nan-store", nan_store, 1, 128, 0, out, 1.0f / 0.0f)
    CASE("clean-nan-store", nan_store, 1, 128, 0, out, 1.0f)
    CASE("called", called, 1, 128, 0)
    CASE("copied", copied, 1, 128, 0)
    CASE("swapped", swapped, 1, 128, 0)
    CASE("alike", alike, 2, 32, 0, out, false)
    CASE("alike-whole", alike, 2, 32, 0, out, true)
    CASE("late", late, 2, 32, 0, out)
    CASE("dropped", dropped, 2, 64, 0, in, out)
    CASE("clean-several", several, 3, 128, 0, in, out)
    return -1;
}
