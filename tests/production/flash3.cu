// FlashAttention-3's forward by its own launch code, of which one instance is compiled: the one that the run needs.
#include "attnscope_cute.h"

#ifndef FLASH_CAUSAL
#define FLASH_CAUSAL 0
#endif
#ifndef FLASH_CLUSTER
#define FLASH_CLUSTER 1
#endif
#ifndef FLASH_FP8
#define FLASH_FP8 0
#endif
// Which of the mistakes that the test has planted is made.
#ifdef SIMT_HOST
static const int planted = getenv("FLASH_PLANTED") ? atoi(getenv("FLASH_PLANTED")) : 0;
#else
#ifndef FLASH_PLANTED
#define FLASH_PLANTED 0
#endif
constexpr int planted = FLASH_PLANTED;
#endif
#include "flash_fwd_launch_template.h"
#include <torch/types.h>

// Element: of codes O is bf16, Q and K have a scale of their head in the exponential, V in O.
template <class Element, int D, class Out = Element> static void run_flash(asc_run &run)
{
    constexpr auto tile = tile_size_fwd_sm90(D, D, FLASH_CAUSAL, false, sizeof(Element));
    const asc_problem &p = run.problem;
    run.plan.br = std::get<0>(tile), run.plan.bc = std::get<1>(tile);
    run.need(run.causal() == (FLASH_CAUSAL != 0), "this build is of another instance: causality");
    const int blocks = (run.q_len() + run.plan.br - 1) / run.plan.br;
    run.need(blocks % FLASH_CLUSTER == 0, "this build is of another instance: clusters");
    /* Before the run there are no arrays, and TMA wants an address. */
    const auto address = [](const asc_array &array) { return array.at ? array.at : reinterpret_cast<void *>(1 << 20); };
    Flash_fwd_params f = {};
    f.q_ptr = address(run.q), f.k_ptr = address(run.k), f.v_ptr = address(run.v), f.o_ptr = address(run.o),
    f.softmax_lse_ptr = run.lse;
    const asc_strides q = asc_strides_of(&p, p.heads, p.q_len), k = asc_strides_of(&p, p.kv_heads, p.kv_len);
    f.q_batch_stride = f.o_batch_stride = q.batch, f.k_batch_stride = f.v_batch_stride = k.batch;
    f.q_head_stride = f.o_head_stride = q.head, f.k_head_stride = f.v_head_stride = k.head;
    f.q_row_stride = f.o_row_stride = q.row, f.k_row_stride = f.v_row_stride = k.row, f.v_dim_stride = 1;
    f.b = run.batch(), f.h = run.heads(), f.h_k = run.kv_heads();
    f.seqlen_q = f.total_q = run.q_len(), f.seqlen_k = f.total_k = run.kv_len(), f.d = f.dv = D;
    if (FLASH_FP8) {
        run.need(p.heads == p.kv_heads && p.scale_rows <= 0, "FP8: a scale of each kv head, for Q too");
        f.q_descale_ptr = const_cast<float *>(p.q_scale), f.k_descale_ptr = const_cast<float *>(p.k_scale),
        f.v_descale_ptr = const_cast<float *>(p.v_scale);
        f.q_descale_batch_stride = f.k_descale_batch_stride = f.v_descale_batch_stride = p.heads;
        f.q_descale_head_stride = f.k_descale_head_stride = f.v_descale_head_stride = 1;
    }
    f.scale_softmax = run.scale(), f.num_splits = 1, f.arch = 90, f.num_sm = 132;
    f.is_causal = FLASH_CAUSAL, f.window_size_left = f.seqlen_k - 1,
    f.window_size_right = FLASH_CAUSAL ? 0 : f.seqlen_q - 1;
    static at::Tensor counter; /* of the tiles that a persistent kernel has begun */
    counter = torch::zeros({1}, at::TensorOptions(torch::kInt).device(torch::kCUDA));
    f.tile_count_semaphore = counter.data_ptr<int>();
    ASC_TWICE(run_flash_fwd<90, D, D, FLASH_CLUSTER, Element, Out, FLASH_CAUSAL, false, false, false, false, false,
                            false, false, false, false, asc_probed>(f, static_cast<cudaStream_t>(run.stream)));
}

ASC_KERNEL(flash3)
{
    kernel.run = [](asc_run &run) {
        if constexpr (asc_built_for(ASC_F16, 64))
            if (run.problem.dtype == ASC_F16 && run.head_dim() == 64)
                return run_flash<cutlass::half_t, 64>(run);
        if constexpr (asc_built_for(ASC_F16, 128))
            if (run.problem.dtype == ASC_F16 && run.head_dim() == 128)
                return run_flash<cutlass::half_t, 128>(run);
        if constexpr (asc_built_for(ASC_BF16, 128))
            if (run.problem.dtype == ASC_BF16 && run.head_dim() == 128)
                return run_flash<cutlass::bfloat16_t, 128>(run);
        if constexpr (FLASH_FP8 && asc_built_for(ASC_E4M3, 64))
            if (run.problem.dtype == ASC_E4M3 && run.head_dim() == 64)
                return run_flash<cutlass::float_e4m3_t, 64, cutlass::bfloat16_t>(run);
        if constexpr (FLASH_FP8 && asc_built_for(ASC_E4M3, 128))
            if (run.problem.dtype == ASC_E4M3 && run.head_dim() == 128)
                return run_flash<cutlass::float_e4m3_t, 128, cutlass::bfloat16_t>(run);
        run.need(false, "f16 with head_dim 64 and 128, bf16 with 128, e4m3 (FLASH_FP8=1) with 64 and 128");
    };
    kernel.dtypes = FLASH_FP8 ? ASC_SUPPORTS(E4M3) : ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.channel_dtype[asc_p] = ASC_ONLY_DTYPE >= 0 ? ASC_ONLY_DTYPE : ASC_F16;
    kernel.conventions.l_lanes = 4;
    kernel.conventions.alpha_first = ASC_ALPHA_ONE_FIRST;
    kernel.conventions.empty_lse_negative = 1;
    kernel.conventions.acc_s = kernel.conventions.acc_u = FLASH_FP8 ? ASC_ACC_WGMMA_E4M3 : ASC_ACC_MMA;
    if (FLASH_FP8) {
        kernel.o_dtype = ASC_BF16;
        kernel.channel_dtype[asc_p] = ASC_F32; // before it is rounded
        kernel.conventions.qk_descale = ASC_QK_FOLDED;
        kernel.conventions.v_descale = ASC_V_OUTPUT;
        kernel.conventions.p_rounded = ASC_P_E4M3;
        kernel.conventions.p_offset = 8;
    }
}
