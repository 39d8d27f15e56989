/* What must hold of m, l, alpha and U after every step: kept by every right kernel whatever its m does, broken at the
   step of a mistake, each at the edge of its bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/bound.h"
#include "engine/oracle/nonfinite/invariants.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static const struct spec base = {.q_len = 32,
                                 .kv_len = 150,
                                 .head_dim = 32,
                                 .br = 32,
                                 .bc = 32,
                                 .p_dtype = DTYPE_F32,
                                 .conventions = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED}};

enum { EVERY = (1 << INVARIANT_COUNT) - 1 };

static struct row_states states_of(const struct kernel_run *run)
{
    struct row_states states;
    assert_int_equal(row_states_make(&run->c, scratch, &states), 0);
    return states;
}

static unsigned broken_anywhere(const struct row_states *s)
{
    unsigned set = 0;
    for (int i = 0; i < INVARIANT_COUNT; i++)
        set |= s->broken[i] ? 1u << i : 0;
    return set;
}

static const struct row_step *at(const struct row_states *s, int step, int row)
{
    return &s->at[step * s->rows + row];
}

static void right_kernels_keep_them(void **state)
{
    (void)state;
    static const struct asc_conventions kernels[] = {
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED},
        {.s_unit = ASC_UNIT_RAW, .m_unit = ASC_UNIT_RAW, .p_rounded = ASC_P_F16, .s_masked = ASC_MASKED_UNTOUCHED},
        {.s_unit = ASC_UNIT_LOG2, .m_unit = ASC_UNIT_LOG2, .q_fold = ASC_FOLD_LOG2, .u_phase = ASC_U_RESCALED},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_rounded = ASC_P_E4M3, .p_offset = 8, .l_lanes = 4},
        {.m_policy = ASC_M_LAGGING, .m_lag = 8, .m_empty = ASC_EMPTY_FINITE, .m_start = -1e30F},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .l_sink = ASC_SINK_START, .alpha_first = ASC_ALPHA_ONE},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .m_policy = ASC_M_FIXED},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_max = ASC_P_MAX_TILE, .u_norm = ASC_U_NORM_TILE},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_RAW, .u_norm = ASC_U_NORM_TILE, .p_rounded = ASC_P_F16},
        {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED, .p_max = ASC_P_MAX_TILE, .u_phase = ASC_U_RESCALED},
    };
    enum { KERNELS = sizeof kernels / sizeof kernels[0] };
    static const enum fill fills[] = {FILL_NORMAL, FILL_OUTLIERS, FILL_LARGE, FILL_ZEROS, FILL_COMMON_MEAN};
    unsigned judged = 0;
    double sum_use = 0, output_use = 0;
    for (int i = 0; i < 420; i++) {
        struct spec s = base;
        s.q_len = 30 + i % 7;
        s.kv_len = 20 + 13 * (i % 5);
        s.br = 16;
        s.bc = 16;
        s.q_tile = i % 2;
        s.causal = (enum asc_causal)(i % 3);
        s.fill = fills[i % 5];
        s.conventions = kernels[i % KERNELS];
        if (s.conventions.m_policy == ASC_M_FIXED)
            s.fill = FILL_NORMAL;
        s.has_sink = s.conventions.l_sink != ASC_SINK_NONE;
        s.kv_splits = i % 4 == 3 ? 2 : 0;
        s.kv_deal = i % 8 == 7 ? ASC_DEAL_ROUND_ROBIN : ASC_DEAL_RANGES;
        s.visits_masked = i % 4 < 2;
        s.unrecorded = i % 11 == 0 ? 1u << asc_m : i % 13 == 0 ? 1u << asc_alpha : i % 17 == 0 ? 1u << asc_l : 0;
        s.seed = (unsigned)i;
        struct kernel_run *run = kernel_run(&s);
        struct row_states states = states_of(run);
        if (broken_anywhere(&states))
            fail_msg("run %d breaks %x at step %d, row %d", i, broken_anywhere(&states), states.first_step,
                     states.first_row);
        judged |= states.judged;
        for (int k = 0; k < states.n_steps * states.rows; k++) {
            sum_use = fmax(sum_use, states.at[k].sum_ratio);
            output_use = fmax(output_use, states.at[k].output_ratio);
        }
        row_states_free(&states);
        kernel_run_free(run);
    }
    print_message("# largest error/bound: sum %.3f, output %.3f\n", sum_use, output_use);
    assert_int_equal(judged, EVERY);
    assert_true(sum_use > 0.02 && sum_use <= 1 && output_use > 0.02 && output_use <= 1);
}

/* P on the new maximum, m left at the old one: the step where m should first have moved. */
static void own_frame_left(void **state)
{
    (void)state;
    struct spec s = base;
    s.mistake = M_LEFT_BEHIND;
    s.conventions.m_policy = ASC_M_LAGGING;
    s.conventions.m_lag = 8;
    s.fill = FILL_LARGE;
    struct kernel_run *run = kernel_run(&s);
    struct row_states states = states_of(run);
    /* m itself may be where it is; the sum it goes with may not. */
    assert_int_equal(states.broken[INVARIANT_M_RISES] + states.broken[INVARIANT_ALPHA], 0);
    assert_true(states.broken[INVARIANT_SUM] > 0);
    int first = -1;
    for (int step = 0; step < states.n_steps && first < 0; step++) {
        for (int r = 0; r < states.rows && first < 0; r++) {
            const float *score = (const float *)run_array(run, asc_s, step) + (ptrdiff_t)r * s.bc;
            float top = -INFINITY;
            for (int c = 0; c < s.bc && step * s.bc + c < s.kv_len; c++)
                top = fmaxf(top, score[c]);
            if (step > 0 && top > ((const float *)run_array(run, asc_m, step))[r])
                first = step;
        }
    }
    assert_int_equal(states.first_step, first);
    row_states_free(&states);
    kernel_run_free(run);
}

