// FlashAttention-2's forward by its own mha_fwd. FLASH names the file of the instance that is built.
#include "attnscope_cute.h"
#include "hardware_info.h"
#define get_num_sm(device) 1 // so many, and mha_fwd splits no KV
#include "flash_api.cpp"

ASC_SOURCES("src/flash_fwd_" ASC_TEXT(FLASH) "_sm80.cu");
ASC_RUN(flash2,
        run.lse = flash::mha_fwd(run.q, run.k, run.v, run.o, run.alibi(), 0, run.scale(), run.causal(),
                                 run.window_left(), run.window_right(), run.softcap(), false, {})[1],
        br = 128, bc = FLASH_BC, layouts = ASC_SUPPORTS(BLHD), biases = ASC_SUPPORTS(ALIBI),
        channel_dtype[asc_p] = FLASH_P, l_lanes = 4, alpha_first = ASC_ALPHA_NONE_FIRST, acc_s = ASC_ACC_MMA,
        acc_u = ASC_ACC_MMA);
