// Named barriers in inline PTX: producers and consumers, parts of a block, and the mistakes that a GPU would not have
// shown.
#include "check.h"
#include <stdint.h>
#include <string.h>

__device__ void sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ void arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Warp 2 copies, warps 0 and 1 read; two stages. A stage's barriers: 1 + stage full, 3 + stage empty.
__global__ void pipeline(const uint32_t *in, int rounds)
{
    __shared__ __align__(16) uint32_t stages[2][128];
    const int t = threadIdx.x, threads = 96;
    if (t >= 64) {
        for (int i = 0; i < rounds; i++) {
            if (i >= 2)
                sync(3 + i % 2, threads);
            const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(&stages[i % 2][(t - 64) * 4]));
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n"
                         "cp.async.commit_group;\n"
                         "cp.async.wait_group 0;\n" ::"r"(to),
                         "l"(in + 128 * i + (t - 64) * 4)
                         : "memory");
            arrive(1 + i % 2, threads);
        }
    } else {
        for (int i = 0; i < rounds; i++) {
            sync(1 + i % 2, threads);
            CHECK(stages[i % 2][2 * t] + stages[i % 2][2 * t + 1], in[128 * i + 2 * t] + in[128 * i + 2 * t + 1]);
            if (i + 2 < rounds)
                arrive(3 + i % 2, threads);
        }
    }
}

// Each half of the block turns its own cells around, without waiting for the other; then all of it.
__global__ void halves(uint64_t *clocks)
{
    __shared__ uint32_t cell[128];
    const int t = threadIdx.x, half = t / 64;
    for (int i = 0; i <= 5 * half; i++) {
        cell[t] = t + i;
        asm volatile("barrier.cta.sync.aligned %0, 64;" ::"r"(7 + half) : "memory");
        CHECK(cell[64 * half + (t + 1) % 64], 64u * half + (t + 1) % 64 + i);
        asm volatile("barrier.sync.aligned %0, 64;" ::"r"(7 + half) : "memory");
    }
    asm volatile("bar.sync 15;" ::: "memory");
    CHECK(cell[127 - t], 127u - t + 5 * (t < 64));
    asm volatile("bar.sync 0, 128;" ::: "memory");
    // Without .aligned lanes count one by one: odd ones, then even ones.
    cell[t] = t;
    if (t % 2)
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    else
        asm volatile("barrier.arrive 2, 128; barrier.sync 3, 64;" ::: "memory");
    if (t % 2)
        asm volatile("barrier.cta.sync 2, 128;" ::: "memory");
    CHECK(cell[t % 2 ? t - 1 : (t + 2) % 128], t % 2 ? t - 1u : (t + 2u) % 128);
    asm volatile("bar.sync %0;" ::"r"(0) : "memory");
    // A warp that arrives for its part and waits for another one counts twice, as CUTLASS's epilogues have it.
    if (t >= 32)
        arrive(4, 128);
    if (t >= 96)
        sync(4, 128);
    clocks[t] = simt_clock();
}

__global__ void wrong_number()
{
    asm volatile("bar.sync 16, 32;"); // at: number
}
__global__ void wrong_count()
{
    sync(1, 48);
}
__global__ void no_count()
{
    arrive(1, 0);
}
__global__ void too_many()
{
    asm volatile("bar.arrive 1, 96;"); // at: too-many
}

__global__ void different()
{
    const int threads = threadIdx.x < 32 ? 64 : 32;
    asm volatile("bar.sync 2, %0;" ::"r"(threads) : "memory"); // at: different
}

__global__ void again()
{
    if (threadIdx.x < 32) {
        arrive(1, 96);
        asm volatile("bar.arrive 1, 96;" ::: "memory"); // at: again
    } else if (threadIdx.x < 64) {
        sync(1, 96);
    }
}

__global__ void lanes_apart()
{
    if (threadIdx.x % 32 < 16)
        asm volatile("bar.sync 3, 32;" ::: "memory"); // at: lanes-apart
    __syncwarp();
}

__global__ void never_complete()
{
    if (threadIdx.x < 32)
        asm volatile("bar.sync 4, 64;" ::: "memory"); // at: never-complete
    else
        asm volatile("bar.sync 5, 64;" ::: "memory");
}

__global__ void returned()
{
    if (threadIdx.x < 32)
        asm volatile("bar.sync 6;" ::: "memory"); // at: returned
}

__global__ void both_zeros()
{
    if (threadIdx.x < 32)
        asm volatile("bar.arrive 0, 64;" ::: "memory");
    __syncthreads(); // at: both-zeros
}

#define LAUNCH(kernel, grid, block, ...)                                                                               \
    do {                                                                                                               \
        if (simt_launch_kernel(#kernel, kernel, grid, block, 0, ##__VA_ARGS__))                                        \
            failures++, printf("%s: %s\n", #kernel, simt_error());                                                     \
    } while (0)

extern "C" int simt_case(const char *name)
{
    static uint32_t in[128 * 9];
    static uint64_t clocks[128];
    for (uint32_t i = 0; i < 128 * 9; i++)
        in[i] = i * i;
    if (!strcmp(name, "all")) {
        for (int rounds = 1; rounds < 10; rounds += 4)
            LAUNCH(pipeline, 3, 96, in, rounds);
        LAUNCH(halves, 2, 128, clocks);
        printf("clock %llu\n", static_cast<unsigned long long>(clocks[0]));
    } else if (!strcmp(name, "number")) {
        LAUNCH(wrong_number, 1, 32);
    } else if (!strcmp(name, "count")) {
        LAUNCH(wrong_count, 1, 64);
    } else if (!strcmp(name, "no-count")) {
        LAUNCH(no_count, 1, 64);
    } else if (!strcmp(name, "too-many")) {
        LAUNCH(too_many, 1, 64);
    } else if (!strcmp(name, "different")) {
        LAUNCH(different, 1, 64);
    } else if (!strcmp(name, "again")) {
        LAUNCH(again, 1, 96);
    } else if (!strcmp(name, "lanes-apart")) {
        LAUNCH(lanes_apart, 1, 64);
    } else if (!strcmp(name, "never-complete")) {
        LAUNCH(never_complete, 1, 64);
    } else if (!strcmp(name, "returned")) {
        LAUNCH(returned, 1, 64);
    } else if (!strcmp(name, "both-zeros")) {
        LAUNCH(both_zeros, 1, 64);
    } else {
        return -1;
    }
    return failures;
}