static void mistakes_break_them_at_their_step(void **state)
{
    (void)state;
    static const struct {
        enum mistake mistake;
        enum invariant invariant;
        int step;
    } cases[] = {{ALPHA_INVERTED, INVARIANT_ALPHA, 1},
                 {L_ALPHA_FORGOTTEN, INVARIANT_SUM, 1},
                 {U_ALPHA_FORGOTTEN, INVARIANT_OUTPUT, 1},
                 {U_KEY_MISSING, INVARIANT_OUTPUT, 0},
                 {P_BASE_2, INVARIANT_SUM, 0},
                 {S_SCALED_TWICE, INVARIANT_SUM, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int late = 0; late < 2; late++) {
            struct spec s = base;
            s.mistake = cases[i].mistake;
            s.conventions.u_phase = late ? ASC_U_RESCALED : ASC_U_AFTER_PV;
            struct kernel_run *run = kernel_run(&s);
            struct row_states states = states_of(run);
            /* a U recorded behind the next alpha shows that this was forgotten a step before */
            const int step = cases[i].step - (late && cases[i].mistake == U_ALPHA_FORGOTTEN);
            if (!states.broken[cases[i].invariant] || states.first_step != step)
                fail_msg("case %zu: broken %x, first at step %d", i, broken_anywhere(&states), states.first_step);
            row_states_free(&states);
            kernel_run_free(run);
        }
    }
    struct spec s = base; /* alpha larger than 1 wherever m rises */
    s.mistake = ALPHA_INVERTED;
    struct kernel_run *run = kernel_run(&s);
    struct row_states states = states_of(run);
    assert_true(states.broken[INVARIANT_ALPHA_ONE] > 0);
    row_states_free(&states);
    kernel_run_free(run);
}

/* One value of row 3 at step 2 becomes another; whether the invariant is broken there. */
static int breaks(enum asc_channel ch, int col, float value, enum invariant i)
{
    struct kernel_run *run = kernel_run(&base);
    float *x = run_array(run, ch, 2);
    x[3 * (ch == asc_u ? base.head_dim : 1) + col] = value;
    struct row_states states = states_of(run);
    const int broken = (at(&states, 2, 3)->broken & 1u << i) != 0;
    row_states_free(&states);
    kernel_run_free(run);
    return broken;
}

