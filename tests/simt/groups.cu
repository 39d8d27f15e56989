// Cooperative groups of a block, each against CUDA's documented values, worked out by hand or with warp intrinsics.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <string.h>

namespace cg = cooperative_groups;

__device__ float sink[1024];
__device__ alignas(16) float source[512];

__global__ void blocks()
{
    cg::thread_block block = cg::this_thread_block();
    __shared__ int seen[96];
    const unsigned id = threadIdx.x + 8 * (threadIdx.y + 4 * threadIdx.z);
    CHECK(block.thread_rank(), id);
    CHECK(block.num_threads(), 96u);
    CHECK(block.size(), 96u);
    CHECK(cg::thread_block::thread_rank(), id);
    CHECK(block.group_index().y, blockIdx.y);
    CHECK(block.thread_index().z, threadIdx.z);
    CHECK(block.group_dim().x * block.dim_threads().z, 24u);
    seen[id] = (int)id;
    block.sync();
    CHECK(seen[95 - id], (int)(95 - id));
    cg::sync(block);
    CHECK(cg::thread_rank(block), id);
    CHECK(cg::group_size(block), 96u);
}

// The sum of a group of any kind, as the guide's first example has it.
__device__ int sum_of(cg::thread_group group, int *room, int value)
{
    const int rank = (int)group.thread_rank();
    for (int i = (int)group.size() / 2; i > 0; i /= 2) {
        room[rank] = value;
        group.sync();
        if (rank < i)
            value += room[rank + i];
        group.sync();
    }
    return value;
}

__global__ void any_group()
{
    __shared__ int room[64];
    const cg::thread_block block = cg::this_thread_block();
    const int all = sum_of(block, room, (int)threadIdx.x);
    if (threadIdx.x == 0)
        CHECK(all, 2016);
    block.sync();
    const cg::thread_group eight = cg::tiled_partition(block, 8);
    CHECK(eight.size(), 8u);
    const int part = sum_of(eight, room + threadIdx.x / 8 * 8, (int)threadIdx.x);
    if (eight.thread_rank() == 0)
        CHECK(part, 8 * (int)threadIdx.x + 28);
}

template <int N> __device__ void tile_of(const cg::thread_block &block)
{
    cg::thread_block_tile<N> tile = cg::tiled_partition<N>(block);
    const int t = (int)block.thread_rank(), rank = t % N, first = t - rank;
    static_assert(tile.size() == N && tile.num_threads() == N, "known when compiled");
    CHECK(tile.thread_rank(), (unsigned)rank);
    CHECK(tile.meta_group_rank(), (unsigned)(t / N));
    CHECK(tile.meta_group_size(), (block.size() + N - 1) / N);
    CHECK(tile.shfl(t, 0), first);
    CHECK(tile.shfl(t, N + 1), first + 1 % N);
    CHECK(tile.shfl_down(t, 1), rank + 1 < N ? t + 1 : t);
    CHECK(tile.shfl_up(t, 2), rank >= 2 ? t - 2 : t);
    CHECK(tile.shfl_xor(t + 0.5, N / 2), (t ^ N / 2) + 0.5);
    CHECK(tile.any(rank == N - 1), 1);
    CHECK(tile.any(rank == N), 0);
    CHECK(tile.all(rank < N), 1);
    CHECK(tile.all(rank < N - 1), 0);
    CHECK(tile.ballot(rank % 3 == 0), (unsigned)(0x49249249ull & ((1ull << N) - 1)));
    CHECK(tile.match_any(rank / 4), (unsigned)((N < 4 ? (1u << N) - 1 : 0xFu) << rank / 4 * 4));
    int same = -1;
    CHECK(tile.match_all(7, same), (unsigned)((1ull << N) - 1));
    CHECK(same, 1);
    tile.sync();
    cg::sync(tile);
    CHECK(cg::reduce(tile, t, cg::plus<int>()), N * first + N * (N - 1) / 2);
    CHECK(cg::reduce(tile, t, cg::less<int>()), first);
    CHECK(cg::reduce(tile, t, cg::greater<int>()), first + N - 1);
    CHECK(cg::reduce(tile, 1u << rank, cg::bit_or<unsigned>()), (unsigned)((1ull << N) - 1));
    CHECK(cg::reduce(tile, 1u << rank, cg::bit_xor<unsigned>()), (unsigned)((1ull << N) - 1));
    CHECK(cg::reduce(tile, ~(1u << rank), cg::bit_and<unsigned>()), ~(unsigned)((1ull << N) - 1));
    CHECK(cg::reduce(tile, (double)t, [](double a, double b) { return a > b ? a : b; }), first + N - 1.0);
}

