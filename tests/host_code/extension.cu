// A PyTorch extension as people write it: tensors, dispatch, <<<>>>, bindings. It is built against attnscope's
// stand-in.
#include "flash.cuh"
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>
#include <vector>

#define CHECK_INPUT(x)                                                                                                 \
    TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor");                                                    \
    TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

std::vector<torch::Tensor> forward(torch::Tensor Q, torch::Tensor K, torch::Tensor V, c10::optional<at::Tensor> &out,
                                   c10::optional<at::Tensor> &slopes, bool causal, c10::optional<float> scale)
{
    TORCH_CHECK(!slopes.has_value(), "no slopes of ALiBi");
    CHECK_INPUT(Q);
    CHECK_INPUT(K);
    CHECK_INPUT(V);
    const at::cuda::OptionalCUDAGuard guard(device_of(Q));
    const int B = Q.size(0), H = Q.size(1), N = Q.size(2), d = Q.size(-1);
    TORCH_CHECK(d <= 128, "head_dim ", d, " is above 128");
    TORCH_CHECK(K.sizes() == Q.sizes(), "K is ", K.sizes(), " and Q is ", Q.sizes());
    auto O = out.has_value() ? out.value() : torch::empty_like(Q);
    auto L = torch::full({B, H, N}, -INFINITY, torch::TensorOptions().dtype(torch::kFloat32).device(Q.device()));
    // There and back, as host code does that wants another layout.
    auto K2 = K.transpose(1, 2).contiguous().transpose(1, 2).contiguous();
    const dim3 grid((N + 31) / 32, H, B);
    AT_DISPATCH_FLOATING_TYPES(Q.scalar_type(), "flash", [&] {
        static_assert(sizeof(scalar_t) >= 4, "");
        flash<<<grid, 32, 0, at::cuda::getCurrentCUDAStream()>>>(Q.data_ptr<float>(), K2.data_ptr<float>(),
                                                                 V.data_ptr<float>(), O.data_ptr<float>(), NULL, N, d,
                                                                 scale.value_or(1 / sqrtf(d)), causal);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {O, L};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.def("forward", &forward, "Attention", py::arg("q"), py::arg("k"), py::arg("v"), py::arg("causal") = false);
}

ASC_RUN(extension, run.o = forward(run.q, run.k, run.v, run.o, run.alibi(), run.causal(), run.scale())[0], br = 32,
        bc = 16, dtypes = ASC_SUPPORTS(F32), s_unit = ASC_UNIT_SCALED, m_unit = ASC_UNIT_SCALED, no_lse = 1);