static void edges(void **state)
{
    (void)state;
    struct kernel_run *run = kernel_run(&base);
    const float m = ((float *)run_array(run, asc_m, 2))[3], before = ((float *)run_array(run, asc_m, 1))[3];
    const float l = ((float *)run_array(run, asc_l, 2))[3], u = ((float *)run_array(run, asc_u, 2))[3 * 32 + 7];
    kernel_run_free(run);
    /* alpha: the declared exponential's bound, and 2 u |m| */
    const double x = (double)before - (double)m, exact = exp(x), bound = exact * bound_exp(x, fabs((double)m));
    assert_false(breaks(asc_alpha, 0, (float)(exact + 0.9 * bound), INVARIANT_ALPHA));
    assert_true(breaks(asc_alpha, 0, (float)(exact + 1.3 * bound), INVARIANT_ALPHA));
    assert_false(breaks(asc_alpha, 0, (float)(exact - 0.9 * bound), INVARIANT_ALPHA));
    assert_true(breaks(asc_alpha, 0, (float)(exact - 1.3 * bound), INVARIANT_ALPHA));
    /* m: no less than before by a single bit */
    assert_false(breaks(asc_m, 0, before, INVARIANT_M_RISES));
    assert_true(breaks(asc_m, 0, nextafterf(before, -INFINITY), INVARIANT_M_RISES));
    assert_true(breaks(asc_m, 0, NAN, INVARIANT_M_RISES));
    /* alpha: exponential and rounding at 0, and 2 u |m| */
    const double eps = bound_exp(0, fabs((double)m));
    assert_false(breaks(asc_alpha, 0, (float)(1 + 0.9 * eps), INVARIANT_ALPHA_ONE));
    assert_true(breaks(asc_alpha, 0, (float)(1 + 1.3 * eps), INVARIANT_ALPHA_ONE));
    assert_true(breaks(asc_alpha, 0, NAN, INVARIANT_ALPHA_ONE));
    /* l: above 0, however little */
    assert_false(breaks(asc_l, 0, FLT_TRUE_MIN, INVARIANT_L_POSITIVE));
    assert_true(breaks(asc_l, 0, 0, INVARIANT_L_POSITIVE));
    assert_true(breaks(asc_l, 0, NAN, INVARIANT_L_POSITIVE));
    /* the sum and the output: broken exactly where error/bound is above 1 */
    for (int i = 0; i < INVARIANT_COUNT; i++) {
        const enum invariant which = (enum invariant)i;
        const enum asc_channel ch = which == INVARIANT_SUM ? asc_l : asc_u;
        if (which != INVARIANT_SUM && which != INVARIANT_OUTPUT)
            continue;
        const float right = ch == asc_l ? l : u;
        int kept = 0, lost = 0;
        for (int k = -40; k <= 40; k++) {
            run = kernel_run(&base);
            float *x = run_array(run, ch, 2);
            x[ch == asc_l ? 3 : 3 * 32 + 7] = right + right * 0x1p-21F * (float)k * (ch == asc_l ? 1.0F : 64.0F);
            struct row_states states = states_of(run);
            const struct row_step *there = at(&states, 2, 3);
            const double ratio = ch == asc_l ? there->sum_ratio : there->output_ratio;
            assert_int_equal((there->broken & 1u << which) != 0, ratio > 1);
            kept += ratio <= 1 && ratio > 0.5;
            lost += ratio > 1 && ratio < 2;
            row_states_free(&states);
            kernel_run_free(run);
        }
        assert_true(kept > 0 && lost > 0); /* the edge lies between them */
    }
    assert_true(breaks(asc_u, 7, NAN, INVARIANT_OUTPUT));
    assert_true(breaks(asc_u, 7, INFINITY, INVARIANT_OUTPUT));
}

/* A row that has seen no key has nothing to be held to, and still nothing of it may be NaN; the neighbors hold. */
static void nan_never_passes(void **state)
{
    (void)state;
    struct spec s = base;
    s.kv_len = 20; /* of 32 queries the first 12 see no key */
    s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
    static const struct {
        enum asc_channel ch;
        enum invariant breaks;
    } cases[] = {{asc_m, INVARIANT_M_RISES},
                 {asc_alpha, INVARIANT_ALPHA},
                 {asc_l, INVARIANT_L_POSITIVE},
                 {asc_u, INVARIANT_OUTPUT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int nan = 0; nan < 2; nan++) {
            struct kernel_run *run = kernel_run(&s);
            float *values = run_array(run, cases[i].ch, 0);
            if (nan)
                values[cases[i].ch == asc_u ? 3 * 32 + 7 : 3] = NAN;
            struct row_states states = states_of(run);
            assert_int_equal((at(&states, 0, 3)->broken & 1u << cases[i].breaks) != 0, nan);
            assert_int_equal(states.broken[cases[i].breaks], nan);
            row_states_free(&states);
            kernel_run_free(run);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_kernels_keep_them),
        cmocka_unit_test(own_frame_left),
        cmocka_unit_test(mistakes_break_them_at_their_step),
        cmocka_unit_test(edges),
        cmocka_unit_test(nan_never_passes),
    };
    return cmocka_run_group_tests_name("oracle: invariants of the softmax state", tests, scratch_begin, scratch_end);
}
