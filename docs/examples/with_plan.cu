// with_plan: my_attention.cu with a plan and a launch in the place of its host code, for both causal corners.
// One warp computes one query, its Q in shared memory. f16 in and out, f32 in between, head_dim 64.

#include <cuda_fp16.h>
#include <math.h>

#include "attnscope.h"

namespace
{

constexpr int BR = 8;  // rows of a q tile: one warp each
constexpr int BC = 32; // keys of a kv tile: one lane each
constexpr int D = 64, COLS = D / 32;

struct Params {
    const __half *q, *k, *v;
    __half *o;
    float *lse;
    asc_strides q_strides, kv_strides;
    int heads, group; // group: query heads that share one kv head
    int q_len, kv_len;
    int reach; // query i sees keys 0 .. i + reach
    float scale;
};

__device__ float warp_max(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

__device__ float warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__global__ void my_attention_with_plan(Params p)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int query = q_tile * BR + row;
    __shared__ __half sq[BR][D];
    ASC_AT(batch, head, q_tile);
    if (query >= p.q_len)
        return; // the whole warp

    const __half *q = p.q + batch * p.q_strides.batch + head * p.q_strides.head + query * p.q_strides.row;
    const __half *k = p.k + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    const __half *v = p.v + batch * p.kv_strides.batch + head / p.group * p.kv_strides.head;
    for (int i = 0; i < COLS; i++)
        sq[row][lane + 32 * i] = q[lane + 32 * i];
    ASC_RECORD(q, 0, i, COLS, row, lane + 32 * i, sq[row][lane + 32 * i]);
    __syncwarp();

    float m = -INFINITY, l = 0.0f, u[COLS] = {};
    // The tile's last query decides how many kv tiles the block visits; the other rows find theirs masked.
    const int last_query = min(q_tile * BR + BR, p.q_len) - 1;
    const int keys = min(p.kv_len, last_query + p.reach + 1);
    for (int kv_tile = 0; kv_tile * BC < keys; kv_tile++) {
        const int key = kv_tile * BC + lane;
        float s = -INFINITY;
        if (key < p.kv_len && key <= query + p.reach) {
            s = 0.0f;
            for (int d = 0; d < D; d++)
                s += __half2float(sq[row][d]) * __half2float(k[key * p.kv_strides.row + d]);
            s *= p.scale;
        }
        ASC_RECORD(s, kv_tile, i, 1, row, lane, s);

        const float m_prev = m;
        m = fmaxf(m, warp_max(s));
        ASC_RECORD_ROW(m, kv_tile, row, lane == 0, m); // every lane holds m, alpha and l
        const float base = m == -INFINITY ? 0.0f : m;  // no key so far: -inf - -inf would be NaN
        float alpha = __expf(m_prev - base), weight = __expf(s - base);
        ASC_RECORD_ROW(alpha, kv_tile, row, lane == 0, alpha);
        ASC_RECORD(p, kv_tile, i, 1, row, lane, weight);
        l = l * alpha + warp_sum(weight);
        ASC_RECORD_ROW(l, kv_tile, row, lane == 0, l);

        for (int i = 0; i < COLS; i++)
            u[i] *= alpha;
        for (int c = 0; c < BC && kv_tile * BC + c < p.kv_len; c++) {
            const float w = __shfl_sync(0xffffffffu, weight, c);
            for (int i = 0; i < COLS; i++)
                u[i] += w * __half2float(v[(kv_tile * BC + c) * p.kv_strides.row + lane + 32 * i]);
        }
        ASC_RECORD(u, kv_tile, i, COLS, row, lane + 32 * i, u[i]);
    }

    const float inverse = l > 0.0f ? 1.0f / l : 0.0f; // a query that sees no key gives zero
    const float lse = l > 0.0f ? m + __logf(l) : -INFINITY;
    __half *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head + query * p.q_strides.row;
    for (int i = 0; i < COLS; i++)
        o[lane + 32 * i] = __float2half(u[i] * inverse);
    ASC_RECORD(o, 0, i, COLS, row, lane + 32 * i, o[lane + 32 * i]);
    if (lane == 0) {
        p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + query] = lse;
        ASC_RECORD_ROW(lse, 0, row, true, lse);
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != D)
        return "head_dim must be 64";
    if (problem->window_left >= 0 || problem->window_right >= 0)
        return "there is no sliding window in this kernel: window must be none";
    if (problem->softcap != 0)
        return "there is no soft cap in this kernel: softcap must be 0";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = 32 * BR;
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
    p.q_strides = asc_strides_of(problem, problem->heads, problem->q_len);
    p.kv_strides = asc_strides_of(problem, problem->kv_heads, problem->kv_len);
    p.heads = problem->heads;
    p.group = problem->heads / problem->kv_heads;
    p.q_len = problem->q_len;
    p.kv_len = problem->kv_len;
    p.reach = problem->causal == ASC_CAUSAL_TOP_LEFT       ? 0
              : problem->causal == ASC_CAUSAL_BOTTOM_RIGHT ? problem->kv_len - problem->q_len
                                                           : problem->kv_len;
    p.scale = problem->scale;
    const dim3 grid((problem->q_len + BR - 1) / BR, problem->heads, problem->batch);
    return ASC_LAUNCH(my_attention_with_plan, grid, 32 * BR, 0, stream, p);
}

} // namespace

ASC_KERNEL(my_attention)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.conventions.s_unit = ASC_UNIT_SCALED; // s is recorded after it was multiplied by the scale
    kernel.conventions.m_unit = ASC_UNIT_SCALED; // and so is its maximum
    kernel.conventions.empty_lse_negative = 1;   // a query that sees no key has lse -inf
}
