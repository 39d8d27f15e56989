// Decode with packed rows (PackGQA): the query heads of a kv head read the same keys, so they are the rows of one tile,
// head fastest. Values lie as accumulators of mma.m16n8 do, each computed by the lane that holds it; a block is a warp.
#include <cuda_runtime.h>
#include <math.h>

#include "attnscope.h"

constexpr int BR = 16, BC = 16, DIM = 64;

struct Decode {
    const float *q, *k, *v;
    float *o, *lse;
    int64_t q_batch, q_head, q_row, kv_batch, kv_head, kv_row;
    const int *cu_q, *cu_k, *q_lens, *kv_lens; // NULL: sequences of one length, each in its batch
    const float *sink, *alibi;                 // NULL: none
    int heads, kv_heads, q_len, kv_len;
    float scale;
    bool causal;
};

__global__ void decode_packed(const Decode d)
{
    __shared__ float query_tile[BR][DIM], keys[BC][DIM], values[BC][DIM], weights[BR][BC];
    const int kv_head = blockIdx.y, batch = blockIdx.z, lane = threadIdx.x, first = blockIdx.x * BR;
    const int q_len = d.q_lens ? d.q_lens[batch] : d.q_len, kv_len = d.kv_lens ? d.kv_lens[batch] : d.kv_len;
    const int group = d.heads / d.kv_heads, diagonal = kv_len - q_len;
    if (first >= q_len * group)
        return;
    ASC_AT_ROWS(batch, r, BR, kv_head * group + (first + r) % group, (first + r) / group);

    const int64_t q_first = d.cu_q ? d.cu_q[batch] * d.q_row : batch * d.q_batch;
    const int64_t k_first = (d.cu_k ? d.cu_k[batch] * d.kv_row : batch * d.kv_batch) + kv_head * d.kv_head;
    for (int e = lane; e < BR * DIM; e += 32) {
        const int row = first + e / DIM, query = row / group, head = kv_head * group + row % group;
        query_tile[e / DIM][e % DIM] = query < q_len ? d.q[q_first + head * d.q_head + query * d.q_row + e % DIM] : 0;
    }
    __syncwarp();
    ASC_RECORD_SHARED(q, 0, r, BR, c, DIM, query_tile[r][c]);
    __syncwarp();

    int row[2], query[2], head[2], seen[2];
    float slope[2], m[2], l[2], u[DIM / 8][4] = {};
    for (int i = 0; i < 2; i++) {
        row[i] = lane / 4 + 8 * i;
        query[i] = (first + row[i]) / group;
        head[i] = kv_head * group + (first + row[i]) % group;
        seen[i] = d.causal ? min(query[i] + 1 + diagonal, kv_len) : kv_len;
        slope[i] = d.alibi ? d.alibi[head[i]] : 0;
        m[i] = d.sink ? d.sink[head[i]] : -INFINITY;
        l[i] = d.sink && lane % 4 == 0 ? 1 : 0;
    }
    const int last = min((first + BR - 1) / group, q_len - 1), end = d.causal ? last + 1 + diagonal : kv_len;
    for (int t = 0; t * BC < end; t++) {
        for (int e = lane; e < BC * DIM; e += 32) {
            const int key = t * BC + e / DIM;
            keys[e / DIM][e % DIM] = key < kv_len ? d.k[k_first + key * d.kv_row + e % DIM] : 0;
            values[e / DIM][e % DIM] = key < kv_len ? d.v[k_first + key * d.kv_row + e % DIM] : 0;
        }
        __syncwarp();
        ASC_RECORD_SHARED(k, t, r, BC, c, DIM, keys[r][c]);
        ASC_RECORD_SHARED(v, t, r, BC, c, DIM, values[r][c]);
        __syncwarp();

        float s[BC / 8][4], alpha[2];
        for (int i = 0; i < BC / 2; i++) {
            const int half = i / 2 % 2, column = i / 4 * 8 + lane % 4 * 2 + i % 2, key = t * BC + column;
            float sum = 0;
            for (int x = 0; x < DIM; x++)
                sum += query_tile[row[half]][x] * keys[column][x];
            sum = sum * d.scale - slope[half] * abs(query[half] + diagonal - key);
            s[i / 4][i % 4] = key < seen[half] ? sum : -INFINITY;
        }
        ASC_RECORD_FRAGMENT(s, t, 0, 0, s);
        for (int i = 0; i < 2; i++) {
            float most = m[i];
            for (int j = 0; j < BC / 8; j++)
                most = fmaxf(most, fmaxf(s[j][2 * i], s[j][2 * i + 1]));
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
            alpha[i] = most == -INFINITY ? 0 : expf(m[i] - most);
            m[i] = most;
        }
        ASC_RECORD_ROWS(m, t, 0, m);
        ASC_RECORD_ROWS(alpha, t, 0, alpha);
        for (int i = 0; i < BC / 2; i++) {
            float &p = s[i / 4][i % 4];
            p = p == -INFINITY ? 0 : expf(p - m[i / 2 % 2]);
        }
        ASC_RECORD_FRAGMENT(p, t, 0, 0, s);
        for (int i = 0; i < 2; i++) {
            l[i] *= alpha[i];
            for (int j = 0; j < BC / 8; j++)
                l[i] += s[j][2 * i] + s[j][2 * i + 1];
        }
        ASC_RECORD_LANES(l, t, 0, l);
        for (int i = 0; i < BC / 2; i++)
            weights[row[i / 2 % 2]][i / 4 * 8 + lane % 4 * 2 + i % 2] = s[i / 4][i % 4];
        __syncwarp();
        for (int i = 0; i < DIM / 2; i++) {
            float &sum = u[i / 4][i % 4];
            sum *= alpha[i / 2 % 2];
            for (int c = 0; c < BC; c++)
                sum += weights[row[i / 2 % 2]][c] * values[c][i / 4 * 8 + lane % 4 * 2 + i % 2];
        }
        ASC_RECORD_FRAGMENT(u, t, 0, 0, u);
        __syncwarp(); // the next tile overwrites keys, values and weights
    }

    for (int i = 0; i < 2; i++) {
        l[i] += __shfl_xor_sync(0xffffffffu, l[i], 1);
        l[i] += __shfl_xor_sync(0xffffffffu, l[i], 2);
        const float inverse = l[i] > 0 ? 1 / l[i] : 0, lse = l[i] > 0 ? m[i] + logf(l[i]) : -INFINITY;
        for (int j = 0; j < DIM / 8; j++)
            u[j][2 * i] *= inverse, u[j][2 * i + 1] *= inverse;
        ASC_RECORD_ROW(lse, 0, row[i], lane % 4 == 0, lse);
        if (query[i] >= q_len)
            continue;
        float *out = d.o + q_first + head[i] * d.q_head + query[i] * d.q_row;
        for (int j = 0; j < DIM / 8; j++) {
            out[8 * j + lane % 4 * 2] = u[j][2 * i];
            out[8 * j + lane % 4 * 2 + 1] = u[j][2 * i + 1];
        }
        if (lane % 4 == 0)
            d.lse[(static_cast<int64_t>(batch) * d.heads + head[i]) * d.q_len + query[i]] = lse;
    }
    ASC_RECORD_FRAGMENT(o, 0, 0, 0, u);
}

