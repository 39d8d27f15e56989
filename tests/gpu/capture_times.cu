/* capture_times B,H,L FOLDER [LAUNCHES]: what capturing tests/capture/attention.cu in a process of its own takes: the
   kernel with its probes compiled in, recording and not, and saving the trace in the folder. Built with ASC_MODE=0 as
   well: the kernel without probes. One JSON object on stdout. */
#include "tests/capture/attention.h"
#if ASC_MODE
#include "engine/capture/attnscope_capture.h"
#endif
#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <stdio.h>
#include <string>
#include <unistd.h>
#include <vector>

static double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T> static T *device(size_t n)
{
    T *memory = nullptr;
    return cudaMalloc(&memory, n * sizeof(T)) == cudaSuccess ? memory : nullptr;
}

/* Seconds of one launch, by CUDA events. */
static double launch(const Attention &a)
{
    float ms = 0;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaEventRecord(begin);
    attention(a, nullptr);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return 1e-3 * ms;
}

static double median_launch(const Attention &a, int n)
{
    std::vector<double> times;
    launch(a);
    for (int i = 0; i < n; i++)
        times.push_back(launch(a));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

#if ASC_MODE
/* What making as many bytes durable takes that lie in the page cache: end() does it too. The keeper frees what it held
   meanwhile, and is waited for. */
static double fsync_of(long bytes, const std::string &path)
{
    const std::vector<char> piece(1 << 20, 1);
    sleep(1);
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (long at = 0; at < bytes; at += 1 << 20)
        if (write(fd, piece.data(), piece.size()) < 0)
            break;
    const double begin = now();
    fsync(fd);
    const double took = now() - begin;
    close(fd);
    remove(path.c_str());
    return took;
}

/* {"memory": ..., "begin": s, "kernel": s, "end": s, "bytes": n} */
static bool capture(const Attention &a, const char *memory, const std::string &path)
{
    char json[1024];
    snprintf(json, sizeof json,
             R"({"problem": {"batch": %d, "heads": %d, "q_len": %d, "head_dim": %d, "dtype": "f16"},
                 "plan": {"br": %d, "bc": %d, "threads": %d}, "conventions": {"s_unit": "scaled", "m_unit": "scaled"},
                 "capture": {"path": "%s", "memory": "%s"}})",
             a.batch, a.heads, a.q_len, D, BR, BC, 32 * BR, path.c_str(), memory);
    asc_tensors tensors = {};
    tensors.q.data = a.q, tensors.k.data = a.k, tensors.v.data = a.v;
    const double begin = now();
    asc_captured captured(json, tensors);
    const double begun = now(), kernel = launch(a), launched = now();
    const asc_tensor o = {a.o, {}}, lse = {a.lse, {}};
    const bool saved = captured.end(o, lse);
    const double ended = now();
    FILE *file = saved ? fopen(path.c_str(), "rb") : nullptr;
    if (!file) {
        printf("{\"memory\": \"%s\", \"error\": \"%s\"}", memory, captured.why());
        return false;
    }
    fseek(file, 0, SEEK_END);
    printf("{\"memory\": \"%s\", \"begin\": %.6f, \"kernel\": %.9f, \"end\": %.6f, \"fsync\": %.6f, \"bytes\": %ld}",
           memory, begun - begin, kernel, ended - launched, fsync_of(ftell(file), path + ".fsync"), ftell(file));
    fclose(file);
    return true;
}
#endif

int main(int argc, char **argv)
{
    int batch, heads, length;
    if (argc < 3 || sscanf(argv[1], "%d,%d,%d", &batch, &heads, &length) != 3)
        return 2;
    const size_t n = size_t(batch) * heads * length * D;
    std::vector<__half> random;
    for (size_t e = 0; e < n; e++)
        random.push_back(__float2half(float(rand()) / RAND_MAX - 0.5f));
    const Strides dense = {int64_t(heads) * length * D, int64_t(length) * D, D};
    __half *in[3];
    for (__half *&tensor : in) {
        tensor = device<__half>(n);
        cudaMemcpy(tensor, random.data(), n * sizeof(__half), cudaMemcpyHostToDevice);
    }
    const Attention a = {in[0],
                         in[1],
                         in[2],
                         device<__half>(n),
                         device<float>(n / D),
                         dense,
                         dense,
                         dense,
                         dense,
                         batch,
                         heads,
                         heads,
                         length,
                         length,
                         false,
                         0};
    printf("{\"kernel\": %.9f", median_launch(a, argc > 3 ? atoi(argv[3]) : 21));
#if ASC_MODE
    const std::string path = std::string(argv[2]) + "/capture-times.safetensors";
    const char *before = ", \"captures\": [";
    for (const char *memory : {"device", "guard", "pinned", "device", "guard", "pinned"}) {
        fputs(before, stdout);
        capture(a, memory, path);
        before = ", ";
    }
    remove(path.c_str());
    printf("], \"after\": %.9f", median_launch(a, 11));
#endif
    puts("}");
    return cudaGetLastError() == cudaSuccess ? 0 : 3;
}
