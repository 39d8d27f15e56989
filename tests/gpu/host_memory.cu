/* host_memory BYTES...: what the memory of a trace costs and takes: a memory file, written once, pinned and mapped.
   For each size the time to pin it, the rate of the copy engine into it, and that of a kernel that writes it from end
   to end. One JSON object. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7 };

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

static int failed(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        fprintf(stderr, "host_memory: %s: %s\n", what, cudaGetErrorString(status));
    return status != cudaSuccess;
}

__global__ void write_all(uint4 *to, size_t n)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
        to[i] = make_uint4(1, 2, 3, 4);
}

static int ascending(const void *a, const void *b)
{
    const float x = *static_cast<const float *>(a), y = *static_cast<const float *>(b);
    return (x > y) - (x < y);
}

/* Median seconds of a copy (from != NULL) or of the kernel. */
static double median(void *host, void *mapped, const void *from, size_t bytes)
{
    float ms[ROUNDS];
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int i = -1; i < ROUNDS; i++) {
        cudaEventRecord(begin);
        if (from)
            cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost);
        else
            write_all<<<1024, 256>>>(static_cast<uint4 *>(mapped), bytes / sizeof(uint4));
        cudaEventRecord(end);
        if (failed(cudaEventSynchronize(end), "moving the bytes"))
            return 0;
        cudaEventElapsedTime(&ms[i < 0 ? 0 : i], begin, end);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    qsort(ms, ROUNDS, sizeof *ms, ascending);
    return 1e-3 * static_cast<double>(ms[ROUNDS / 2]);
}

static int measure(size_t bytes, const char *separator)
{
    void *mapped = nullptr, *device = nullptr;
    const int fd = memfd_create("host_memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)
        return perror("host_memory: memory file"), 3;
    void *host = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (host == MAP_FAILED)
        return perror("host_memory: mapping"), 3;
    const double begin = now();
    memset(host, 1, bytes);
    const double written = now();
    if (failed(cudaHostRegister(host, bytes, cudaHostRegisterMapped), "pinning") ||
        failed(cudaHostGetDevicePointer(&mapped, host, 0), "mapping") || failed(cudaMalloc(&device, bytes), "memory"))
        return 3;
    const double pinned = now();
    const double copy = median(host, mapped, device, bytes), write = median(host, mapped, nullptr, bytes);
    const double before = now();
    if (copy <= 0 || write <= 0 || failed(cudaHostUnregister(host), "unpinning"))
        return 3;
    printf("%s{\"bytes\": %zu, \"first_write\": %.6f, \"pin\": %.6f, \"unpin\": %.6f, \"copy\": %.9f, \"write\": %.9f}",
           separator, bytes, written - begin, pinned - written, now() - before, copy, write);
    cudaFree(device);
    munmap(host, bytes);
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    const double begin = now();
    if (argc < 2) {
        fprintf(stderr, "usage: host_memory BYTES...\n");
        return 2;
    }
    if (failed(cudaFree(nullptr), "context"))
        return 3;
    printf("{\"context\": %.6f, \"sizes\": [", now() - begin);
    for (int i = 1; i < argc; i++) {
        const int status = measure(strtoull(argv[i], nullptr, 10), i > 1 ? ", " : "");
        if (status)
            return status;
    }
    printf("]}\n");
    return 0;
}
