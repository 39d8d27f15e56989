// What the stand-in for torch's C++ API gives, against what PyTorch gives; then a run whose K comes through accessors.
#include "flash.cuh"
#include <ATen/cuda/CUDAGraphsUtils.cuh>
#include <torch/extension.h>

using Accessor = torch::PackedTensorAccessor32<float, 4, torch::RestrictPtrTraits>;

__global__ void copy(Accessor from, Accessor to)
{
    for (int i = threadIdx.x; i < to.size(2); i += blockDim.x)
        for (int x = 0; x < to.size(3); x++)
            to[blockIdx.y][blockIdx.x][i][x] = from[blockIdx.y][i][blockIdx.x][x];
}

template <class Call> static bool throws(Call call)
{
    try {
        call();
    } catch (const c10::Error &) {
        return true;
    }
    return false;
}

static bool has(const torch::Tensor &t, at::IntArrayRef sizes, at::IntArrayRef strides)
{
    return t.sizes() == sizes && t.strides() == strides;
}

#define CHECK(condition) TORCH_CHECK(condition, "line ", __LINE__, ": " #condition)

static void check_tensors()
{
    const auto on = torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA);
    const auto a = torch::full({2, 3}, 1, on), b = torch::full({2, 3}, 2, on), t = torch::zeros({2, 3, 4}, on);
    CHECK(has(t, {2, 3, 4}, {12, 4, 1}) && t.is_contiguous() && t.numel() == 24 && t.size(-1) == 4);
    const auto turned = t.transpose(0, 1);
    CHECK(has(turned, {3, 2, 4}, {4, 12, 1}) && !turned.is_contiguous());
    CHECK(has(torch::empty_like(turned), {3, 2, 4}, {4, 12, 1})); // the order of the strides stays
    CHECK(has(turned.clone(), {3, 2, 4}, {4, 12, 1}) && has(turned.to(torch::kHalf), {3, 2, 4}, {4, 12, 1}));
    CHECK(has(turned.contiguous(), {3, 2, 4}, {8, 4, 1}));
    CHECK(has(torch::zeros_like(t.narrow(2, 0, 2)), {2, 3, 2}, {6, 2, 1})); // and what is not dense becomes it
    CHECK(has(torch::empty_like(turned.narrow(2, 0, 2)), {3, 2, 2}, {2, 6, 1}));
    CHECK(has(t.permute({2, 0, 1}), {4, 2, 3}, {1, 12, 4}) && has(t.select(1, -1), {2, 4}, {12, 1}));
    CHECK(has(t.slice(2, 1, -1), {2, 3, 2}, {12, 4, 1}) && has(t.slice(2, 3, 100), {2, 3, 1}, {12, 4, 1}));
    CHECK(has(a.unsqueeze(1).expand({-1, 4, -1}), {2, 4, 3}, {3, 0, 1}) && a.expand({5, 2, 3}).stride(0) == 0);
    CHECK(has(t.reshape({6, -1}), {6, 4}, {4, 1}) && has(t.flatten(1), {2, 12}, {12, 1}));
    CHECK(has(a.unsqueeze(-1).squeeze(), {2, 3}, {3, 1}) && throws([&] { turned.view({24}); }));
    CHECK(has(torch::stack({a, b}, 1), {2, 2, 3}, {6, 3, 1}) && torch::stack({a, b}, -1).size(2) == 2);
    CHECK(torch::stack({a, b}, 1)[0][1][2].item<float>() == 2 && torch::cat({a, b}, 1)[1][4].item<float>() == 2);
    CHECK(torch::full({1}, 2.5, on).to(torch::kHalf).to(torch::kFloat).item<float>() == 2.5f);
    CHECK(torch::cat({a, b}, 1).max().item<int>() == 2 && torch::stack({a, b}, 1).min().item<double>() == 1);
    CHECK(torch::cat({a, b}, 1).max().dim() == 0 && has(torch::zeros({}, on), {}, {}));
    CHECK(throws([&] { a.item<float>(); }) && throws([&] { torch::zeros({0}, on).item<float>(); }));
    CHECK(torch::full({1}, -INFINITY, on).to(torch::kBFloat16).item<double>() == -INFINITY);
    CHECK(throws([&] { t.narrow(2, 2, 3); }) && throws([&] { t.select(0, 2); }) && throws([&] { t.size(3); }));
    CHECK(throws([&] {
              a.expand({2, 4});
          }) &&
          throws([&] { a.data_ptr<double>(); }) && throws([&] { a.reshape({4}); }));
}

