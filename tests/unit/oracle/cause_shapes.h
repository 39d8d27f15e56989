/* The conventions that mistakes are tried under, beside the shapes of cause_outcome.h. */
#ifndef TEST_CAUSE_SHAPES_H
#define TEST_CAUSE_SHAPES_H

#include "tests/unit/oracle/cause_grade.h"

#define PLAIN .q_len = 64, .kv_len = 96, .head_dim = 32, .br = 32, .bc = 32, .p_dtype = DTYPE_F32
#define OBLONG_TAIL .q_len = 50, .kv_len = 141, .head_dim = 32, .br = 16, .bc = 64, .p_dtype = DTYPE_F32

static const struct convention_case {
    const char *name;
    struct spec spec;
} conventions[] = {
    {"causal window",
     {PLAIN, .unit = ASC_UNIT_SCALED, .causal = ASC_CAUSAL_BOTTOM_RIGHT, .has_window = 1, .window_left = 40,
      .window_right = -1}},
    {"window", {OBLONG_TAIL, .has_window = 1, .window_left = 37, .window_right = 21, .skips_masked = 1}},
    {"soft cap, raw", {OBLONG_TAIL, .softcap = 3}},
    {"soft cap, scaled", {PLAIN, .softcap = 5, .unit = ASC_UNIT_SCALED, .causal = ASC_CAUSAL_BOTTOM_RIGHT}},
    {"soft cap, log2, window",
     {OBLONG_TAIL, .softcap = 4, .unit = ASC_UNIT_LOG2, .causal = ASC_CAUSAL_BOTTOM_RIGHT, .has_window = 1,
      .window_left = 60, .window_right = -1}},
    {"lanes", {PLAIN, .unit = ASC_UNIT_SCALED, .lanes = 4}},
    {"lanes, P in f16",
     {.q_len = 96,
      .kv_len = 90,
      .head_dim = 32,
      .br = 16,
      .bc = 32,
      .p_dtype = DTYPE_F16,
      .lanes = 8,
      .unit = ASC_UNIT_SCALED,
      .causal = ASC_CAUSAL_TOP_LEFT}},
    {"lanes, tail", {OBLONG_TAIL, .unit = ASC_UNIT_LOG2, .lanes = 16, .causal = ASC_CAUSAL_BOTTOM_RIGHT}},
    {"late U", {PLAIN, .unit = ASC_UNIT_SCALED, .late_u = 1}},
    {"late U, causal",
     {.q_len = 96,
      .kv_len = 110,
      .head_dim = 16,
      .br = 32,
      .bc = 16,
      .p_dtype = DTYPE_F32,
      .late_u = 1,
      .causal = ASC_CAUSAL_TOP_LEFT,
      .skips_masked = 1}},
    {"P rounded to f16", {PLAIN, .unit = ASC_UNIT_SCALED, .p_rounded = ASC_P_F16}},
    {"P rounded to e4m3, summed so", {OBLONG_TAIL, .p_rounded = ASC_P_E4M3, .sums_rounded = 1}},
    {"tensor cores",
     {.q_len = 64,
      .kv_len = 96,
      .head_dim = 32,
      .br = 32,
      .bc = 32,
      .p_dtype = DTYPE_F16,
      .unit = ASC_UNIT_SCALED,
      .tensor_cores = 1}},
    {"tensor cores, P rounded",
     {.q_len = 64,
      .kv_len = 110,
      .head_dim = 48,
      .br = 32,
      .bc = 32,
      .p_dtype = DTYPE_F32,
      .tensor_cores = 1,
      .p_rounded = ASC_P_F16,
      .causal = ASC_CAUSAL_BOTTOM_RIGHT}},
    {"scale folded into Q", {OBLONG_TAIL, .unit = ASC_UNIT_SCALED, .folds_scale = 1, .lse_base2 = 1, .alpha_one = 1}},
    {"m lags", {PLAIN, .m_lag = 1}},
    {"masked value", {PLAIN, .unit = ASC_UNIT_SCALED, .masked_value = -1e4f, .causal = ASC_CAUSAL_TOP_LEFT}},
    {"softmax fed", {PLAIN, .unit = ASC_UNIT_SCALED, .isolated = 1 + asc_s}},
    {"P.V fed, late U", {OBLONG_TAIL, .causal = ASC_CAUSAL_BOTTOM_RIGHT, .late_u = 1, .isolated = 1 + asc_p}},
    {"all fed", {PLAIN, .unit = ASC_UNIT_LOG2, .lanes = 4, .isolated = 1 + asc_u}},
};
enum { CONVENTIONS = sizeof conventions / sizeof conventions[0] };

#undef PLAIN
#undef OBLONG_TAIL

#endif
