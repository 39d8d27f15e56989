// A PyTorch extension as people write it: tensors, dispatch, <<<>>>, bindings. It is built against attnscope's
// stand-in.
#include "attnscope.h"
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>
#include <vector>

#define CHECK_INPUT(x)                                                                                                 \
    TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor");                                                    \
    TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

__global__ void flash(const float *Q, const float *K, const float *V, float *O, int N, int d, float scale, bool causal)
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

std::vector<torch::Tensor> forward(torch::Tensor Q, torch::Tensor K, torch::Tensor V, bool causal,
                                   c10::optional<float> scale)
{
    CHECK_INPUT(Q);
    CHECK_INPUT(K);
    CHECK_INPUT(V);
    const at::cuda::OptionalCUDAGuard guard(device_of(Q));
    const int B = Q.size(0), H = Q.size(1), N = Q.size(2), d = Q.size(-1);
    TORCH_CHECK(d <= 128, "head_dim ", d, " is above 128");
    TORCH_CHECK(K.sizes() == Q.sizes(), "K is ", K.sizes(), " and Q is ", Q.sizes());
    auto O = torch::empty_like(Q);
    auto L = torch::full({B, H, N}, -INFINITY, torch::TensorOptions().dtype(torch::kFloat32).device(Q.device()));
    // There and back, as host code does that wants another layout.
    auto K2 = K.transpose(1, 2).contiguous().transpose(1, 2).contiguous();
    const dim3 grid((N + 31) / 32, H, B);
    AT_DISPATCH_FLOATING_TYPES(Q.scalar_type(), "flash", [&] {
        static_assert(sizeof(scalar_t) >= 4, "");
        flash<<<grid, 32, 0, at::cuda::getCurrentCUDAStream()>>>(Q.data_ptr<float>(), K2.data_ptr<float>(),
                                                                 V.data_ptr<float>(), O.data_ptr<float>(), N, d,
                                                                 scale.value_or(1 / sqrtf(d)), causal);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {O, L};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.def("forward", &forward, "Attention", py::arg("q"), py::arg("k"), py::arg("v"), py::arg("causal") = false);
}

ASC_KERNEL(extension)
{
    kernel.br = 32, kernel.bc = 16;
    kernel.dtypes = ASC_SUPPORTS(F32);
    kernel.s_unit = kernel.m_unit = ASC_UNIT_SCALED;
    kernel.no_lse = 1;
    kernel.run = [](auto &run) { run.o = forward(run.q, run.k, run.v, run.causal(), run.scale())[0]; };
}
