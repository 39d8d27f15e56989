// Times libraries of published.cu: published_main DIM PLAIN.so OFF.so at (2,8,2048,DIM). Bursts of launches in random
// turn; JSON: the median of each in seconds, and of the ratio of the second to the first in the same round.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <random>
#include <vector>

typedef void run_t(void *, void *, void *, void *, float *, int *, int, int, int, cudaStream_t);

constexpr int BATCH = 2, HEADS = 8, LENGTH = 2048, ROUNDS = 60, BURST = 20, WARM = 3;

static __global__ void fill(__half *x, size_t n)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x)
        x[i] = __half(((i * 2654435761u >> 8) % 2048) / 1024.0f - 1);
}

static double median(std::vector<double> of)
{
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return fprintf(stderr, "published_main DIM PLAIN.so OFF.so\n"), 2;
    const int dim = atoi(argv[1]);
    const size_t n = size_t{BATCH} * HEADS * LENGTH * dim;
    __half *x[4];
    float *lse;
    int *counter;
    run_t *run[2];
    for (auto &tensor : x) {
        cudaMalloc(&tensor, n * sizeof *tensor);
        fill<<<512, 256>>>(tensor, n);
    }
    cudaMalloc(&lse, (BATCH * HEADS * LENGTH + 1024) * sizeof *lse);
    cudaMalloc(&counter, sizeof *counter);
    cudaMemset(counter, 0, sizeof *counter);
    for (int i = 0; i < 2; i++) {
        void *const library = dlopen(argv[2 + i], RTLD_NOW | RTLD_LOCAL);
        run[i] = library ? reinterpret_cast<run_t *>(dlsym(library, "run")) : nullptr;
        if (!run[i])
            return fprintf(stderr, "%s\n", dlerror()), 1;
    }
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    std::mt19937 random(1);
    std::vector<double> seconds[2], ratio;
    std::vector<unsigned short> o[2] = {std::vector<unsigned short>(n), std::vector<unsigned short>(n)};
    for (int round = -3; round < ROUNDS; round++) {
        double now[2];
        const int first = random() % 2;
        for (int turn = 0; turn < 2; turn++) {
            const int i = first ^ turn;
            for (int launch = -WARM; launch < BURST; launch++) {
                if (launch == 0)
                    cudaEventRecord(begin);
                run[i](x[0], x[1], x[2], x[3], lse, counter, BATCH, HEADS, LENGTH, nullptr);
            }
            cudaEventRecord(end);
            cudaEventSynchronize(end);
            float ms = 0;
            cudaEventElapsedTime(&ms, begin, end);
            now[i] = ms * 1e-3 / BURST;
            if (const cudaError_t failed = cudaGetLastError())
                return fprintf(stderr, "%s: %s\n", argv[2 + i], cudaGetErrorString(failed)), 1;
            if (round == -3)
                cudaMemcpy(o[i].data(), x[3], n * sizeof(__half), cudaMemcpyDeviceToHost);
        }
        for (int i = 0; i < 2 && round >= 0; i++)
            seconds[i].push_back(now[i]);
        if (round >= 0)
            ratio.push_back(now[1] / now[0]);
    }
    if (const cudaError_t failed = cudaDeviceSynchronize())
        return fprintf(stderr, "%s\n", cudaGetErrorString(failed)), 1;
    if (o[0] != o[1] || std::count(o[0].begin(), o[0].end(), 0) > (long)(n / 2))
        return fprintf(stderr, "the two do not give the same output\n"), 1;
    printf("{\"plain\": %.9f, \"off\": %.9f, \"ratio\": %.4f}\n", median(seconds[0]), median(seconds[1]),
           median(ratio));
}