ASC_KERNEL(decode_packed)
{
    kernel.br = BR, kernel.bc = BC;
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD);
    kernel.dtypes = ASC_SUPPORTS(F32);
    kernel.biases = ASC_SUPPORTS(ALIBI);
    kernel.run = [](auto &run) {
        run.need(run.head_dim() == DIM, "head_dim must be 64");
        run.plan.packed = 1;
        const asc_problem &p = run.problem;
        const asc_strides q = asc_strides_of(&p, p.heads, p.q_len), kv = asc_strides_of(&p, p.kv_heads, p.kv_len);
        const Decode d = {run.q,
                          run.k,
                          run.v,
                          run.o,
                          run.lse,
                          q.batch,
                          q.head,
                          q.row,
                          kv.batch,
                          kv.head,
                          kv.row,
                          run.cu_seqlens_q(),
                          run.cu_seqlens_k(),
                          run.q_lens(),
                          run.kv_lens(),
                          p.sink,
                          p.alibi,
                          run.heads(),
                          run.kv_heads(),
                          run.q_len(),
                          run.kv_len(),
                          run.scale(),
                          run.causal()};
        const int rows = d.q_len * (d.heads / d.kv_heads);
        decode_packed<<<dim3((rows + BR - 1) / BR, d.kv_heads, run.batch()), 32>>>(d);
    };
    kernel.s_unit = kernel.m_unit = ASC_UNIT_SCALED;
    kernel.alibi_form = ASC_ALIBI_DISTANCE;
    kernel.l_sink = ASC_SINK_START;
    kernel.l_lanes = 4;
    kernel.empty_lse_negative = 1;
}
