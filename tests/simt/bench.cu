// Speed of the executor: scalar attention of (1, 8, 512, 64) and bare meetings. Not a test; prints seconds.
#include <cuda_fp16.h>
#include <string.h>
#include <time.h>

constexpr int L = 512, D = 64, H = 8, LD = D + 8;

__device__ __forceinline__ float warp_max(float v)
{
    for (int o = 16; o; o >>= 1)
        v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, o));
    return v;
}

__device__ __forceinline__ float warp_sum(float v)
{
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(0xFFFFFFFFu, v, o);
    return v;
}

__device__ void load(__half *tile, const __half *rows)
{
    for (int i = threadIdx.x; i < 64 * D / 8; i += blockDim.x)
        *(uint4 *)(tile + i / (D / 8) * LD + i % (D / 8) * 8) = *(const uint4 *)(rows + i * 8);
}

__global__ void attention(const __half *q, const __half *k, const __half *v, __half *o, float scale)
{
    extern __shared__ __align__(16) unsigned char smem[];
    __half *sQ = (__half *)smem, *sK = sQ + 64 * LD, *sV = sK + 64 * LD;
    float *sP = (float *)(sV + 64 * LD);
    __shared__ float sm[64], sl[64];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t base = (size_t)blockIdx.y * L * D;
    load(sQ, q + base + (size_t)blockIdx.x * 64 * D);
    if (threadIdx.x < 64) {
        sm[threadIdx.x] = -INFINITY;
        sl[threadIdx.x] = 0.0f;
    }
    float acc[16][2] = {};
    for (int kt = 0; kt < L / 64; kt++) {
        __syncthreads();
        load(sK, k + base + (size_t)kt * 64 * D);
        load(sV, v + base + (size_t)kt * 64 * D);
        __syncthreads();
        for (int r = 0; r < 16; r++) {
            const int row = warp * 16 + r;
            float s0 = 0.0f, s1 = 0.0f;
            for (int d = 0; d < D; d++) {
                const float x = __half2float(sQ[row * LD + d]);
                s0 += x * __half2float(sK[lane * LD + d]);
                s1 += x * __half2float(sK[(lane + 32) * LD + d]);
            }
            s0 *= scale;
            s1 *= scale;
            const float before = sm[row], m = fmaxf(before, warp_max(fmaxf(s0, s1)));
            const float p0 = __expf(s0 - m), p1 = __expf(s1 - m), alpha = __expf(before - m);
            const float sum = warp_sum(p0 + p1);
            sP[row * 64 + lane] = p0;
            sP[row * 64 + lane + 32] = p1;
            __syncwarp();
            if (lane == 0) {
                sm[row] = m;
                sl[row] = sl[row] * alpha + sum;
            }
            acc[r][0] *= alpha;
            acc[r][1] *= alpha;
            for (int c = 0; c < 64; c++) {
                const float p = sP[row * 64 + c];
                acc[r][0] += p * __half2float(sV[c * LD + lane]);
                acc[r][1] += p * __half2float(sV[c * LD + lane + 32]);
            }
            __syncwarp();
        }
    }
    __syncthreads();
    for (int r = 0; r < 16; r++) {
        const int row = warp * 16 + r;
        __half *out = o + base + (size_t)(blockIdx.x * 64 + row) * D;
        out[lane] = __float2half(acc[r][0] / sl[row]);
        out[lane + 32] = __float2half(acc[r][1] / sl[row]);
    }
}

__global__ void meet_warp(int n)
{
    for (int i = 0; i < n; i++)
        __syncwarp();
}

__global__ void meet_shuffle(int n)
{
    int v = threadIdx.x;
    for (int i = 0; i < n; i++)
        v += __shfl_xor_sync(~0u, v, 1);
    if (v == 0x12345678)
        printf("%d\n", v);
}

__global__ void meet_block(int n)
{
    for (int i = 0; i < n; i++)
        __syncthreads();
}

static double now()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

template <class F> static double best(F run)
{
    double least = 1e9;
    for (int i = 0; i < 5; i++) {
        const double begin = now();
        run();
        const double took = now() - begin;
        least = took < least ? took : least;
    }
    return least;
}

extern "C" int simt_case(const char *)
{
    static __half q[H * L * D], k[H * L * D], v[H * L * D], o[H * L * D];
    unsigned bits = 1;
    for (__half *x : {q, k, v})
        for (int i = 0; i < H * L * D; i++) {
            bits = bits * 1664525u + 1013904223u;
            x[i] = __float2half((float)(bits >> 8) * 0x1p-23f - 1.0f);
        }
    const size_t bytes = 3 * 64 * LD * sizeof(__half) + 64 * 64 * sizeof(float);
    printf("attention (1,8,512,64): %.3f s\n",
           best([&] { simt_launch_kernel("attention", attention, dim3(L / 64, H), 128, bytes, q, k, v, o, 0.125f); }));
    const int n = 20000;
    for (unsigned threads : {32u, 128u, 1024u}) {
        const double switches = (double)n * threads * 1e-9;
        printf("%4u threads, ns each: __syncwarp %.1f, __shfl_xor_sync %.1f, __syncthreads %.1f\n", threads,
               best([&] { simt_launch_kernel("meet_warp", meet_warp, 1, threads, 0, n); }) / switches,
               best([&] { simt_launch_kernel("meet_shuffle", meet_shuffle, 1, threads, 0, n); }) / switches,
               best([&] { simt_launch_kernel("meet_block", meet_block, 1, threads, 0, n); }) / switches);
    }
    return 0;
}
