/* A kernel that records and then goes wrong, in the way that the variable ATTNSCOPE_FAULT names. The tests see what is
   said of it, and that what was recorded before is kept. */
#include "attnscope.h"

#include <assert.h>
#include <cuda_fp16.h>
#include <stdlib.h>
#include <string.h>

enum fault { NONE, ILLEGAL, MISALIGNED, ASSERT, TRAP, HANG, OVERRUN };

/* The third kv tile of the second block is the one that fails. */
__global__ void faults(const __half *q, __half *o, float *lse, int q_len, int kv_tiles, enum fault fault)
{
    const int row = threadIdx.x;
    ASC_AT(blockIdx.z, blockIdx.y, blockIdx.x);
    for (int kt = 0; kt < kv_tiles; kt++) {
        const bool here = blockIdx.x == 1 && blockIdx.y == 0 && blockIdx.z == 0 && kt == 2;
        float m = 100.0f * blockIdx.x + kt;
        ASC_RECORD_ROW(m, kt, row, true, m);
        __syncthreads();
        if (here && fault == ILLEGAL)
            *reinterpret_cast<volatile float *>(0x10) = m;
        if (here && fault == MISALIGNED)
            *reinterpret_cast<volatile float *>(reinterpret_cast<char *>(lse) + 1) = m;
        if (here && fault == ASSERT)
            assert(kt != 2);
        if (here && fault == TRAP)
            __trap();
        while (here && fault == HANG)
            __nanosleep(1000);
    }
    const int at = blockIdx.x * blockDim.x + row;
    if (at < q_len)
        o[at] = q[at];
    if (fault == OVERRUN && at == 0)
        lse[gridDim.z * gridDim.y * q_len] = 1.0f;
}

static const char *plan(const asc_problem *problem, asc_plan *plan)
{
    (void)problem;
    plan->br = plan->bc = 64;
    plan->threads = 64;
    return nullptr;
}

static const char *launch(const asc_problem *problem, void *stream)
{
    static const char *const names[] = {"none", "illegal", "misaligned", "assert", "trap", "hang", "overrun"};
    const char *wanted = getenv("ATTNSCOPE_FAULT");
    int fault = NONE;
    for (int i = 0; wanted && i < static_cast<int>(sizeof names / sizeof *names); i++)
        if (strcmp(wanted, names[i]) == 0)
            fault = i;
    dim3 grid((problem->q_len + 63) / 64, problem->heads, problem->batch), block(64);
    size_t shared = 0;
    if (wanted && strcmp(wanted, "shared") == 0)
        shared = 300 * 1024;
    if (wanted && strcmp(wanted, "grid") == 0)
        grid.y = 70000;
    if (wanted && strcmp(wanted, "threads") == 0)
        block.x = 2048;
    if (wanted && strcmp(wanted, "memory") == 0) {
        void *all = nullptr;
        const cudaError_t status = cudaMalloc(&all, static_cast<size_t>(1) << 46);
        return cudaGetErrorString(status);
    }
    return ASC_LAUNCH(faults, grid, block, shared, stream, static_cast<const __half *>(problem->q),
                      static_cast<__half *>(problem->o), problem->lse, problem->q_len, (problem->kv_len + 63) / 64,
                      static_cast<enum fault>(fault));
}

ASC_KERNEL(faults)
{
    kernel.plan = plan;
    kernel.launch = launch;
}
