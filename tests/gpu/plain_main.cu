/* A kernel of kernels/ as its user's program runs it: no probes, no attnscope. Built with -DKERNEL='"kernels/x.cu"'.
   plain B,H,L,D LAUNCHES [BATCH]: launches it and prints one JSON object: the medians of what events and what the
   program's own clock say of a launch, or of BATCH launches without a pause, divided by their number. All inputs are
   zeros. The same program runs under compute-sanitizer. */
#define ASC_BUILD 1
#include "attnscope.h"

#include KERNEL

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void asc_launching(const char *, const void *, const unsigned[3], const unsigned[3], size_t) {}

const char *asc_launch_failure(int status)
{
    return cudaGetErrorString(static_cast<cudaError_t>(status));
}

/* Nothing is linked that could be missing. */
extern "C" const char *asc_missing_sentence(const char *mangled)
{
    return mangled;
}
extern "C" void asc_missing_end(const char *) {}

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

static int ascending(const void *a, const void *b)
{
    const double x = *static_cast<const double *>(a), y = *static_cast<const double *>(b);
    return (x > y) - (x < y);
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "plain: %s: %s\n", what, why);
    return 3;
}

static void *array(size_t bytes)
{
    void *memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess || cudaMemset(memory, 0, bytes) != cudaSuccess)
        return nullptr;
    return memory;
}

int main(int argc, char **argv)
{
    enum { MOST = 100 };
    double by_clock[MOST], by_events[MOST];
    asc_problem p = {};
    asc_kernel kernel = {};
    const int n = argc == 3 || argc == 4 ? atoi(argv[2]) : 0, batch = argc == 4 ? atoi(argv[3]) : 1;
    if (n < 1 || n > MOST || batch < 1 ||
        sscanf(argv[1], "%d,%d,%d,%d", &p.batch, &p.heads, &p.q_len, &p.head_dim) != 4) {
        fprintf(stderr, "usage: plain B,H,L,D LAUNCHES [BATCH], at most %d launches\n", MOST);
        return 2;
    }
    p.kv_heads = p.heads;
    p.kv_len = p.q_len;
    asc_describe(kernel);
    const uint32_t of_k = kernel.k_dtypes ? kernel.k_dtypes : kernel.dtypes;
    p.dtype = !kernel.dtypes || kernel.dtypes & ASC_SUPPORTS(F16) ? ASC_F16 : ASC_E4M3;
    p.k_dtype = p.v_dtype = !of_k || of_k & ASC_SUPPORTS(F16) ? ASC_F16 : ASC_E4M3;
    p.window_left = p.window_right = -1;
    p.scale = 1.0f / sqrtf(static_cast<float>(p.head_dim));
    const size_t rows = static_cast<size_t>(p.batch) * p.heads * p.q_len, bytes = rows * p.head_dim * 2;
    p.q = array(bytes);
    p.k = array(bytes);
    p.v = array(bytes);
    p.o = array(bytes);
    p.lse = static_cast<float *>(array(rows * sizeof(float)));
    p.q_scale = p.k_scale = p.v_scale = static_cast<float *>(array(rows * sizeof(float)));
    if (!p.q_scale || !p.q || !p.k || !p.v || !p.o || !p.lse)
        return fail("device memory", cudaGetErrorString(cudaGetLastError()));
    asc_plan tiles = {};
    const char *why = kernel.plan(&p, &tiles);
    if (!why && tiles.workspace_bytes && !(p.workspace = array(tiles.workspace_bytes)))
        return fail("device memory", cudaGetErrorString(cudaGetLastError()));
    if (why)
        return fail("declined", why);
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int i = -1; i < n; i++) { /* the first one warms up */
        float ms = 0;
        const double from = now();
        cudaEventRecord(begin);
        why = nullptr;
        for (int j = 0; j < batch && !why; j++)
            why = kernel.launch(&p, nullptr);
        cudaEventRecord(end);
        const cudaError_t status = cudaDeviceSynchronize();
        if (why || status != cudaSuccess)
            return fail("launch", why ? why : cudaGetErrorString(status));
        cudaEventElapsedTime(&ms, begin, end);
        by_clock[i < 0 ? 0 : i] = (now() - from) / batch;
        by_events[i < 0 ? 0 : i] = 1e-3 * static_cast<double>(ms) / batch;
    }
    qsort(by_clock, n, sizeof *by_clock, ascending);
    qsort(by_events, n, sizeof *by_events, ascending);
    printf("{\"launches\": %d, \"clock\": %.9f, \"events\": %.9f}\n", n, by_clock[n / 2], by_events[n / 2]);
    return 0;
}
