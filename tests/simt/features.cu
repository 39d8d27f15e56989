// Threads, warps, blocks, memory, atomics and launches, each against values worked out by hand.
#include "check.h"
#include <assert.h>
#include <memory>
#include <string.h>

/* As the C++ library spells it: <string> of GCC 13, bits/shared_ptr_base.h of GCC 12. */
__attribute__((__noinline__, __cold__)) static int spelled_by_the_library()
{
    return 4;
}

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int global_count;

namespace app
{
template <typename T> __device__ T block_sum(T v)
{
    __shared__ T part[32]; // static shared memory inside a template inside a namespace
    for (int o = 16; o; o >>= 1)
        v += __shfl_down_sync(~0u, v, o);
    if (threadIdx.x % warpSize == 0)
        part[threadIdx.x / warpSize] = v;
    __syncthreads();
    T sum = 0;
    for (unsigned i = 0; i < blockDim.x / warpSize; i++)
        sum += part[i];
    __syncthreads();
    return sum;
}

template <int N> __global__ void named_dynamic(int n)
{
    extern __shared__ int pool[]; // an undefined symbol with a mangled name
    pool[threadIdx.x] = n + (int)threadIdx.x;
    __syncthreads();
    CHECK(pool[(threadIdx.x + 1) % blockDim.x], n + (int)((threadIdx.x + 1) % blockDim.x));
    CHECK(N, 7);
}
} // namespace app

struct four {
    float at[4];
};
struct view {
    const float *at;
};

/* As FlashAttention-2's convert_type: on a GPU the local is registers. */
__device__ __forceinline__ view points_at_its_own(const float *from)
{
    four own(*reinterpret_cast<const four *>(from));
    return {reinterpret_cast<const float *>(&own)};
}

__global__ void __launch_bounds__(128, 2) indices()
{
    const float given[4] = {1, 2, 3, 4}, *kept = points_at_its_own(given).at;
    for (int i = 0; i < 4; i++)
        CHECK(kept[i], given[i]);
    CHECK(blockDim.x * blockDim.y * blockDim.z, 4u * 5 * 3);
    CHECK(gridDim.x, 2u);
    CHECK(gridDim.z, 2u);
    CHECK(threadIdx.x < 4 && threadIdx.y < 5 && threadIdx.z < 3, true);
    __shared__ int seen[60];
    const int id = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    seen[id] = id;
    __syncthreads();
    for (int i = 0; i < 60; i++)
        CHECK(seen[i], i);
    if (id == 0)
        atomicAdd(&global_count, 1);
}

__global__ void shared_memory(const float *in)
{
    extern __shared__ __align__(16) unsigned char smem[];
    __shared__ float cells[128];
    __shared__ int2 pairs[2][4];
    float *dynamic = reinterpret_cast<float *>(smem);
    CHECK(((size_t)smem & 15), (size_t)0);
    const int t = threadIdx.x;
    // Nobody has written yet: the poison.
    CHECK(__float_as_uint(cells[t]), 0x7FA07FA0u);
    CHECK(__float_as_uint(dynamic[t]), 0x7FA07FA0u);
    CHECK(pairs[1][3].y, 0x7FA07FA0);
    __syncthreads();
    pairs[t & 1][t & 3] = make_int2(t, t);
    dynamic[t] = (float)t * table[t & 3];
    cells[t] = __ldg(&in[t]);
    __syncthreads();
    CHECK(dynamic[127 - t], (float)(127 - t) * (float)((127 - t) % 4 + 1));
    CHECK(cells[t ^ 1], (float)(t ^ 1) * 0.5f);
    CHECK(app::block_sum<float>((float)t), 8128.0f);
    CHECK(app::block_sum<int>(t), 8128);
}

__global__ void barriers()
{
    const int t = threadIdx.x;
    CHECK(__syncthreads_count(t % 5 == 0), 20);
    CHECK(__syncthreads_or(t == 77), 1);
    CHECK(__syncthreads_or(t == 100), 0);
    CHECK(__syncthreads_and(t < 96), 1);
    CHECK(__syncthreads_and(t < 95), 0);
    for (int i = 0; i < 300; i++)
        CHECK(__syncthreads_count(t < i % 96), i % 96);
}

__global__ void shuffles()
{
    const int lane = threadIdx.x % 32;
    CHECK(__shfl_sync(~0u, lane * 3, 7), 21);
    CHECK(__shfl_sync(~0u, lane, lane + 1), (lane + 1) % 32);
    CHECK(__shfl_sync(~0u, lane, 3, 8), lane / 8 * 8 + 3);
    CHECK(__shfl_up_sync(~0u, lane, 3, 8), lane % 8 < 3 ? lane : lane - 3);
    CHECK(__shfl_down_sync(~0u, lane, 5), lane + 5 > 31 ? lane : lane + 5);
    CHECK(__shfl_xor_sync(~0u, lane, 21), lane ^ 21);
    CHECK(__shfl_xor_sync(~0u, lane, 4, 4), lane % 8 < 4 ? lane : lane ^ 4);
    CHECK(__shfl_xor_sync(~0u, lane + 0.25, 1), (lane ^ 1) + 0.25);
    CHECK(__shfl_xor_sync(~0u, (unsigned long long)lane << 40, 2), (unsigned long long)(lane ^ 2) << 40);
    if (lane < 16) // halves of a warp apart, each with its own mask
        CHECK(__shfl_xor_sync(0x0000FFFFu, lane, 1), lane ^ 1);
    else
        CHECK(__shfl_xor_sync(0xFFFF0000u, lane, 2), lane ^ 2);
    __syncwarp();
    if (lane % 4 == 1) {
        for (int i = 0; i < lane; i++) // lanes leave the loop one after another
            CHECK(__popc(__activemask()) >= 1, 1);
    }
    __syncwarp();
    if (lane >= 8)
        CHECK(__activemask(), 0xFFFFFF00u);
    else
        CHECK(__activemask(), 0x000000FFu);
    CHECK(__activemask(), 0xFFFFFFFFu);
}

