// The forward kernel of CUTLASS's example of fused attention for Hopper, 88_hopper_fmha, launched as its device layer
// does. It has no probes: O and LSE are judged.
#include "attnscope_cute.h"

#ifdef SIMT_HOST
static const int planted = getenv("FLASH_PLANTED") ? atoi(getenv("FLASH_PLANTED")) : 0;
#else
#ifndef FLASH_PLANTED
#define FLASH_PLANTED 0
#endif
constexpr int planted = FLASH_PLANTED; // which of the mistakes that the test has planted is made
#endif

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/device_kernel.h"
#include "cutlass/kernel_hardware_info.h"

#include "collective/fmha_fusion.hpp"
#include "kernel/fmha_kernel_builder.hpp"

using namespace cute;

template <class Element, int D> static void run_fmha(asc_run &run)
{
    constexpr int br = 128, bc = D == 64 ? 64 : 128;
    using Stride = cute::tuple<int, _1, cute::tuple<int, int>>;
    using Kernel =
        typename cutlass::fmha::kernel::FmhaBuilder<Element, float, float, Shape<Int<br>, Int<bc>, Int<D>>, Stride,
                                                    Stride, Stride, cutlass::fmha::collective::ResidualFusion,
                                                    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::Kernel;
    const asc_problem &p = run.problem;
    run.plan.br = br, run.plan.bc = bc;
    /* Before the run there are no arrays, and TMA wants an address. */
    const auto address = [](const asc_array &array) {
        return static_cast<Element *>(array.at ? array.at : reinterpret_cast<void *>(1 << 20));
    };
    const auto strides = [](const asc_strides &s) {
        return Stride{static_cast<int>(s.row), _1{}, {static_cast<int>(s.batch), static_cast<int>(s.head)}};
    };
    const Stride q = strides(asc_strides_of(&p, p.heads, p.q_len)),
                 k = strides(asc_strides_of(&p, p.kv_heads, p.kv_len));
    cutlass::KernelHardwareInfo hardware;
    hardware.sm_count = 132;
    const typename Kernel::Arguments arguments{
        {run.batch(), run.heads(), run.q_len(), run.kv_len(), D},
        {address(run.q), q, address(run.k), k, address(run.v), k},
        {address(run.o), q, static_cast<float *>(run.lse), {_1{}, {run.heads() * run.q_len(), run.q_len()}}},
        hardware};
    run.need(Kernel::can_implement(arguments), "the kernel does not take it");
    const auto params = Kernel::to_underlying_arguments(arguments, nullptr);
    cutlass::device_kernel<Kernel><<<Kernel::get_grid_shape(params), Kernel::get_block_shape(),
                                     Kernel::SharedStorageSize, static_cast<cudaStream_t>(run.stream)>>>(params);
}

ASC_KERNEL(fmha)
{
    kernel.run = [](asc_run &run) {
        run.need(run.kv_heads() == run.heads(), "no groups of heads");
        run.need(!run.causal(), "no mask");
        if constexpr (asc_built_for(ASC_F16, 64))
            if (run.head_dim() == 64)
                return run_fmha<cutlass::half_t, 64>(run);
        if constexpr (asc_built_for(ASC_F16, 128))
            if (run.head_dim() == 128)
                return run_fmha<cutlass::half_t, 128>(run);
        run.need(false, "head_dim 64 and 128");
    };
    kernel.dtypes = ASC_SUPPORTS(F16);
    kernel.layouts = ASC_SUPPORTS(BHLD);
    kernel.conventions.p_rounded = ASC_P_INPUT;
    kernel.conventions.acc_s = kernel.conventions.acc_u = ASC_ACC_MMA;
    kernel.conventions.l_lanes = 4;
}
