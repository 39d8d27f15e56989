// fa1: FlashAttention-1's recurrences (Dao et al. 2022, algorithm 1). One thread has a row of 16, kv tiles have 16
// keys; f16, head_dim 64, BHLD. Macros:
//   P_TILE, U_TILE  1: P stands on its tile's maximum; U is divided by l after every tile. 0: as FlashAttention-2
//   DECLARED        1: both are said; 0: neither is
//   MISTAKE         see below

#include <cuda_fp16.h>
#include <math.h>

#include "attnscope.h"

#define RIGHT 0
#define OLD_O_NOT_RESCALED 1
#define DIVIDED_BY_PREVIOUS_L 2
#define MAX_NOT_CARRIED 3
#define PV_NOT_RESCALED 4
#define UNGUARDED 5
#ifndef P_TILE
#define P_TILE 1
#endif
#ifndef U_TILE
#define U_TILE 1
#endif
#ifndef DECLARED
#define DECLARED 1
#endif
#ifndef MISTAKE
#define MISTAKE RIGHT
#endif

namespace
{

constexpr int BR = 16, BC = 16, D = 64;

struct Params {
    const __half *q, *k, *v;
    __half *o;
    float *lse;
    int heads, group, q_len, kv_len;
    int reach; // row i sees keys 0 .. i + reach
    float scale;
};

__global__ void fa1(Params p)
{
    const int q_tile = blockIdx.x, h = blockIdx.y, b = blockIdx.z, r = threadIdx.x, row = q_tile * BR + r;
    const int64_t head = static_cast<int64_t>(b) * p.heads + h;
    ASC_AT(b, h, q_tile);
    if (row >= p.q_len)
        return;
    const __half *q = p.q + (head * p.q_len + row) * D;
    const __half *k = p.k + head / p.group * p.kv_len * D, *v = p.v + head / p.group * p.kv_len * D;
    ASC_RECORD(q, 0, i, D, r, i, q[i]);

    float m = -INFINITY, l = 0.0f, u[D] = {};
    for (int kt = 0; kt * BC < p.kv_len && kt * BC <= q_tile * BR + BR - 1 + p.reach; kt++) {
        float s[BC], m_tile = -INFINITY, sum = 0.0f;
        for (int c = 0; c < BC; c++) {
            const int key = kt * BC + c;
            float dot = 0.0f;
            for (int d = 0; d < D && key < p.kv_len; d++)
                dot += __half2float(q[d]) * __half2float(k[key * D + d]);
            s[c] = key < p.kv_len && key <= row + p.reach ? dot * p.scale : -INFINITY;
        }
        ASC_RECORD(s, kt, i, BC, r, i, s[i]);
        for (int c = 0; c < BC; c++)
            m_tile = fmaxf(m_tile, s[c]); // of what the probe may have fed
        const float m_prev = m, l_prev = l;
        m = MISTAKE == MAX_NOT_CARRIED ? m_tile : fmaxf(m_prev, m_tile);
        ASC_RECORD_ROW(m, kt, r, true, m);
        const float base = m == -INFINITY ? 0.0f : m, frame = P_TILE ? (m_tile == -INFINITY ? 0.0f : m_tile) : base;
        float alpha = __expf(m_prev - base);
        ASC_RECORD_ROW(alpha, kt, r, true, alpha);
        const float beta = P_TILE ? __expf(m_tile - base) : 1.0f;
        for (int c = 0; c < BC; c++) {
            s[c] = __expf(s[c] - frame);
            sum += s[c];
        }
        ASC_RECORD(p, kt, i, BC, r, i, s[i]);
        l = alpha * l_prev + beta * sum;
        ASC_RECORD_ROW(l, kt, r, true, l);
        const float divisor = MISTAKE == DIVIDED_BY_PREVIOUS_L && kt > 0 ? l_prev : l;
        const float inverse = divisor > 0.0f || MISTAKE == UNGUARDED ? 1.0f / divisor : 0.0f;
        for (int d = 0; d < D; d++) {
            float pv = 0.0f;
            for (int c = 0; c < BC && kt * BC + c < p.kv_len; c++)
                pv += s[c] * __half2float(v[(kt * BC + c) * D + d]);
            const float old = (MISTAKE == OLD_O_NOT_RESCALED ? 1.0f : alpha) * u[d];
            const float add = (MISTAKE == PV_NOT_RESCALED ? 1.0f : beta) * pv;
            u[d] = U_TILE ? inverse * (l_prev * old + add) : old + add;
        }
        ASC_RECORD(u, kt, i, D, r, i, u[i]);
    }

    float lse = l > 0.0f ? m + __logf(l) : -INFINITY;
    __half o[D];
    for (int d = 0; d < D; d++)
        o[d] = __float2half(U_TILE ? u[d] : l > 0.0f ? u[d] / l : 0.0f);
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
    plan->threads = BR;
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
    return ASC_LAUNCH(fa1, dim3((problem->q_len - 1) / BR + 1, problem->heads, problem->batch), BR, 0, stream, p);
}

} // namespace

ASC_KERNEL(fa1)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.conventions.s_unit = ASC_UNIT_SCALED;
    kernel.conventions.m_unit = ASC_UNIT_SCALED;
    kernel.conventions.empty_lse_negative = 1;
    kernel.conventions.p_max = DECLARED && P_TILE ? ASC_P_MAX_TILE : ASC_P_MAX_RUNNING;
    kernel.conventions.u_norm = DECLARED && U_TILE ? ASC_U_NORM_TILE : ASC_U_NORM_END;
}
