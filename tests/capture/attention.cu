// A warp for each query, a lane for each key and for every 32nd column: simple, and as slow as that.
#include "attention.h"
#include "attnscope.h"

static __device__ float over_warp(float x, bool largest)
{
    for (int d = 16; d > 0; d /= 2) {
        const float y = __shfl_xor_sync(0xffffffffu, x, d);
        x = largest ? fmaxf(x, y) : x + y;
    }
    return x;
}

static __global__ void __launch_bounds__(32 * BR) attend(Attention a)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32, query = blockIdx.x * BR + row;
    const int head = blockIdx.y, batch = blockIdx.z, kv_head = head / (a.heads / a.kv_heads);
    ASC_AT(batch, head, blockIdx.x);
    if (query >= a.q_len)
        return;
    const __half *q = a.q + batch * a.sq.batch + head * a.sq.head + query * a.sq.row;
    const __half *k = a.k + batch * a.sk.batch + kv_head * a.sk.head;
    const __half *v = a.v + batch * a.sv.batch + kv_head * a.sv.head;
    const int ahead = a.causal ? a.kv_len - a.q_len : a.kv_len, last = query + ahead;
    const int tiles = (min(min(int(blockIdx.x + 1) * BR, a.q_len) + ahead, a.kv_len) + BC - 1) / BC;
    float m = -INFINITY, l = 0, u[D / 32] = {};
    for (int t = 0; t < tiles; t++) {
        const int key = t * BC + lane;
        float s = -INFINITY;
        if (key <= last && key < a.kv_len) {
            s = 0;
            for (int d = 0; d < D; d++)
                s += __half2float(q[d]) * __half2float(k[key * a.sk.row + d]);
            s *= D == 64 ? 0.125f : 0.08838834764831845f; // 1 / sqrt(D)
        }
        ASC_RECORD(s, t, i, 1, row, lane, s);
        const float before = m;
        m = fmaxf(m, over_warp(s, true));
        ASC_RECORD_ROW(m, t, row, lane == 0, m);
        const float base = m == -INFINITY ? 0 : m; // a row that has seen no key
        const float alpha = expf(before - base), p = expf(s - base);
        ASC_RECORD_ROW(alpha, t, row, lane == 0, alpha);
        ASC_RECORD(p, t, i, 1, row, lane, p);
        l = l * alpha + over_warp(p, false);
        ASC_RECORD_ROW(l, t, row, lane == 0, l);
        for (int c = 0; c < D / 32; c++)
            u[c] *= a.mistake == 1 && t % 2 ? 1 : alpha;
        for (int j = 0; j < BC && t * BC + j < a.kv_len; j++) {
            const float weight = __shfl_sync(0xffffffffu, p, j);
            for (int c = 0; c < D / 32; c++)
                u[c] += weight * __half2float(v[(t * BC + j) * a.sv.row + lane + 32 * c]);
        }
        ASC_RECORD(u, t, c, D / 32, row, lane + 32 * c, u[c]);
        if (a.mistake == 2 && t == 2 && head == 1 && query == 70)
            *reinterpret_cast<volatile float *>(a.lse + (int64_t(1) << 42)) = 1;
        if (a.mistake == 3 && t == 2 && head == 1)
            while (*reinterpret_cast<volatile float *>(a.lse) != 12345)
                ;
    }
    __half *o = a.o + batch * a.so.batch + head * a.so.head + query * a.so.row;
    for (int c = 0; c < D / 32; c++)
        o[lane + 32 * c] = __float2half(l > 0 ? u[c] / l : 0);
    if (lane == 0)
        a.lse[(int64_t(batch) * a.heads + head) * a.q_len + query] = l > 0 ? m + logf(l) : -INFINITY;
}

void attention(const Attention &a, cudaStream_t stream)
{
    attend<<<dim3((a.q_len + BR - 1) / BR, a.heads, a.batch), 32 * BR, 0, stream>>>(a);
}
