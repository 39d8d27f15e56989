// FlashAttention-2's forward with KV split.
#include "attnscope_cute.h"
#include "hardware_info.h"
constexpr int SMS = 6;
#define get_num_sm(device) SMS // by which mha_fwd chooses how many splits there are
#include "flash_api.cpp"

ASC_SOURCES("src/flash_fwd_split_" ASC_TEXT(FLASH) "_sm80.cu");

ASC_KERNEL(flash2_split)
{
    kernel.run = [](asc_run &run) {
        const int bc = run.head_dim() == 64 ? 256 : 128, rows = run.batch() * run.heads() * ((run.q_len() + 63) / 64);
        run.plan.br = 64, run.plan.bc = bc;
        run.plan.kv_splits = flash::num_splits_heuristic(rows, 2 * SMS, (run.kv_len() + bc - 1) / bc, 128);
        run.need(run.plan.kv_splits > 1, "it is not split");
        run.lse = flash::mha_fwd(run.q, run.k, run.v, run.o, run.alibi(), 0, run.scale(), run.causal(),
                                 run.window_left(), run.window_right(), run.softcap(), false, {})[1];
    };
    kernel.layouts = ASC_SUPPORTS(BLHD);
    kernel.channel_dtype[asc_p] = FLASH_P;
    kernel.l_lanes = 4, kernel.alpha_first = ASC_ALPHA_NONE_FIRST;
    kernel.acc_s = kernel.acc_u = ASC_ACC_MMA;
}