struct pair {
    float m, l;
    int key[5];
};

__global__ void tiles()
{
    const auto block = cg::this_thread_block();
    tile_of<32>(block);
    tile_of<16>(block);
    tile_of<8>(block);
    tile_of<4>(block);
    tile_of<2>(block);
    tile_of<1>(block);
    const auto warp = cg::tiled_partition<32>(block);
    const auto quad = cg::tiled_partition<4>(warp);
    const int lane = (int)warp.thread_rank();
    CHECK(quad.meta_group_rank(), (unsigned)lane / 4);
    CHECK(quad.meta_group_size(), 8u);
    CHECK(cg::reduce(quad, lane, cg::plus<int>()), 4 * (lane / 4 * 4) + 6);
    if (quad.meta_group_rank() % 2) // only some tiles of the warp
        CHECK(quad.shfl(lane, 3), lane | 3);
    pair mine = {(float)lane, 1, {lane}};
    mine.key[4] = -lane;
    CHECK(warp.shfl(mine, 9).key[4], -9);
    // A softmax's merge, in CUDA's order: lane ^ 16 first.
    const auto merge = [](pair a, pair b) {
        const float m = a.m > b.m ? a.m : b.m;
        return pair{m, a.l * (a.m < m ? 0.5f : 1.0f) + b.l * (b.m < m ? 0.5f : 1.0f), {}};
    };
    pair want = mine;
    for (int i = 16; i; i /= 2)
        want = merge(want, pair{__shfl_xor_sync(~0u, want.m, i), __shfl_xor_sync(~0u, want.l, i), {}});
    const pair got = cg::reduce(warp, mine, merge);
    CHECK(got.m, 31.0f);
    CHECK(got.l, want.l);
    float sum = 1.0f / (float)(3 + lane), butterfly = sum;
    for (int i = 16; i; i /= 2)
        butterfly += __shfl_xor_sync(~0u, butterfly, i);
    CHECK(cg::reduce(warp, sum, cg::plus<float>()), butterfly);
}

__global__ void together()
{
    const int lane = (int)threadIdx.x % 32;
    if (lane % 3 == 1) { // lanes 1, 4, ..., 31
        const cg::coalesced_group group = cg::coalesced_threads();
        const int rank = lane / 3;
        CHECK(group.size(), 11u);
        CHECK(group.thread_rank(), (unsigned)rank);
        CHECK(group.shfl(lane, 2), 7);
        CHECK(group.shfl_down(lane, 4), rank + 4 < 11 ? lane + 12 : lane);
        CHECK(group.shfl_up(lane, 1), rank ? lane - 3 : lane);
        CHECK(group.ballot(rank >= 8), 0x700u);
        CHECK(group.all(lane % 3), 1);
        CHECK(cg::reduce(group, lane, cg::plus<int>()), 176);
        const float third = 1.0f / (float)(1 + lane);
        float scan = third; // the last rank's of an inclusive scan
        for (int i = 1; i < 11; i *= 2) {
            const float before = __shfl_sync(0x92492492u, scan, rank >= i ? lane - 3 * i : lane);
            scan = rank >= i ? scan + before : scan;
        }
        CHECK(cg::reduce(group, third, cg::plus<float>()), __shfl_sync(0x92492492u, scan, 31));
        const cg::coalesced_group fours = cg::tiled_partition(group, 4);
        CHECK(fours.size(), rank < 8 ? 4u : 3u);
        CHECK(fours.shfl(rank, 0), rank / 4 * 4);
        CHECK(fours.meta_group_size(), 3u);
        const cg::coalesced_group odd = cg::binary_partition(group, rank % 2);
        CHECK(odd.size(), rank % 2 ? 5u : 6u);
        CHECK(odd.thread_rank(), (unsigned)rank / 2);
        CHECK(odd.meta_group_rank(), (unsigned)rank % 2);
        CHECK(cg::binary_partition(group, rank % 2 == 0).meta_group_rank(), rank % 2 ? 0u : 1u);
        CHECK(cg::labeled_partition(group, rank < 99).meta_group_size(), 1u);
        const cg::coalesced_group thirds = cg::labeled_partition(group, rank % 3);
        CHECK(thirds.meta_group_size(), 3u);
        CHECK(thirds.shfl(rank, 1), rank % 3 + 3);
        group.sync();
    }
    __syncwarp();
    CHECK(cg::coalesced_threads().size(), 32u);
}

