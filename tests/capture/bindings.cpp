#include "attention.h"
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

static Strides strides(const torch::Tensor &t, bool blhd)
{
    return {t.stride(0), t.stride(blhd ? 2 : 1), t.stride(blhd ? 1 : 2)};
}

static std::vector<torch::Tensor> forward(torch::Tensor q, torch::Tensor k, torch::Tensor v, bool causal, bool blhd,
                                          int64_t mistake)
{
    const int head = blhd ? 2 : 1, row = blhd ? 1 : 2;
    auto o = torch::empty(q.sizes(), q.options());
    auto lse = torch::empty({q.size(0), q.size(head), q.size(row)}, q.options().dtype(torch::kFloat32));
    auto half = [](const torch::Tensor &t) { return reinterpret_cast<__half *>(t.data_ptr()); };
    Attention a = {half(q), half(k), half(v), half(o), lse.data_ptr<float>()};
    a.sq = strides(q, blhd), a.sk = strides(k, blhd), a.sv = strides(v, blhd), a.so = strides(o, blhd);
    a.batch = q.size(0), a.heads = q.size(head), a.kv_heads = k.size(head);
    a.q_len = q.size(row), a.kv_len = k.size(row);
    a.causal = causal, a.mistake = mistake;
    attention(a, c10::cuda::getCurrentCUDAStream());
    return {o, lse};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.def("forward", &forward);
}
