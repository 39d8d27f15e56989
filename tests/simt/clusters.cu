// Clusters of blocks: ranks, distributed shared memory by PTX and by cooperative groups, their barrier, st.async,
// remote arrivals, multicast, and what goes wrong there.
#include "check.h"
#include <cooperative_groups.h>
#include <stdint.h>
#include <string.h>

namespace cg = cooperative_groups;

__device__ uint32_t shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ uint32_t mapped(uint32_t address, uint32_t rank)
{
    uint32_t out;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(address), "r"(rank));
    return out;
}
__device__ void init(uint32_t barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ void arrive_far(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void wait(uint32_t barrier, int parity)
{
    asm volatile(
        "{\n.reg .pred P;\nL: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1;\n@!P bra L;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}
__device__ void send(uint32_t to, float a, float b, float c, float d, uint32_t barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "f"(a), "f"(b), "f"(c), "f"(d), "r"(barrier)
                 : "memory");
}
__device__ void store_far(uint32_t to, int value)
{
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory"); // at: store-far
}
__device__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Who is who in clusters of 2 x 2.
__global__ void __cluster_dims__(2, 2) ranks()
{
    uint32_t rank, size, x, y;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(x));
    asm("mov.u32 %0, %%clusterid.y;" : "=r"(y));
    const auto cluster = cg::this_cluster();
    CHECK(rank, blockIdx.x % 2 + blockIdx.y % 2 * 2);
    CHECK(size, 4u);
    CHECK(x, blockIdx.x % 2);
    CHECK(y, blockIdx.y / 2);
    CHECK(cluster.block_rank(), rank);
    CHECK(cluster.num_blocks(), 4u);
    CHECK(cluster.thread_rank(), rank * blockDim.x + threadIdx.x);
    CHECK(cluster.block_index().y, blockIdx.y % 2);
}

// Each block writes into its right neighbor's memory and reads from its left one's, `rounds` times.
template <int blocks> __global__ void __cluster_dims__(blocks, 1, 1) neighbors(int rounds)
{
    __shared__ int from_left[32];
    extern __shared__ int own[];
    auto cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank();
    int *right = cluster.map_shared_rank(from_left, (rank + 1) % blocks);
    CHECK(cluster.query_shared_rank(right), (rank + 1) % blocks);
    for (int i = 0; i < rounds; i++) {
        cluster.sync();
        right[threadIdx.x] = static_cast<int>(1000 * rank + threadIdx.x + i);
        own[threadIdx.x] = static_cast<int>(rank + i);
        cluster.sync();
        const unsigned left = (rank + blocks - 1) % blocks;
        CHECK(from_left[threadIdx.x], static_cast<int>(1000 * left + threadIdx.x + i));
        uint32_t seen;
        asm volatile("ld.shared::cluster.u32 %0, [%1];"
                     : "=r"(seen)
                     : "r"(mapped(shared_address(own + threadIdx.x), left))
                     : "memory");
        CHECK(seen, left + i);
    }
    cluster.sync();
}

// st.async into the other block, which waits for the bytes; told that it may come by a remote arrival.
__global__ void exchange(int rounds)
{
    __shared__ __align__(16) float4 box[64];
    __shared__ __align__(8) uint64_t full, free_;
    const uint32_t rank = cg::this_cluster().block_rank(), peer = rank ^ 1;
    const uint32_t f = shared_address(&full), e = shared_address(&free_);
    if (threadIdx.x == 0) {
        init(f, 1);
        init(e, 64);
        expect(f, sizeof box);
    }
    cluster_sync();
    for (int i = 0; i < rounds; i++) {
        if (i)
            wait(e, (i - 1) & 1);
        send(mapped(shared_address(&box[threadIdx.x]), peer), rank, threadIdx.x, i, 0, mapped(f, peer));
        wait(f, i & 1);
        CHECK(box[threadIdx.x].x, static_cast<float>(peer));
        CHECK(box[threadIdx.x].y, static_cast<float>(threadIdx.x));
        CHECK(box[threadIdx.x].z, static_cast<float>(i));
        __syncthreads();
        if (threadIdx.x == 0 && i + 1 < rounds)
            expect(f, sizeof box);
        __syncthreads();
        if (i + 1 < rounds)
            arrive_far(mapped(e, peer));
    }
}

// One block's copy to both, and a copy from shared memory to shared memory.
__global__ void __cluster_dims__(2) multicast(const float *from)
{
    extern __shared__ __align__(128) float shared[];
    __shared__ __align__(8) uint64_t barrier, sent;
    const uint32_t rank = cg::this_cluster().block_rank();
    const uint32_t b = shared_address(&barrier), s = shared_address(&sent), tile = shared_address(shared);
    if (threadIdx.x == 0) {
        init(b, 1);
        init(s, 1);
        expect(b, 512);
        expect(s, 256);
    }
    cluster_sync();
    if (threadIdx.x == 0 && rank == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], %2, [%3], %4;" ::"r"(tile),
                     "l"(from), "r"(512), "r"(b), "h"(static_cast<uint16_t>(3))
                     : "memory");
    wait(b, 0);
    CHECK(shared[threadIdx.x], static_cast<float>(threadIdx.x));
    if (threadIdx.x == 0)
        asm volatile(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                mapped(tile + 1024, rank ^ 1)),
            "r"(tile), "r"(256), "r"(mapped(s, rank ^ 1))
            : "memory");
    wait(s, 0);
    CHECK(shared[256 + threadIdx.x % 64], static_cast<float>(threadIdx.x % 64));
    cluster_sync(); // the source of a copy outlives it
}