// n: floats; from: the first one, which decides the alignment.
__global__ void copies(int from, int n)
{
    __shared__ __align__(16) float tile[2][256];
    const auto block = cg::this_thread_block();
    tile[1][threadIdx.x] = -1;
    block.sync();
    cg::memcpy_async(block, tile[0], source + from, sizeof(float) * n);
    cg::memcpy_async(block, &tile[1][1], n, source + from, 3);
    cg::wait_prior<1>(block);
    CHECK(tile[0][n - 1], source[from + n - 1]);
    CHECK(tile[0][n / 2], source[from + n / 2]);
    cg::wait(block);
    CHECK(tile[1][3], source[from + 2]);
    CHECK(tile[1][4], -1.0f);
    const auto warp = cg::tiled_partition<32>(block);
    cg::memcpy_async(warp, (char *)tile[0] + warp.meta_group_rank() * 32, (const char *)source + from + 1, 31);
    cg::wait(warp);
    CHECK(((const char *)tile[0])[warp.meta_group_rank() * 32 + 30], ((const char *)source)[from + 31]);
}

__global__ void outside()
{
    const auto half = cg::tiled_partition<16>(cg::this_thread_block());
    if (threadIdx.x >= 24)
        return;
    sink[threadIdx.x] = (float)half.shfl(threadIdx.x, 12); // at: outside
}

__global__ void beyond()
{
    if (threadIdx.x < 5)
        sink[threadIdx.x] = (float)cg::coalesced_threads().shfl(threadIdx.x, 5); // at: beyond
}

__global__ void apart()
{
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    if (threadIdx.x < 9)
        warp.sync(); // at: apart
    else
        cg::this_thread_block().sync();
}

__global__ void width()
{
    cg::tiled_partition(cg::this_thread_block(), 12).sync(); // at: width
}

__global__ void left()
{
    __shared__ __align__(16) float tile[128];
    cg::memcpy_async(cg::this_thread_block(), tile, source, sizeof tile); // at: left
}

#define CASE(text, kernel, grid, block, ...)                                                                           \
    if (!strcmp(name, text))                                                                                           \
        return simt_launch_kernel(text, kernel, grid, block, 0, ##__VA_ARGS__);

extern "C" int simt_case(const char *name)
{
    for (int i = 0; i < 512; i++)
        source[i] = (float)i * 1.25f;
    if (!strcmp(name, "all")) {
        const int rc = simt_launch_kernel("blocks", blocks, dim3(2, 2), dim3(8, 4, 3), 0) |
                       simt_launch_kernel("any_group", any_group, 2, 64, 0) |
                       simt_launch_kernel("tiles", tiles, 2, 96, 0) |
                       simt_launch_kernel("together", together, 2, 64, 0) |
                       simt_launch_kernel("copies", copies, 2, 64, 0, 0, 256) |
                       simt_launch_kernel("copies", copies, 1, 64, 0, 2, 255) |
                       simt_launch_kernel("copies", copies, 1, 64, 0, 3, 77);
        return rc | failures;
    }
    CASE("outside", outside, 1, 32)
    CASE("beyond", beyond, 1, 32)
    CASE("apart", apart, 1, 64)
    CASE("width", width, 1, 32)
    CASE("left", left, 1, 32)
    return -1;
}
