#include "tests/unit/lib/small_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const float small_sink[4] = {1, 2, 3, 4}, small_alibi[4] = {0.5f, 0.25f, 0.125f, 0.0625f};
const float small_bias[4 * 10 * 13] = {[0] = 5, [4 * 10 * 13 - 1] = -6};

const struct asc_problem small = {.batch = 1,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .q_len = 10,
                                  .kv_len = 13,
                                  .head_dim = 6,
                                  .head_dim_v = 6,
                                  .causal = ASC_CAUSAL_BOTTOM_RIGHT,
                                  .layout = ASC_BLHD,
                                  .dtype = DTYPE_F16,
                                  .window_left = 5,
                                  .window_right = -1,
                                  .scale = 0.1f,
                                  .softcap = 2.5f,
                                  .has_sink = 1,
                                  .has_alibi = 1,
                                  .bias_kind = ASC_BIAS_PER_HEAD,
                                  .sink = small_sink,
                                  .alibi = small_alibi,
                                  .bias = small_bias};
const struct asc_plan small_plan = {.br = 4, .bc = 8, .threads = 64, .kv_splits = 3};
const struct asc_conventions small_conventions = {.s_unit = ASC_UNIT_SCALED,
                                                  .m_unit = ASC_UNIT_LOG2,
                                                  .alpha_first = 1,
                                                  .lse_base2 = 1,
                                                  .empty_lse_negative = 1,
                                                  .p_offset = -3,
                                                  .m_lag = 7.5f};
const int32_t small_slots[2][3] = {{0, 3, 2}, {0, 1, 0}};

struct layout_types small_types(void)
{
    struct layout_types types = {.o = DTYPE_BF16, .writers = 1};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    types.channel[asc_q] = types.channel[asc_k] = DTYPE_F16;
    types.channel[asc_v] = DTYPE_E4M3;
    types.channel[asc_u] = DTYPE_F64;
    types.channel[asc_alpha] = -1;
    return types;
}

struct trace *make_small(void)
{
    uint16_t q[10 * 4 * 6], k[13 * 2 * 6], v[13 * 2 * 6];
    for (int i = 0; i < 240; i++)
        q[i] = (uint16_t)i;
    for (int i = 0; i < 156; i++) {
        k[i] = (uint16_t)(1000 + i);
        v[i] = (uint16_t)(2000 + i);
    }
    const struct layout_types types = small_types();
    struct trace *t = NULL;
    struct err err = {0};
    if (trace_create(&small, &small_plan, &small_conventions, &types, small_slots, 2, q, k, v, &t, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    return t;
}