__global__ void votes()
{
    const int lane = threadIdx.x % 32;
    CHECK(__ballot_sync(~0u, lane % 3 == 0), 0x49249249u);
    CHECK(__any_sync(~0u, lane == 9), 1);
    CHECK(__any_sync(~0u, 0), 0);
    CHECK(__all_sync(~0u, lane < 32), 1);
    CHECK(__all_sync(~0u, lane < 31), 0);
    CHECK(__reduce_add_sync(~0u, (unsigned)lane), 496u);
    CHECK(__reduce_add_sync(~0u, -lane), -496);
    CHECK(__reduce_min_sync(~0u, lane - 5), -5);
    CHECK(__reduce_min_sync(~0u, (unsigned)(lane + 5)), 5u);
    CHECK(__reduce_max_sync(~0u, lane ^ 21), 31);
    CHECK(__reduce_and_sync(~0u, 0xF0u | (unsigned)lane), 0xF0u);
    CHECK(__reduce_or_sync(~0u, 1u << lane), 0xFFFFFFFFu);
    CHECK(__reduce_xor_sync(~0u, 1u << (lane / 2)), 0u);
    CHECK(__match_any_sync(~0u, lane / 8), 0xFFu << lane / 8 * 8);
    int same = -1;
    CHECK(__match_all_sync(~0u, lane / 32, &same), 0xFFFFFFFFu);
    CHECK(same, 1);
    CHECK(__match_all_sync(~0u, lane, &same), 0u);
    CHECK(same, 0);
    if (lane < 20)
        CHECK(__ballot_sync(0x000FFFFFu, lane & 1), 0x000AAAAAu);
}

// Lanes return one after another; the others' operations and barriers go on without them.
__global__ void early_exit(int *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __syncwarp();
    CHECK(__ballot_sync(~0u, 1), i / 32 == n / 32 ? (1u << n % 32) - 1 : 0xFFFFFFFFu);
    out[i] = i;
}

struct counters {
    int add, sub, min, max, exch, cas;
    unsigned inc, dec, bits_or, bits_and, bits_xor;
    unsigned long long wide_add, wide_max;
    float float_add;
    double double_add;
    int lock, guarded;
};

__global__ void atomics(counters *c)
{
    __shared__ unsigned histogram[4];
    const int t = threadIdx.x;
    if (t < 4)
        histogram[t] = 0;
    __syncthreads();
    atomicAdd(&histogram[t & 3], 1u);
    __syncthreads();
    CHECK(histogram[t & 3], 32u);
    atomicAdd(&c->add, 2);
    atomicSub(&c->sub, 1);
    atomicMin(&c->min, -t);
    atomicMax(&c->max, (t * 37) % 128);
    atomicExch(&c->exch, 5);
    atomicCAS(&c->cas, t, t + 1); // lanes run in order: every one of them hits
    atomicInc(&c->inc, 9);
    atomicDec(&c->dec, 9);
    atomicOr(&c->bits_or, 1u << (t % 32));
    atomicAnd(&c->bits_and, ~(1u << (t % 16)));
    atomicXor(&c->bits_xor, 1u << (t % 3));
    atomicAdd(&c->wide_add, 1ull << 33);
    atomicMax(&c->wide_max, (unsigned long long)t << 35);
    atomicAdd(&c->float_add, 0.5f);
    atomicAdd_block(&c->double_add, 0.25);
    while (atomicCAS(&c->lock, 0, 1) != 0) // a lock, held over a meeting of other lanes
        ;
    c->guarded++;
    if (t % 32 == 0)
        __nanosleep(20);
    __threadfence();
    atomicExch(&c->lock, 0);
}

// Thread 0 waits for a flag that the last thread sets.
__global__ void spin(int *flag)
{
    if (threadIdx.x == 0)
        while (atomicAdd(flag, 0) == 0)
            ;
    else if (threadIdx.x == blockDim.x - 1)
        atomicExch(flag, 1);
    __syncthreads();
    CHECK(*flag, 1);
}

__global__ void clocks(unsigned long long *out)
{
    const long long before = clock64();
    for (int i = 0; i < (int)(blockIdx.x % 3) + 2; i++) {
        out[blockIdx.x * blockDim.x + threadIdx.x] = simt_clock();
        __syncthreads();
        if ((int)threadIdx.x % 7 == i)
            __syncwarp(__activemask());
    }
    CHECK(clock64() >= before, true);
}

