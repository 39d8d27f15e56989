// Values that lie as accumulators of mma.m16n8 do, each computed by the lane that holds it: a probe that puts one at
// another place makes a wrong stage. Heads are counted through the batches; the host code picks its tiles.
#include "attnscope.h"
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>

template <int D, bool asc_probed>
__global__ void fragments(const __half *Q, const __half *K, const __half *V, __half *O, int n)
{
    const int bh = blockIdx.y, lane = threadIdx.x;
    Q += (size_t)bh * n * D, K += (size_t)bh * n * D, V += (size_t)bh * n * D, O += (size_t)bh * n * D;
    ASC_AT(bh, blockIdx.x);
    float m[2][2], l[2][2], o[2][D / 8][4];
    for (int i = 0; i < 4; i++)
        m[i / 2][i % 2] = -INFINITY, l[i / 2][i % 2] = 0;
    for (int i = 0; i < D; i++)
        o[i / (D / 2)][i / 4 % (D / 8)][i % 4] = 0;
    for (int t = 0; t < n; t += 16) {
        float s[2][2][4], top[2][2], alpha[2][2];
        for (int i = 0; i < 16; i++) {
            const int row = blockIdx.x * 32 + i / 8 * 16 + lane / 4 + i / 2 % 2 * 8;
            const int key = t + i / 4 % 2 * 8 + lane % 4 * 2 + i % 2;
            float sum = 0;
            for (int x = 0; x < D; x++)
                sum += __half2float(Q[row * D + x]) * __half2float(K[key * D + x]);
            s[i / 8][i / 4 % 2][i % 4] = sum;
        }
        ASC_RECORD_FRAGMENT(s, t / 16, 0, 0, s);
        for (int i = 0; i < 4; i++) {
            float &most = top[i / 2][i % 2];
            most = m[i / 2][i % 2];
            for (int e = 0; e < 4; e++)
                most = fmaxf(most, s[i / 2][e / 2][i % 2 * 2 + e % 2] * rsqrtf(D));
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
            alpha[i / 2][i % 2] = expf(m[i / 2][i % 2] - most);
            m[i / 2][i % 2] = most;
            l[i / 2][i % 2] *= alpha[i / 2][i % 2];
        }
        ASC_RECORD_ROWS(m, t / 16, 0, m);
        for (int r = 0; r < 2; r++)
            ASC_RECORD_ROWS(alpha, t / 16, 16 * r, alpha[r]);
        __shared__ float p[32][16];
        for (int i = 0; i < 16; i++) {
            float &value = s[i / 8][i / 4 % 2][i % 4];
            value = expf(value * rsqrtf(D) - m[i / 8][i / 2 % 2]);
            l[i / 8][i / 2 % 2] += value;
            p[i / 8 * 16 + lane / 4 + i / 2 % 2 * 8][i / 4 % 2 * 8 + lane % 4 * 2 + i % 2] = value;
        }
        for (int r = 0; r < 2; r++)
            ASC_RECORD_FRAGMENT(p, t / 16, 16 * r, 0, s[r]);
        ASC_RECORD_LANES(l, t / 16, 0, l);
        __syncwarp();
        for (int i = 0; i < D; i++) {
            float &sum = o[i / (D / 2)][i / 4 % (D / 8)][i % 4];
            sum *= alpha[i / (D / 2)][i / 2 % 2];
            for (int key = 0; key < 16; key++)
                sum += p[i / (D / 2) * 16 + lane / 4 + i / 2 % 2 * 8][key] *
                       __half2float(V[(t + key) * D + i / 4 % (D / 8) * 8 + lane % 4 * 2 + i % 2]);
        }
        __syncwarp();
        for (int j = 0; j < D / 8; j++) {
            ASC_RECORD_FRAGMENT(u, t / 16, 0, 8 * j, o[0][j]);
            ASC_RECORD_FRAGMENT(u, t / 16, 16, 8 * j, o[1][j]);
        }
    }
    for (int i = 0; i < 4; i++) {
        l[i / 2][i % 2] += __shfl_xor_sync(0xffffffffu, l[i / 2][i % 2], 1);
        l[i / 2][i % 2] += __shfl_xor_sync(0xffffffffu, l[i / 2][i % 2], 2);
    }
    for (int i = 0; i < D; i++) {
        const int row = blockIdx.x * 32 + i / (D / 2) * 16 + lane / 4 + i / 2 % 2 * 8;
        O[row * D + i / 4 % (D / 8) * 8 + lane % 4 * 2 + i % 2] =
            __float2half(o[i / (D / 2)][i / 4 % (D / 8)][i % 4] / l[i / (D / 2)][i / 2 % 2]);
    }
}

#ifdef SIMT_HOST /* on a GPU exit() skips destructors */
static std::mutex one_at_a_time;
#define LOCK const std::lock_guard<std::mutex> lock(one_at_a_time)
#else
#define LOCK
#endif

void solve(const __half *Q, const __half *K, const __half *V, __half *O, int heads, int n, int d)
{
    LOCK;
    if (d != 16 || n % 32) {
        fprintf(stderr, "head_dim must be 16 and the length a multiple of 32\n");
        exit(2);
    }
    ASC_TWICE(fragments<16, asc_probed><<<dim3(n / 32, heads), 32>>>(Q, K, V, O, n));
}

ASC_KERNEL(fragments)
{
    kernel.conventions.l_lanes = 4;
    kernel.m_unit = ASC_UNIT_SCALED;
    kernel.no_lse = 1;
    kernel.run = [](auto &run) {
        run.plan.br = 32;
        run.plan.bc = run.head_dim();
        solve(run.q, run.k, run.v, run.o, run.bh(), run.q_len(), run.head_dim());
    };
}
