// FlashAttention-2's forward by its own launch code, of which one instance is compiled: the one that the defines name.
#include "attnscope_cute.h"
#include "static_switch.h"

#ifndef FLASH_CAUSAL
#define FLASH_CAUSAL 0
#endif
#ifndef FLASH_SPLITS
#define FLASH_SPLITS 0
#endif
#ifndef FLASH_IsEvenMNConst
#define FLASH_IsEvenMNConst 0
#endif
#ifndef FLASH_Is_local
#define FLASH_Is_local 0
#endif
#ifndef FLASH_Has_alibi
#define FLASH_Has_alibi 0
#endif
#ifndef FLASH_Is_softcap
#define FLASH_Is_softcap 0
#endif
#define FLASH_IsEvenKConst 1
#define FLASH_Is_dropout 0
#define FLASH_ReturnSoftmaxConst 0
#define FLASH_Split (FLASH_SPLITS > 1)
#define FLASH_Append_KV 0
#undef BOOL_SWITCH
#define BOOL_SWITCH(condition, name, ...)                                                                              \
    [&] {                                                                                                              \
        constexpr static bool name = FLASH_##name;                                                                     \
        if ((condition) != name)                                                                                       \
            throw asc_refusal{"this build is of another instance: " #name};                                            \
        return __VA_ARGS__();                                                                                          \
    }()

// Which of the mistakes that the test has planted is made; on the CPU one build has them all.
#ifndef FLASH_PLANTED
#define FLASH_PLANTED 0
#endif
#ifdef SIMT_HOST
static const int planted = getenv("FLASH_PLANTED") ? atoi(getenv("FLASH_PLANTED")) : FLASH_PLANTED;
#else
constexpr int planted = FLASH_PLANTED;
#endif
#include "flash_fwd_launch_template.h"

template <class Element, int D> static void run_flash(asc_run &run)
{
    const asc_problem &p = run.problem;
    const bool causal = run.causal(), local = run.window_left() >= 0 || run.window_right() >= 0;
    flash::Flash_fwd_params f = {};
    f.q_ptr = run.q, f.k_ptr = run.k, f.v_ptr = run.v, f.o_ptr = run.o, f.softmax_lse_ptr = run.lse;
    const asc_strides q = asc_strides_of(&p, p.heads, p.q_len), k = asc_strides_of(&p, p.kv_heads, p.kv_len);
    f.q_batch_stride = f.o_batch_stride = q.batch, f.k_batch_stride = f.v_batch_stride = k.batch;
    f.q_head_stride = f.o_head_stride = q.head, f.k_head_stride = f.v_head_stride = k.head;
    f.q_row_stride = f.o_row_stride = q.row, f.k_row_stride = f.v_row_stride = k.row;
    f.b = run.batch(), f.h = run.heads(), f.h_k = run.kv_heads(), f.h_h_k_ratio = f.h / f.h_k;
    f.seqlen_q = run.q_len(), f.seqlen_k = run.kv_len(), f.d = f.d_rounded = D;
    f.seqlen_q_rounded = (f.seqlen_q + 127) / 128 * 128, f.seqlen_k_rounded = (f.seqlen_k + 127) / 128 * 128;
    f.softcap = run.softcap() > 0 ? run.scale() / run.softcap() : 0;
    f.scale_softmax = run.softcap() > 0 ? run.softcap() : run.scale();
    f.scale_softmax_log2 = f.scale_softmax * M_LOG2E;
    f.p_dropout = f.rp_dropout = 1, f.is_bf16 = p.dtype == ASC_BF16;
    f.is_causal = causal && run.window_left() < 0;
    f.window_size_left = run.window_left(), f.window_size_right = causal ? 0 : run.window_right();
    if (local || causal) {
        f.window_size_left = f.window_size_left < 0 ? f.seqlen_k : f.window_size_left;
        f.window_size_right = f.window_size_right < 0 ? f.seqlen_k : f.window_size_right;
    }
    static float none; /* before the run there are no arrays */
    f.alibi_slopes_ptr = p.has_alibi ? p.alibi ? const_cast<float *>(p.alibi) : &none : nullptr;
    run.need(f.is_causal == (FLASH_CAUSAL != 0), "this build is of another instance: causality");
    const auto stream = static_cast<cudaStream_t>(run.stream);
    if constexpr (FLASH_SPLITS) {
        run.plan.br = 64, run.plan.bc = D == 64 ? 256 : 128;
        run.plan.kv_splits = f.num_splits = FLASH_SPLITS;
        const size_t rows = size_t(FLASH_SPLITS) * f.b * f.h * f.seqlen_q;
        static at::Tensor sums, lse; /* the launch reads them later */
        const auto floats = at::TensorOptions(torch::kFloat).device(torch::kCUDA);
        sums = torch::empty({int64_t(rows * D)}, floats), lse = torch::empty({int64_t(rows)}, floats);
        f.oaccum_ptr = sums.data_ptr(), f.softmax_lseaccum_ptr = lse.data_ptr();
        flash::run_mha_fwd_splitkv_dispatch<Element, D, FLASH_CAUSAL>(f, stream);
    } else if constexpr (D == 64) {
        run.plan.br = run.plan.bc = 128;
        flash::run_mha_fwd_hdim64<Element, FLASH_CAUSAL>(f, stream);
    } else {
        run.plan.br = 128, run.plan.bc = 64;
        flash::run_mha_fwd_hdim128<Element, FLASH_CAUSAL>(f, stream);
    }
}

ASC_KERNEL(flash2)
{
    kernel.run = [](asc_run &run) {
        if constexpr (asc_built_for(ASC_F16, 64))
            if (run.problem.dtype == ASC_F16 && run.head_dim() == 64)
                return run_flash<cutlass::half_t, 64>(run);
        if constexpr (asc_built_for(ASC_F16, 128))
            if (run.problem.dtype == ASC_F16 && run.head_dim() == 128)
                return run_flash<cutlass::half_t, 128>(run);
        if constexpr (asc_built_for(ASC_BF16, 64))
            if (run.problem.dtype == ASC_BF16 && run.head_dim() == 64)
                return run_flash<cutlass::bfloat16_t, 64>(run);
        if constexpr (asc_built_for(ASC_BF16, 128))
            if (run.problem.dtype == ASC_BF16 && run.head_dim() == 128)
                return run_flash<cutlass::bfloat16_t, 128>(run);
        run.need(false, "f16 and bf16, head_dim 64 and 128");
    };
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.biases = ASC_SUPPORTS(ALIBI);
    kernel.channel_dtype[asc_p] = ASC_ONLY_DTYPE >= 0 ? ASC_ONLY_DTYPE : ASC_F16;
    kernel.conventions.l_lanes = 4;
    kernel.conventions.alpha_first = ASC_ALPHA_NONE_FIRST;
    kernel.conventions.acc_s = kernel.conventions.acc_u = ASC_ACC_MMA;
}
