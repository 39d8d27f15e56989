// The first of two kernels, see attention.cu.
#include "attention.h"

static __device__ float warp_max(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

static __device__ float warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// The layout is BHLD; `group` query heads share a kv head.
__global__ void scores(const __half *q, const __half *k, const __half *v, Row *rows, int heads, int group, int q_len,
                       int kv_len, float scale)
{
    extern __shared__ __half keys[]; // [BC][D]
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int query = q_tile * BR + row;
    ASC_AT(batch, head, q_tile);
    const int64_t at = (static_cast<int64_t>(batch) * heads + head) * q_len + query;
    const int64_t kv_head = static_cast<int64_t>(batch) * (heads / group) + head / group;
    const __half *own = q + at * D;
    float m = -INFINITY, l = 0.0f, u[COLS] = {};
    for (int kv_tile = 0; kv_tile * BC < kv_len; kv_tile++) {
        for (int i = threadIdx.x; i < BC * D; i += 32 * BR)
            keys[i] = kv_tile * BC + i / D < kv_len ? k[(kv_head * kv_len + kv_tile * BC) * D + i] : __float2half(0.0f);
        __syncthreads();
        ASC_RECORD_SHARED(k, kv_tile, key, BC, d, D, keys[key * D + d]);
        float s = -INFINITY;
        if (query < q_len && kv_tile * BC + lane < kv_len) {
            s = 0.0f;
            for (int d = 0; d < D; d++)
                s += __half2float(own[d]) * __half2float(keys[lane * D + d]);
            s *= scale;
        }
        __syncthreads();
        ASC_RECORD(s, kv_tile, i, 1, row, lane, s);
        const float m_prev = m;
        m = fmaxf(m, warp_max(s));
        ASC_RECORD_ROW(m, kv_tile, row, lane == 0, m);
        const float base = m == -INFINITY ? 0.0f : m;
        float alpha = __expf(m_prev - base), weight = __expf(s - base);
        ASC_RECORD_ROW(alpha, kv_tile, row, lane == 0, alpha);
        ASC_RECORD(p, kv_tile, i, 1, row, lane, weight);
        l = l * alpha + warp_sum(weight);
        ASC_RECORD_ROW(l, kv_tile, row, lane == 0, l);
        for (int i = 0; i < COLS; i++)
            u[i] *= alpha;
        for (int c = 0; c < BC && kv_tile * BC + c < kv_len; c++) {
            const float w = __shfl_sync(0xffffffffu, weight, c);
            for (int i = 0; i < COLS; i++)
                u[i] += w * __half2float(v[(kv_head * kv_len + kv_tile * BC + c) * D + lane + 32 * i]);
        }
        ASC_RECORD(u, kv_tile, i, COLS, row, lane + 32 * i, u[i]);
    }
    if (query >= q_len)
        return;
    for (int i = 0; i < COLS; i++)
        rows[at].u[lane + 32 * i] = u[i];
    if (lane == 0) {
        rows[at].m = m;
        rows[at].l = l;
    }
}

const char *launch_scores(const asc_problem *problem, void *stream)
{
    const dim3 grid((problem->q_len + BR - 1) / BR, problem->heads, problem->batch);
    return ASC_LAUNCH(scores, grid, 32 * BR, BC * D * sizeof(__half), stream, static_cast<const __half *>(problem->q),
                      static_cast<const __half *>(problem->k), static_cast<const __half *>(problem->v),
                      static_cast<Row *>(problem->workspace), problem->heads, problem->heads / problem->kv_heads,
                      problem->q_len, problem->kv_len, problem->scale);
}
