// A C++ program of its own, without Python: program TRACE [MISTAKE]. With -DLATE the kernel that runs is a
// library's, which is loaded when the capture has begun: program TRACE 0 LIBRARY.
#include "attention.h"
#include "attnscope_capture.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>

template <class T> static T *device(size_t n, const std::vector<T> &from = {})
{
    T *memory = nullptr;
    cudaMalloc(&memory, n * sizeof(T));
    if (!from.empty())
        cudaMemcpy(memory, from.data(), n * sizeof(T), cudaMemcpyHostToDevice);
    return memory;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const int batch = 2, heads = 2, length = 100;
    const size_t n = size_t(batch) * heads * length * D;
    std::vector<__half> random[3];
    for (int i = 0; i < 3; i++)
        for (size_t e = 0; e < n; e++)
            random[i].push_back(__float2half(float(rand()) / RAND_MAX - 0.5f));
    const Strides dense = {heads * length * D, length * D, D};
    Attention a = {device(n, random[0]),
                   device(n, random[1]),
                   device(n, random[2]),
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
                   true,
                   argc > 2 ? atoi(argv[2]) : 0};

    const std::string json = std::string(R"({
        "problem": {"batch": 2, "heads": 2, "q_len": 100, "head_dim": 64, "dtype": "f16", "causal": "bottom-right"},
        "plan": {"br": 16, "bc": 32, "threads": 512},
        "conventions": {"s_unit": "scaled", "m_unit": "scaled"},
        "capture": {"path": ")") +
                             argv[1] + "\"}}";
    asc_tensors tensors = {};
    tensors.q.data = a.q, tensors.k.data = a.k, tensors.v.data = a.v;
    asc_captured capture(json.c_str(), tensors);
#ifdef LATE
    void *const library = dlopen(argv[3], RTLD_NOW);
    void *const found = library ? dlsym(library, "_Z9attentionRK9AttentionP11CUstream_st") : nullptr;
    if (!found || capture.late(true) != 1) {
        fprintf(stderr, "%s\n", found ? capture.why() : dlerror());
        return 1;
    }
    reinterpret_cast<void (*)(const Attention &, cudaStream_t)>(found)(a, nullptr);
    cudaDeviceSynchronize();
#else
    attention(a, nullptr);
#endif
    asc_tensor o = {a.o, {}}, lse = {a.lse, {}};
    const bool saved = capture.end(o, lse);
    if (*capture.why())
        fprintf(stderr, "attnscope: %s\n", capture.why());
    return saved ? 0 : 1;
}
