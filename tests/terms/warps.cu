// warps: the kv tiles of a block are dealt round robin to its four warps. A thread has a row of 32 in each warp; at the
// end the first warp merges their m, l and u out of shared memory. f16, head_dim 64, BHLD.

#include <cuda_fp16.h>
#include <math.h>

#include "attnscope.h"

namespace
{

constexpr int BR = 32, BC = 16, D = 64, WARPS = 4;

enum { RIGHT, LAST_WARP_LEFT_OUT, MERGED_UNSCALED, U_NOT_RESCALED };
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif
#ifndef DEAL
#define DEAL ASC_DEAL_ROUND_ROBIN // what is declared
#endif

struct Params {
    const __half *q, *k, *v;
    __half *o;
    float *lse;
    int heads, group, q_len, kv_len;
    int reach; // row i sees keys 0 .. i + reach
    float scale;
};

struct State {
    float m, l, u[D];
};

__global__ void warps(Params p)
{
    extern __shared__ float shared[]; // [WARPS][BR][D + 2]
    const int q_tile = blockIdx.x, h = blockIdx.y, b = blockIdx.z, warp = threadIdx.x / 32, r = threadIdx.x % 32;
    const int row = q_tile * BR + r, tiles = (p.kv_len + BC - 1) / BC;
    const int64_t head = static_cast<int64_t>(b) * p.heads + h;
    const __half *q = p.q + (head * p.q_len + min(row, p.q_len - 1)) * D;
    const __half *k = p.k + head / p.group * p.kv_len * D, *v = p.v + head / p.group * p.kv_len * D;
    ASC_AT(b, h, q_tile);
    if (warp == 0)
        ASC_RECORD(q, 0, i, D, r, i, row < p.q_len ? q[i] : __float2half(0.0f));

    State at = {-INFINITY, 0.0f, {}};
    for (int kt = warp; kt < tiles && kt * BC <= q_tile * BR + BR - 1 + p.reach; kt += WARPS) {
        float s[BC];
        const float m_prev = at.m;
        for (int c = 0; c < BC; c++) {
            const int key = kt * BC + c;
            float dot = 0.0f;
            for (int d = 0; d < D && key < p.kv_len; d++)
                dot += __half2float(q[d]) * __half2float(k[key * D + d]);
            s[c] = key < p.kv_len && key <= row + p.reach ? dot * p.scale : -INFINITY;
        }
        ASC_RECORD(s, kt, i, BC, r, i, s[i]);
        for (int c = 0; c < BC; c++)
            at.m = fmaxf(at.m, s[c]); // of what the probe may have fed
        ASC_RECORD_ROW(m, kt, r, true, at.m);
        const float base = at.m == -INFINITY ? 0.0f : at.m;
        float alpha = __expf(m_prev - base), sum = 0.0f;
        ASC_RECORD_ROW(alpha, kt, r, true, alpha);
        for (int c = 0; c < BC; c++) {
            s[c] = __expf(s[c] - base);
            sum += s[c];
        }
        ASC_RECORD(p, kt, i, BC, r, i, s[i]);
        at.l = at.l * alpha + sum;
        ASC_RECORD_ROW(l, kt, r, true, at.l);
        for (int d = 0; d < D; d++) {
            at.u[d] *= MISTAKE == U_NOT_RESCALED ? 1.0f : alpha;
            for (int c = 0; c < BC && kt * BC + c < p.kv_len; c++)
                at.u[d] += s[c] * __half2float(v[(kt * BC + c) * D + d]);
        }
        ASC_RECORD(u, kt, i, D, r, i, at.u[i]);
    }

    float *own = shared + (warp * BR + r) * (D + 2);
    own[0] = at.m;
    own[1] = at.l;
    for (int d = 0; d < D; d++)
        own[2 + d] = at.u[d];
    __syncthreads(); // every warp's state is there
    if (warp > 0 || row >= p.q_len)
        return;
    State all = {-INFINITY, 0.0f, {}};
    const int merged = MISTAKE == LAST_WARP_LEFT_OUT ? WARPS - 1 : WARPS;
    for (int w = 0; w < merged; w++)
        all.m = fmaxf(all.m, shared[(w * BR + r) * (D + 2)]);
    for (int w = 0; w < merged; w++) {
        const float *other = shared + (w * BR + r) * (D + 2);
        if (other[1] == 0.0f)
            continue; // a warp without any key for this row
        const float weight = MISTAKE == MERGED_UNSCALED ? 1.0f : __expf(other[0] - all.m);
        all.l += weight * other[1];
        for (int d = 0; d < D; d++)
            all.u[d] += weight * other[2 + d];
    }
    float lse = all.l > 0.0f ? all.m + __logf(all.l) : -INFINITY;
    __half o[D];
    for (int d = 0; d < D; d++)
        o[d] = __float2half(all.l > 0.0f ? all.u[d] / all.l : 0.0f);
    ASC_RECORD(o, 0, i, D, r, i, o[i]);
    ASC_RECORD_ROW(lse, 0, r, true, lse);
    for (int d = 0; d < D; d++)
        p.o[(head * p.q_len + row) * D + d] = o[d];
    p.lse[head * p.q_len + row] = lse;
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != D)
        return "head_dim must be 64";
    if (problem->softcap != 0 || problem->window_left >= 0 || problem->window_right >= 0)
        return "there is no soft cap and no window in this kernel";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = 32 * WARPS;
    plan->kv_splits = WARPS;
    plan->kv_deal = DEAL;
    return NULL;
}

const char *launch(const asc_problem *problem, void *stream)
{
    Params p;
    p.q = static_cast<const __half *>(problem->q);
    p.k = static_cast<const __half *>(problem->k);
    p.v = static_cast<const __half *>(problem->v);
    p.o = static_cast<__half *>(problem->o);
    p.lse = problem->lse;
    p.heads = problem->heads;
    p.group = problem->heads / problem->kv_heads;
    p.q_len = problem->q_len;
    p.kv_len = problem->kv_len;
    p.reach = problem->causal == ASC_CAUSAL_NONE       ? problem->kv_len
              : problem->causal == ASC_CAUSAL_TOP_LEFT ? 0
                                                       : problem->kv_len - problem->q_len;
    p.scale = problem->scale;
    const dim3 grid((problem->q_len - 1) / BR + 1, problem->heads, problem->batch);
    return ASC_LAUNCH(warps, grid, 32 * WARPS, WARPS * BR * (D + 2) * sizeof(float), stream, p);
}

} // namespace

ASC_KERNEL(warps)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
}
