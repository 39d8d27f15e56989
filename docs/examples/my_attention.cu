// my_attention: a small attention kernel with host code of its own, the example of docs/writing-a-kernel.md.
// One warp computes one query, its Q in shared memory. f16 in and out, f32 in between, head_dim 64.

#include <cuda_fp16.h>
#include <math.h>
#include <stdexcept>

#include "attnscope.h"

constexpr int BR = 8;  // rows of a q tile: one warp each
constexpr int BC = 32; // keys of a kv tile: one lane each
constexpr int D = 64, COLS = D / 32;

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

// Tensors are [batch][heads][rows][D]; `group` query heads share a kv head; query i sees keys 0 .. i + reach.
__global__ void my_attention(const __half *q, const __half *k, const __half *v, __half *o, float *lse, int group,
                             int q_len, int kv_len, int reach, float scale)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32;
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int query = q_tile * BR + row, heads = gridDim.y;
    __shared__ __half sq[BR][D];
    ASC_AT(batch, head, q_tile);
    if (query >= q_len)
        return; // the whole warp

    const size_t at = (static_cast<size_t>(batch) * heads + head) * q_len + query;
    k += (static_cast<size_t>(batch) * (heads / group) + head / group) * kv_len * D;
    v += (static_cast<size_t>(batch) * (heads / group) + head / group) * kv_len * D;
    for (int i = 0; i < COLS; i++)
        sq[row][lane + 32 * i] = q[at * D + lane + 32 * i];
    ASC_RECORD(q, 0, i, COLS, row, lane + 32 * i, sq[row][lane + 32 * i]);
    __syncwarp();

    float m = -INFINITY, l = 0.0f, u[COLS] = {};
    // The tile's last query decides how many kv tiles the block visits; the other rows find theirs masked.
    const int keys = min(kv_len, min(q_tile * BR + BR, q_len) + reach);
    for (int kv_tile = 0; kv_tile * BC < keys; kv_tile++) {
        const int key = kv_tile * BC + lane;
        float s = -INFINITY;
        if (key < kv_len && key <= query + reach) {
            s = 0.0f;
            for (int d = 0; d < D; d++)
                s += __half2float(sq[row][d]) * __half2float(k[key * D + d]);
            s *= scale;
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
        for (int c = 0; c < BC && kv_tile * BC + c < kv_len; c++) {
            const float w = __shfl_sync(0xffffffffu, weight, c);
            for (int i = 0; i < COLS; i++)
                u[i] += w * __half2float(v[(kv_tile * BC + c) * D + lane + 32 * i]);
        }
        ASC_RECORD(u, kv_tile, i, COLS, row, lane + 32 * i, u[i]);
    }

    for (int i = 0; i < COLS; i++) // a query that sees no key gives zero
        o[at * D + lane + 32 * i] = __float2half(l > 0.0f ? u[i] / l : 0.0f);
    ASC_RECORD(o, 0, i, COLS, row, lane + 32 * i, o[at * D + lane + 32 * i]);
    if (lane == 0) {
        lse[at] = l > 0.0f ? m + __logf(l) : -INFINITY;
        ASC_RECORD_ROW(lse, 0, row, true, lse[at]);
    }
}

void forward(const __half *q, const __half *k, const __half *v, __half *o, float *lse, int batch, int heads,
             int kv_heads, int q_len, int kv_len, int head_dim, bool causal)
{
    if (head_dim != D)
        throw std::invalid_argument("head_dim must be 64");
    const dim3 grid((q_len + BR - 1) / BR, heads, batch);
    my_attention<<<grid, 32 * BR>>>(q, k, v, o, lse, heads / kv_heads, q_len, kv_len, causal ? kv_len - q_len : kv_len,
                                    1.0f / sqrtf(D));
}

ASC_RUN(my_attention,
        forward(run.q, run.k, run.v, run.o, run.lse, run.batch(), run.heads(), run.kv_heads(), run.q_len(),
                run.kv_len(), run.head_dim(), run.causal()),
        br = BR, bc = BC, s_unit = ASC_UNIT_SCALED, m_unit = ASC_UNIT_SCALED, empty_lse_negative = 1);