__global__ void __cluster_dims__(2) peer_left()
{
    __shared__ int cell;
    if (cg::this_cluster().block_rank() == 1)
        return;
    for (int i = 0; i < 2000; i++) // the other one is gone by then
        __nanosleep(1);
    store_far(mapped(shared_address(&cell), 1), 1);
}
__global__ void __cluster_dims__(2) no_peer()
{
    __shared__ int cell;
    if (threadIdx.x == 0)
        store_far(mapped(shared_address(&cell), 2), 1);
}
__global__ void __cluster_dims__(2) one_waits()
{
    __shared__ __align__(8) uint64_t full;
    const uint32_t f = shared_address(&full);
    if (threadIdx.x == 0) {
        init(f, 1);
        expect(f, 32);
    }
    cluster_sync();
    if (cg::this_cluster().block_rank() == 0)
        wait(f, 0);
    else if (threadIdx.x == 0)
        send(mapped(f, 0) + 64, 1, 2, 3, 4, mapped(f, 0)); // 16 of 32 bytes
    cluster_sync();
}
__global__ void __cluster_dims__(2) waits_alone()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__global__ void __cluster_dims__(2) never_waited()
{
    __shared__ __align__(16) float4 box;
    __shared__ __align__(8) uint64_t full;
    const uint32_t f = shared_address(&full);
    if (threadIdx.x == 0) {
        init(f, 1);
        expect(f, 16);
    }
    cluster_sync();
    if (threadIdx.x == 0)
        send(mapped(shared_address(&box), cg::this_cluster().block_rank() ^ 1), 1, 2, 3, 4,
             mapped(f, cg::this_cluster().block_rank() ^ 1));
    cluster_sync();
}
__global__ void too_many_registers()
{
    if (threadIdx.x < 128)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
}

#define LAUNCH(kernel, grid, block, ...)                                                                               \
    do {                                                                                                               \
        if (simt_launch_kernel(#kernel, kernel, grid, block, 4096, ##__VA_ARGS__))                                     \
            failures++, printf("%s: %s\n", #kernel, simt_error());                                                     \
    } while (0)

static void launch_exchange(int grid, int rounds)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    config.gridDim = dim3(grid), config.blockDim = dim3(64), config.attrs = &attribute, config.numAttrs = 1;
    if (cudaLaunchKernelEx(&config, exchange, rounds) != cudaSuccess)
        failures++, printf("exchange: %s\n", simt_error());
}

extern "C" int simt_case(const char *name)
{
    static __align__(16) float from[128];
    for (int i = 0; i < 128; i++)
        from[i] = static_cast<float>(i);
    if (!strcmp(name, "all")) {
        LAUNCH(ranks, dim3(4, 6), 32);
        LAUNCH(neighbors<2>, 6, 32, 3);
        LAUNCH(neighbors<8>, 8, 32, 2);
        launch_exchange(6, 4);
        LAUNCH(multicast, 4, 128, from);
    } else if (!strcmp(name, "peer-left")) {
        LAUNCH(peer_left, 2, 32);
    } else if (!strcmp(name, "no-peer")) {
        LAUNCH(no_peer, 2, 32);
    } else if (!strcmp(name, "one-waits")) {
        LAUNCH(one_waits, 2, 32);
    } else if (!strcmp(name, "waits-alone")) {
        LAUNCH(waits_alone, 2, 32);
    } else if (!strcmp(name, "never-waited")) {
        LAUNCH(never_waited, 2, 32);
    } else if (!strcmp(name, "registers")) {
        LAUNCH(too_many_registers, 1, 384);
    } else {
        return -1;
    }
    return failures;
}
