// The smallest attention kernel that can also misbehave: one thread per row, tiles of 8. The scale says how, as one of
// enum behavior. (Any of it happens in kv tile 1 of q tile 1.)

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "attnscope.h"
#include "behave_shared.h"

namespace
{

constexpr int TILE = 8, D_MAX = 16;

enum behavior { FINE = 1, NULL_POINTER, ASSERT, ENDLESS, DIVERGED, PRINTS, NAN_MADE, SAYS_NO, EXITS, DEADLOCK, SLOW };

__device__ void misbehave(int how, int row, volatile int *forever)
{
    if (how == NULL_POINTER && row == 3)
        *static_cast<volatile int *>(nullptr) = 1; // here: null pointer
    if (how == ASSERT)
        assert(row != 3); // here: assert
    if (how == PRINTS && row == 0) {
        printf("spinning\n");
        while (*forever)
            ;
    }
    if (how == ENDLESS)
        while (*forever)
            ;
    if (how == DIVERGED && row < 4)
        __syncthreads(); // here: one barrier
    else if (how == DIVERGED)
        __syncthreads(); // here: other barrier
    if (how == DEADLOCK && row < 4)
        __syncthreads(); // here: deadlock
    else if (how == DEADLOCK)
        __syncwarp(0xffu);
    if (how == SLOW && row == 0)
        usleep(1200000);
    if (how == EXITS && row == 3)
        quick_exit(7);
}

__global__ void behave(asc_problem p, asc_strides qs, asc_strides ks, int how, volatile int *forever)
{
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, row = threadIdx.x;
    const float *q = static_cast<const float *>(p.q) + batch * qs.batch + head * qs.head;
    const float *k = static_cast<const float *>(p.k) + batch * ks.batch + head * ks.head;
    const float *v = static_cast<const float *>(p.v) + batch * ks.batch + head * ks.head;
    float *o = static_cast<float *>(p.o) + batch * qs.batch + head * qs.head;
    const int global_row = q_tile * TILE + row;
    ASC_AT(batch, head, q_tile);

    float u[D_MAX] = {}, l = 0;
    for (int kt = 0; kt * TILE < p.kv_len; kt++) {
        for (int c = 0; c < TILE; c++) {
            const int key = kt * TILE + c;
            float s = 0;
            for (int d = 0; d < p.head_dim && global_row < p.q_len && key < p.kv_len; d++)
                s += q[global_row * qs.row + d] * k[key * ks.row + d];
            ASC_ROW_AT(s, kt, row, c, s);
            if (how == NAN_MADE && row == 2)
                s = s / (l * 0.0f) * 0.0f; // here: not a number
            const float w = key < p.kv_len ? expf(s) : 0.0f;
            l += w;
            for (int d = 0; d < p.head_dim && key < p.kv_len; d++)
                u[d] += w * v[key * ks.row + d];
        }
        if (how != FINE && kt == 1 && q_tile == 1)
            misbehave(how, row, forever); // here: call
        __syncthreads();                  // so that no row runs ahead to its end
    }
    for (int d = 0; d < p.head_dim && global_row < p.q_len; d++) {
        o[global_row * qs.row + d] = u[d] / l;
        ASC_ROW_AT(o, 0, row, d, o[global_row * qs.row + d]);
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim > D_MAX)
        return "head_dim must be at most 16";
    plan->br = plan->bc = TILE;
    plan->threads = problem->head_dim == 13 ? 5000 : TILE;
    plan->error_limit = problem->head_dim == 12 ? NAN : problem->head_dim == 11 ? 0.25f : 0.0f;
    return nullptr;
}

const char *launch(const asc_problem *problem, void *stream)
{
    static volatile int forever = 1;
    const int how = static_cast<int>(problem->scale);
    if (how == SAYS_NO)
        return "this one is never launched";
    const dim3 grid((problem->q_len + TILE - 1) / TILE, problem->heads, problem->batch);
    return ASC_LAUNCH(behave, grid, TILE, 0, stream, *problem, asc_strides_of(problem, problem->heads, problem->q_len),
                      asc_strides_of(problem, problem->kv_heads, problem->kv_len), how, &forever);
}

} // namespace

ASC_KERNEL(behave)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F32);
    kernel.conventions.m_unit = ASC_UNIT_LOG2;
}