static void check_functions()
{
    using torch::indexing::None;
    using torch::indexing::Slice;
    namespace F = torch::nn::functional;
    const auto on = torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA);
    const auto t = torch::zeros({2, 3, 4}, on);
    const int64_t flat[] = {6, 4};
    CHECK(has(t.index({"...", Slice(None, 3)}), {2, 3, 3}, {12, 4, 1}) && has(at::reshape(t, flat), {6, 4}, {4, 1}));
    CHECK(has(t.index({1, Slice(None, None, 2)}), {2, 4}, {8, 1}) && has(t.index({None, 1}), {1, 3, 4}, {24, 4, 1}));
    CHECK(has(t.index({0, "...", -1}), {3}, {4}) && has(t.slice(2, 1), {2, 3, 3}, {12, 4, 1}));
    CHECK(throws([&] { t.index({0, 0, 0, 0}); }) && throws([&] { t.index({"..", 0}); }));
    CHECK(throws([&] { t.slice(0, 0, 2, 0); }));
    const auto padded = F::pad(torch::full({2, 3}, 1, on), F::PadFuncOptions({1, 2, 0, 1}).value(5));
    CHECK(has(padded, {3, 6}, {6, 1}) && padded[1][3].item<float>() == 1 && padded[1][0].item<float>() == 5);
    CHECK(padded[2][3].item<float>() == 5 && padded[0][4].item<float>() == 5);
    CHECK(throws([&] { F::pad(t, F::PadFuncOptions({1})); }) && throws([&] { F::pad(t, F::PadFuncOptions({-1, 0})); }));
    CHECK(has(torch::from_blob(t.data_ptr(), {4, 6}, on), {4, 6}, {6, 1}));
    CHECK(torch::from_blob(padded.data_ptr(), {2, 2}, {6, 3}, on)[1][1].item<float>() == 1);
    auto sum = torch::zeros({2, 3}, on);
    CHECK(throws([&] { at::sum_out(sum, t, {2}); }));

    auto made = at::cuda::detail::createCUDAGenerator();
    at::optional<at::Generator> none, undefined = at::Generator(), own = made;
    const at::Generator &shared = at::cuda::detail::getDefaultCUDAGenerator();
    auto *gen = at::get_generator_or_default<at::CUDAGeneratorImpl>(own, shared);
    CHECK(gen == made.get<at::CUDAGeneratorImpl>());
    CHECK(at::get_generator_or_default<at::CUDAGeneratorImpl>(none, shared) == shared.get<at::CUDAGeneratorImpl>());
    CHECK(throws([&] { at::check_generator<at::CUDAGeneratorImpl>(none); }) &&
          throws([&] { at::check_generator<at::CUDAGeneratorImpl>(undefined); }));
    std::lock_guard<std::mutex> lock(gen->mutex_);
    gen->set_current_seed(7);
    CHECK(gen->philox_cuda_state(5).offset == 0 && gen->philox_cuda_state(4).offset == 8); // by fours
    CHECK(at::cuda::philox::unpack(gen->philox_cuda_state(1)) == std::make_tuple(uint64_t(7), uint64_t(12)));
}

static torch::Tensor forward(torch::Tensor Q, torch::Tensor K, torch::Tensor V)
{
    check_tensors();
    check_functions();
    const int B = Q.size(0), H = Q.size(1), N = Q.size(2), d = Q.size(3);
    const auto by_rows = K.transpose(1, 2).contiguous();
    auto O = torch::empty_like(Q), K2 = torch::empty_like(K);
    copy<<<dim3(H, B), 32>>>(by_rows.packed_accessor32<float, 4, torch::RestrictPtrTraits>(),
                             K2.packed_accessor32<float, 4, torch::RestrictPtrTraits>());
    flash<<<dim3((N + 31) / 32, H, B), 32>>>(Q.data_ptr<float>(), K2.data_ptr<float>(), V.data_ptr<float>(),
                                             O.data_ptr<float>(), NULL, N, d, 1 / sqrtf(d), false);
    return O;
}

ASC_KERNEL(tensors)
{
    kernel.br = 32, kernel.bc = 16;
    kernel.s_unit = kernel.m_unit = ASC_UNIT_SCALED;
    kernel.no_lse = 1;
    kernel.run = [](auto &run) { run.o = forward(run.q, run.k, run.v); };
}
