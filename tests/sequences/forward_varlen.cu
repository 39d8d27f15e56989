// An extension's function for sequences one behind the other, and how it is registered: its own host code, its own
// arguments. A thread has a query.
#include <cuda_runtime.h>
#include <math.h>

#include "attnscope.h"

constexpr int TILE = 32, DIM = 64;

__global__ void varlen_rows(const float *q, const float *k, const float *v, float *o, float *lse, const int *cu_q,
                            const int *cu_k, int heads, int max_q, float scale, bool causal)
{
    const int tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, row = tile * TILE + threadIdx.x;
    const int q_len = cu_q[batch + 1] - cu_q[batch], k_len = cu_k[batch + 1] - cu_k[batch];
    if (tile * TILE >= q_len)
        return;
    ASC_AT(batch, head, tile);
    const float *query = q + ((cu_q[batch] + min(row, q_len - 1)) * heads + head) * DIM;
    const int keys = causal ? min(k_len, row + k_len - q_len + 1) : k_len;
    float m = -INFINITY, l = 0, u[DIM] = {};
    for (int first = 0; first < k_len; first += TILE)
        for (int c = 0; c < TILE; c++) {
            const int key = first + c;
            const float *of_k = k + ((cu_k[batch] + min(key, k_len - 1)) * heads + head) * DIM;
            float s = 0;
            for (int d = 0; d < DIM; d++)
                s += query[d] * of_k[d];
            s = key < keys ? s * scale : -INFINITY;
            ASC_RECORD(s, first / TILE, i, 1, threadIdx.x, c, s);
            if (s == -INFINITY)
                continue;
            const float next = fmaxf(m, s), alpha = expf(m - next), p = expf(s - next);
            l = l * alpha + p;
            for (int d = 0; d < DIM; d++)
                u[d] = u[d] * alpha + p * v[((cu_k[batch] + key) * heads + head) * DIM + d];
            m = next;
        }
    if (row >= q_len)
        return;
    for (int d = 0; d < DIM; d++)
        o[((cu_q[batch] + row) * heads + head) * DIM + d] = l > 0 ? u[d] / l : 0;
    lse[(batch * heads + head) * max_q + row] = l > 0 ? m + logf(l) : -INFINITY;
}

void forward_varlen(const float *q, const float *k, const float *v, float *o, float *lse, const int *cu_q,
                    const int *cu_k, int batch, int heads, int max_q, float scale, bool causal)
{
    const dim3 grid((max_q + TILE - 1) / TILE, heads, batch);
    varlen_rows<<<grid, TILE>>>(q, k, v, o, lse, cu_q, cu_k, heads, max_q, scale, causal);
}

ASC_KERNEL(forward_varlen)
{
    kernel.br = kernel.bc = TILE;
    kernel.layouts = ASC_SUPPORTS(THD);
    kernel.dtypes = ASC_SUPPORTS(F32);
    kernel.run = [](auto &run) {
        run.need(run.head_dim() == DIM, "head_dim must be 64");
        (void)run.kv_len(); // cu_seqlens_k has it
        forward_varlen(run.q, run.k, run.v, run.o, run.lse, run.cu_seqlens_q(), run.cu_seqlens_k(), run.batch(),
                       run.heads(), run.q_len(), run.scale(), run.causal());
    };
    kernel.s_unit = ASC_UNIT_SCALED;
    kernel.empty_lse_negative = 1;
}
