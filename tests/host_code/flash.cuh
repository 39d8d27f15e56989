// The kernel of extension.cu, pointers.cu and tensors.cu: a thread a row. `unused` is a pointer that NULL is passed
// for.
#include "attnscope.h"
#include <cuda_runtime.h>

template <class T>
__global__ void flash(const T *Q, const T *K, const T *V, T *O, float *unused, int N, int d, float scale, bool causal)
{
    const int bh = blockIdx.z * gridDim.y + blockIdx.y, row = blockIdx.x * blockDim.x + threadIdx.x;
    Q += (size_t)bh * N * d, K += (size_t)bh * N * d, V += (size_t)bh * N * d, O += (size_t)bh * N * d;
    if (row >= N)
        return;
    ASC_AT(blockIdx.z, blockIdx.y, blockIdx.x);
    float m = -INFINITY, l = 0, acc[128];
    for (int x = 0; x < d; x++)
        acc[x] = 0;
    for (int t = 0; t < N; t += 16) {
        float s[16], top = m;
        for (int j = 0; j < 16; j++) {
            s[j] = -INFINITY;
            if (t + j < N && !(causal && t + j > row)) {
                s[j] = 0;
                for (int x = 0; x < d; x++)
                    s[j] += Q[row * d + x] * K[(t + j) * d + x];
                s[j] *= scale;
            }
            top = fmaxf(top, s[j]);
        }
        ASC_RECORD(s, t / 16, e, 16, threadIdx.x, e, s[e]);
        const float alpha = expf(m - top);
        m = top;
        l *= alpha;
        for (int x = 0; x < d; x++)
            acc[x] *= alpha;
        for (int j = 0; j < 16 && t + j < N; j++) {
            const float p = expf(s[j] - m);
            l += p;
            for (int x = 0; x < d; x++)
                acc[x] += p * V[(t + j) * d + x];
        }
        ASC_RECORD_ROW(m, t / 16, threadIdx.x, true, m);
        ASC_RECORD_ROW(l, t / 16, threadIdx.x, true, l);
        ASC_RECORD(u, t / 16, e, d, threadIdx.x, e, acc[e]);
    }
    for (int x = 0; x < d; x++)
        O[row * d + x] = acc[x] / l;
}
