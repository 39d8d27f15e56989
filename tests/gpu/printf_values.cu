/* printf_values VALUES: what a kernel that prints its values takes, one printf for each, as scores are looked at by
   hand. The values go to stdout, one JSON object to stderr. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

static int check(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        fprintf(stderr, "printf_values: %s: %s\n", what, cudaGetErrorString(status));
    return status != cudaSuccess;
}

/* One q tile of 64 rows against tiles of 64 keys, as it is spread over the threads of an attention kernel. */
__global__ void print_scores()
{
    for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x)
        printf("%d,%d,%f\n", i / 64, blockIdx.x * 64 + i % 64, 1e-3 * i);
}

int main(int argc, char **argv)
{
    const long values = argc == 2 ? strtol(argv[1], nullptr, 10) : 0;
    const unsigned tiles = static_cast<unsigned>(values / (64 * 64));
    double least = 1e9;
    if (tiles == 0) {
        fprintf(stderr, "usage: printf_values VALUES, at least 4096\n");
        return 2;
    }
    /* Room for all of them: what does not fit is lost. */
    if (check(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, static_cast<size_t>(tiles) * 64 * 64 * 96), "its buffer"))
        return 3;
    for (int i = 0; i < 3; i++) {
        const double begin = now();
        print_scores<<<tiles, 128>>>();
        if (check(cudaGetLastError(), "launch") || check(cudaDeviceSynchronize(), "kernel"))
            return 3;
        const double seconds = now() - begin;
        least = seconds < least ? seconds : least;
    }
    fprintf(stderr, "{\"values\": %u, \"seconds\": %.6f, \"values_per_second\": %.1f}\n", tiles * 64 * 64, least,
            tiles * 64 * 64 / least);
    return 0;
}
