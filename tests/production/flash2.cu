// FlashAttention-2's forward by its own mha_fwd. FLASH names the file of the instance that is built.
#include "attnscope_cute.h"
#include "hardware_info.h"
#define get_num_sm(device) FLASH_SMS // by which mha_fwd chooses how many splits there are
#include "flash_api.cpp"

ASC_SOURCES("src/flash_fwd_" ASC_TEXT(FLASH) "_sm80.cu");

ASC_KERNEL(flash2)
{
    kernel.run = [](asc_run &run) {
        const int bc = run.head_dim() == 64 ? 256 : 128, rows = run.batch() * run.heads() * ((run.q_len() + 63) / 64);
        const int splits = flash::num_splits_heuristic(rows, 2 * FLASH_SMS, (run.kv_len() + bc - 1) / bc, 128);
        run.plan.kv_splits = splits;
        run.plan.br = splits > 1 ? 64 : 128, run.plan.bc = splits > 1 ? bc : run.head_dim() == 64 ? 128 : 64;
        std::optional<at::Tensor> o = run.o, slopes;
        if (run.problem.has_alibi)
            slopes = run.alibi();
        run.lse = flash::mha_fwd(run.q, run.k, run.v, o, slopes, 0, run.scale(), run.causal(), run.window_left(),
                                 run.window_right(), run.softcap(), false, {})[1];
    };
    kernel.layouts = ASC_SUPPORTS(BLHD);
    kernel.biases = ASC_SUPPORTS(ALIBI);
    kernel.channel_dtype[asc_p] = FLASH_P;
    kernel.l_lanes = 4, kernel.alpha_first = ASC_ALPHA_NONE_FIRST;
    kernel.acc_s = kernel.acc_u = ASC_ACC_MMA;
}