__global__ void limits(int *count)
{
    extern __shared__ char all[];
    all[SIMT_SHARED_MAX - 1 - threadIdx.x] = 1;
    __syncthreads();
    assert(blockDim.x == 1024);
    if (__syncthreads_and(all[SIMT_SHARED_MAX - 1024 + threadIdx.x]) && threadIdx.x == 0)
        atomicAdd(count, 1);
}

__global__ void slow(int *count)
{
    if (threadIdx.x == 0)
        atomicAdd(count, 1);
}

#define LAUNCH(k, grid, block, bytes, ...) CHECK_HOST(simt_launch_kernel(#k, k, grid, block, bytes, ##__VA_ARGS__) == 0)
#define CHECK_HOST(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("line %d: not so: %s\n", __LINE__, #condition);                                                     \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

static void run_launches()
{
    std::unique_ptr<float[]> in(new float[128]);
    for (int i = 0; i < 128; i++)
        in[i] = (float)i * 0.5f;
    LAUNCH(indices, dim3(2, 3, 2), dim3(4, 5, 3), 0);
    CHECK_HOST(global_count == 12);
    for (int i = 0; i < 2; i++) // again: poisoned again
        LAUNCH(shared_memory, 3, 128, 128 * sizeof(float), in.get());
    LAUNCH(app::named_dynamic<7>, 2, 64, 64 * sizeof(int), 1000);
    LAUNCH(barriers, 2, 96, 0);
    LAUNCH(shuffles, 2, 64, 0);
    LAUNCH(votes, 2, 64, 0);
    int out[160];
    memset(out, -1, sizeof out);
    LAUNCH(early_exit, 3, 64, 0, out, 150);
    for (int i = 0; i < 160; i++)
        CHECK_HOST(out[i] == (i < 150 ? i : -1));
    counters c = {};
    c.bits_and = 0xFFFFFFFFu;
    LAUNCH(atomics, 1, 128, 0, &c);
    CHECK_HOST(c.add == 256 && c.sub == -128 && c.min == -127 && c.max == 127 && c.exch == 5);
    CHECK_HOST(c.inc == 128 % 10 && c.dec == (10 - 128 % 10) % 10);
    CHECK_HOST(c.bits_or == 0xFFFFFFFFu && c.bits_and == 0xFFFF0000u && c.bits_xor == 3u);
    CHECK_HOST(c.wide_add == 128ull << 33 && c.wide_max == 127ull << 35);
    CHECK_HOST(c.float_add == 64.0f && c.double_add == 32.0 && c.guarded == 128 && c.lock == 0);
    int flag = 0;
    LAUNCH(spin, 1, 96, 0, &flag);
    int full = 0;
    CHECK_HOST(cudaFuncSetAttribute(limits, cudaFuncAttributeMaxDynamicSharedMemorySize, SIMT_SHARED_MAX) == 0);
    LAUNCH(limits, 2, 1024, SIMT_SHARED_MAX, &full);
    CHECK_HOST(full == 2);
}

static void run_clocks()
{
    static unsigned long long stamps[40 * 96];
    LAUNCH(clocks, 40, 96, 0, stamps);
    unsigned long long hash = 0xCBF29CE484222325ull;
    for (unsigned long long s : stamps)
        hash = (hash ^ s) * 0x100000001B3ull;
    printf("stamps %llx\n", hash);
}

static void run_refusals()
{
    CHECK_HOST(simt_launch_kernel("slow", slow, 1, 1025, 0, nullptr) == -1);
    CHECK_HOST(strstr(simt_error(), "1024"));
    CHECK_HOST(cudaGetLastError() != cudaSuccess);
    CHECK_HOST(strstr(cudaGetErrorString(cudaGetLastError()), "1024"));
    CHECK_HOST(simt_launch_kernel("slow", slow, 1, 32, SIMT_SHARED_MAX + 1, nullptr) == -1);
    CHECK_HOST(simt_launch_kernel("slow", slow, 0, 32, 0, nullptr) == -1);
    CHECK_HOST(simt_launch_kernel("slow", slow, dim3(1, 65536), 32, 0, nullptr) == -1);
    int n = 0;
    CHECK_HOST(simt_launch_kernel("slow", slow, 4, 32, 0, &n) == 0 && n == spelled_by_the_library());
    CHECK_HOST(cudaGetLastError() == cudaSuccess);
}

extern "C" int simt_case(const char *name)
{
    if (!strcmp(name, "launches")) {
        run_launches();
    } else if (!strcmp(name, "clocks")) {
        run_clocks();
    } else if (!strcmp(name, "refusals")) {
        run_refusals();
    } else if (!strcmp(name, "cancel")) {
        int n = 0;
        CHECK_HOST(simt_launch_kernel("slow", slow, 1000, 32, 0, &n) == -1);
        CHECK_HOST(n < 1000);
        CHECK_HOST(!strcmp(simt_error(), "cancelled"));
    } else {
        return -1;
    }
    return failures;
}
