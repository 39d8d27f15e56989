// FlashAttention-2's forward by its own mha_fwd. Of its instances those are compiled that the scenario names.
#include "attnscope_cute.h"
#include "flash.h"
#define run_mha_fwd_splitkv_dispatch split_dispatch // this file chooses the instances of it
#include "flash_fwd_launch_template.h"
#undef run_mha_fwd_splitkv_dispatch
#define get_num_sm(device) FLASH_SMS // by which mha_fwd chooses how many splits there are
#include "flash_api.cpp"

template <class T, int D, bool Causal, bool Splits> static void launch(flash::Flash_fwd_params &f, cudaStream_t stream)
{
    constexpr bool half = std::is_same<T, cutlass::half_t>::value;
    if constexpr (!asc_built_for(half ? ASC_F16 : ASC_BF16, D) || Causal != FLASH_CAUSAL || Splits != (FLASH_SMS > 1))
        throw asc_refusal{"this instance of FlashAttention-2 is not built"};
    else if constexpr (Splits)
        flash::split_dispatch<T, D, Causal>(f, stream);
    else if constexpr (D == 64)
        flash::run_mha_fwd_hdim64<T, Causal>(f, stream);
    else if constexpr (D == 128)
        flash::run_mha_fwd_hdim128<T, Causal>(f, stream);
}
namespace flash
{
template <class T, int D, bool Causal> void run_mha_fwd_(Flash_fwd_params &f, cudaStream_t stream)
{
    launch<T, D, Causal, false>(f, stream);
}
template <class T, int D, bool Causal> void run_mha_fwd_splitkv_dispatch(Flash_fwd_params &f, cudaStream_t stream)
{
    launch<T, D, Causal, true>(f, stream);
}
template <class T, int D, bool Causal> void run_mha_bwd_(Flash_bwd_params &, cudaStream_t)
{
    throw asc_refusal{"the backward pass is not built"};
}
} // namespace flash

ASC_KERNEL(flash2)
{
    kernel.run = [](asc_run &run) {
        const auto blhd = [&](at::Tensor x) { return run.problem.layout == ASC_BHLD ? x.transpose(1, 2) : x; };
        const int bc = run.head_dim() == 64 ? 256 : 128, rows = run.batch() * run.heads() * ((run.q_len() + 63) / 64);
        const int splits = flash::num_splits_heuristic(rows, 2 * FLASH_SMS, (run.kv_len() + bc - 1) / bc, 128);
        run.plan.kv_splits = splits;
        run.plan.br = splits > 1 ? 64 : 128, run.plan.bc = splits > 1 ? bc : run.head_dim() == 64 ? 128 : 64;
        at::Tensor q = blhd(run.q);
        std::optional<at::Tensor> o = blhd(run.o), slopes;
        if (run.problem.has_alibi)
            slopes = at::Tensor(run.alibi());
        run.lse = flash::mha_fwd(q, blhd(run.k), blhd(run.v), o, slopes, 0, run.scale(), run.causal(),
                                 run.window_left(), run.window_right(), run.softcap(), false, {})[1];
    };
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.biases = ASC_SUPPORTS(ALIBI);
    kernel.channel_dtype[asc_p] = ASC_ONLY_DTYPE >= 0 ? ASC_ONLY_DTYPE : ASC_F16;
    kernel.conventions.l_lanes = 4;
    kernel.conventions.alpha_first = ASC_ALPHA_NONE_FIRST;
    kernel.conventions.acc_s = kernel.conventions.acc_u = ASC_ACC_MMA;
}
