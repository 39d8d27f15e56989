// A kernel in two translation units, each with probes of its own: scores.cu leaves the sums of each row in the
// workspace, this file divides them, and registers both.
#include "attention.h"

ASC_SOURCES("scores.cu");

__global__ void divide(const Row *rows, __half *o, float *lse, int heads, int q_len)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int query = q_tile * BR + row;
    ASC_AT(batch, head, q_tile);
    if (query >= q_len)
        return;
    const int64_t at = (static_cast<int64_t>(batch) * heads + head) * q_len + query;
    const Row &sums = rows[at];
    __half out[COLS];
    for (int i = 0; i < COLS; i++)
        out[i] = __float2half(sums.l > 0.0f ? sums.u[lane + 32 * i] / sums.l : 0.0f);
    ASC_RECORD(o, 0, i, COLS, row, lane + 32 * i, out[i]);
    for (int i = 0; i < COLS; i++)
        o[at * D + lane + 32 * i] = out[i];
    const float log_sum = sums.l > 0.0f ? sums.m + __logf(sums.l) : -INFINITY;
    ASC_RECORD_ROW(lse, 0, row, lane == 0, log_sum);
    if (lane == 0)
        lse[at] = log_sum;
}

static const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != D)
        return "head_dim must be 64";
    if (problem->causal || problem->window_left >= 0 || problem->window_right >= 0 || problem->softcap != 0)
        return "there is no mask and no soft cap in this kernel";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = 32 * BR;
    plan->workspace_bytes = sizeof(Row) * problem->batch * problem->heads * problem->q_len;
    return NULL;
}

static const char *launch(const asc_problem *problem, void *stream)
{
    const char *failed = launch_scores(problem, stream);
    if (failed)
        return failed;
    const dim3 grid((problem->q_len + BR - 1) / BR, problem->heads, problem->batch);
    return ASC_LAUNCH(divide, grid, 32 * BR, 0, stream, static_cast<const Row *>(problem->workspace),
                      static_cast<__half *>(problem->o), problem->lse, problem->heads, problem->q_len);
}

ASC_KERNEL(attention)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
