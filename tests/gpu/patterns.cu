/* Values whose place can be read off them, held by the threads in every arrangement that probes meet: what arrives in
   the trace must be the same whichever way it was brought together. 64 x 64 tiles, 4 warps of 16 rows. */
#include "attnscope.h"

#include <cuda_fp16.h>

#define VALUE(r, c) (static_cast<float>((r)*64 + (c)))

__global__ void patterns(float *lse, int q_len)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row0 = 16 * warp;
    ASC_TILE(blockIdx.z, blockIdx.y, blockIdx.x);
    float acc[32], half_row[32];
    __half narrow[32], pairs[32], some[7];

    /* Accumulators of mma.m16n8: 8 tiles of (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). */
#define ACC_ROW(i) (row0 + lane / 4 + (i) / 2 % 2 * 8)
#define ACC_COL(i) ((i) / 4 * 8 + lane % 4 * 2 + (i) % 2)
#pragma unroll
    for (int i = 0; i < 32; i++) {
        acc[i] = VALUE(ACC_ROW(i), ACC_COL(i));
        narrow[i] = __float2half(VALUE(ACC_ROW(i), ACC_COL(i)) / 4);
        half_row[i] = VALUE(row0 + lane / 2, lane % 2 * 32 + i);
        pairs[i] = __float2half(VALUE(row0 + i / 2, 2 * lane + i % 2) / 4);
    }
#pragma unroll
    for (int i = 0; i < 7; i++)
        some[i] = __float2half(VALUE(i, threadIdx.x % 64) / 4);
    ASC_EACH(s, 0, 32, ACC_ROW(i), ACC_COL(i), acc[i]);
    ASC_EACH(k, 0, 32, ACC_ROW(i), ACC_COL(i), narrow[i]);
    ASC_EACH(u, 0, 32, row0 + lane / 2, lane % 2 * 32 + i, half_row[i]);
    ASC_EACH(v, 0, 32, row0 + i / 2, 2 * lane + i % 2, pairs[i]);
    /* Scattered: columns backwards in every other row, each lane at another place of its row; by half a warp only. */
    if (lane % 2 == 0)
        ASC_EACH(p, 0, 32, row0 + lane / 2, lane % 4 ? 63 - i : i * 5 % 32, acc[0]);
    /* A number of values that is no power of two, and rows that are no multiple of anything. */
    ASC_EACH(q, 0, 7, i, threadIdx.x % 64, some[i]);
    float m = VALUE(threadIdx.x, 0);
    if (threadIdx.x < 50)
        ASC_ROW(m, 0, threadIdx.x, m);
    /* Beyond the tile: counted, not written. */
    ASC_EACH(alpha, 0, 2, threadIdx.x % 64 + 64 * i, 0, m);
    if (threadIdx.x == 0 && blockIdx.x * 64 < q_len)
        lse[blockIdx.x * 64] = 0;
}

static const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != 64)
        return "head_dim must be 64";
    plan->br = plan->bc = 64;
    plan->threads = 128;
    return nullptr;
}

static const char *launch(const asc_problem *problem, void *stream)
{
    const dim3 grid((problem->q_len + 63) / 64, problem->heads, problem->batch);
    return ASC_LAUNCH(patterns, grid, 128, 0, stream, problem->lse, problem->q_len);
}

ASC_KERNEL(patterns)
{
    kernel.plan = plan;
    kernel.launch = launch;
}
