/* Values whose place can be read off them, held by the threads in every arrangement that probes meet: what arrives in
   the trace must be the same whichever way it was brought together. 64 x 64 tiles, 4 warps of 16 rows. */
#include "attnscope.h"

#include <cuda_fp16.h>
#include <mma.h>

#define VALUE(r, c) (static_cast<float>((r)*64 + (c)))

/* 1: the lanes of a warp work on different heads. */
#ifndef TILE_PER_LANE
#define TILE_PER_LANE 0
#endif
ASC_CHOICES(TILE_PER_LANE, 0, 1);

/* 1: WMMA accumulators, whose elements CUDA itself has put where they are. */
#ifndef FRAGMENTS
#define FRAGMENTS 0
#endif
ASC_CHOICES(FRAGMENTS, 0, 1);

/* Lane l works on head l: it has the 16 rows of its warp there, half a row at a time. */
__global__ void tile_per_lane(float *lse, int q_len)
{
    const int row0 = threadIdx.x / 32 * 16, head = threadIdx.x % 32;
    ASC_AT(blockIdx.z, head, blockIdx.x);
    for (int half = 0; half < 32; half++) {
        const int row = row0 + half / 2, col0 = half % 2 * 32;
        float values[32];
#pragma unroll
        for (int i = 0; i < 32; i++)
            values[i] = VALUE(row, col0 + i) + 4096.0f * head;
        ASC_RECORD(s, 0, i, 32, row, col0 + i, values[i]);
        if (half % 2 == 0) {
            float m = VALUE(row, 0) + 4096.0f * head;
            ASC_RECORD_ROW(m, 0, row, true, m);
        }
    }
    if (threadIdx.x < 32 && blockIdx.x * 64 < q_len)
        lse[head * q_len + blockIdx.x * 64] = 0;
}

__global__ void patterns(float *lse, int q_len)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row0 = 16 * warp;
    ASC_AT(blockIdx.z, blockIdx.y, blockIdx.x);
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
    ASC_RECORD(s, 0, i, 32, ACC_ROW(i), ACC_COL(i), acc[i]);
    ASC_RECORD(k, 0, i, 32, ACC_ROW(i), ACC_COL(i), narrow[i]);
    ASC_RECORD(u, 0, i, 32, row0 + lane / 2, lane % 2 * 32 + i, half_row[i]);
    ASC_RECORD(v, 0, i, 32, row0 + i / 2, 2 * lane + i % 2, pairs[i]);
    /* Scattered: columns backwards in every other row, each lane at another place of its row; by half a warp only. */
    if (lane % 2 == 0)
        ASC_RECORD(p, 0, i, 32, row0 + lane / 2, lane % 4 ? 63 - i : i * 5 % 32, acc[0]);
    /* A number of values that is no power of two, and rows that are no multiple of anything. */
    ASC_RECORD(q, 0, i, 7, i, threadIdx.x % 64, some[i]);
    float m = VALUE(threadIdx.x, 0);
    if (threadIdx.x < 50)
        ASC_RECORD_ROW(m, 0, threadIdx.x, true, m);
    /* Beyond the tile: counted, not written. */
    ASC_RECORD(alpha, 0, i, 2, threadIdx.x % 64 + 64 * i, 0, m);
    if (threadIdx.x == 0 && blockIdx.x * 64 < q_len)
        lse[blockIdx.x * 64] = 0;
}

/* Tiles whose elements say where they are, loaded by CUDA: each warp has 16 rows, as four accumulators of either type.
 */
__global__ void fragments(float *lse, int q_len)
{
    namespace wmma = nvcuda::wmma;
    __shared__ __align__(128) float wide[64 * 64];
    __shared__ __align__(128) __half narrow[64 * 64];
    const int row0 = threadIdx.x / 32 * 16;
    ASC_AT(blockIdx.z, blockIdx.y, blockIdx.x);
    for (int i = threadIdx.x; i < 64 * 64; i += 128) {
        wide[i] = VALUE(i / 64, i % 64);
        narrow[i] = __float2half(wide[i] / 4);
    }
    __syncthreads();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> of_float[4];
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> of_half[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        wmma::load_matrix_sync(of_float[j], wide + row0 * 64 + 16 * j, 64, wmma::mem_row_major);
        wmma::load_matrix_sync(of_half[j], narrow + row0 * 64 + 16 * j, 64, wmma::mem_row_major);
    }
    ASC_RECORD_FRAGMENT(s, 0, row0, 0, of_float);
    ASC_RECORD_FRAGMENT(k, 0, row0, 0, of_half);
    ASC_RECORD_FRAGMENT(p, 0, row0, 16, of_float[1]);
    if (threadIdx.x == 0 && blockIdx.x * 64 < q_len)
        lse[blockIdx.x * 64] = 0;
}

static const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != 64)
        return "head_dim must be 64";
    if (TILE_PER_LANE && problem->heads != 32)
        return "heads must be 32";
    plan->br = plan->bc = 64;
    plan->threads = 128;
    return nullptr;
}

static const char *launch(const asc_problem *problem, void *stream)
{
    const dim3 grid((problem->q_len + 63) / 64, TILE_PER_LANE ? 1 : problem->heads, problem->batch);
    if (TILE_PER_LANE)
        return ASC_LAUNCH(tile_per_lane, grid, 128, 0, stream, problem->lse, problem->q_len);
    if (FRAGMENTS)
        return ASC_LAUNCH(fragments, grid, 128, 0, stream, problem->lse, problem->q_len);
    return ASC_LAUNCH(patterns, grid, 128, 0, stream, problem->lse, problem->q_len);
}

ASC_KERNEL(patterns)
{
    kernel.plan = plan;
    kernel.launch = launch;
}
