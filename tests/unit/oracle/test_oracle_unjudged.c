/* What nothing is known about is neither right nor wrong; and what a correct kernel may do at the ends of f32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/bound.h"
#include "engine/oracle/element.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>
#include <limits.h>

#define SET(channel) (1u << asc_##channel)
#define ALL ((1u << ASC_CHANNELS) - 1)

static const struct spec base = {.q_len = 64,
                                 .kv_len = 150,
                                 .head_dim = 64,
                                 .br = 64,
                                 .bc = 64,
                                 .p_dtype = DTYPE_F32,
                                 .conventions = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED}};

static void judge(struct kernel_run *run)
{
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
}

static struct kernel_run *judged(const struct spec *s)
{
    struct kernel_run *run = kernel_run(s);
    judge(run);
    return run;
}

/* A trace of o alone has no visits in it. */
static void forget_visits(struct kernel_run *run)
{
    run->c.n_visited = 0;
}

static uint64_t elements_of(const struct kernel_run *run, enum asc_channel ch, int global, uint64_t *unjudged)
{
    uint64_t n = 0;
    *unjudged = 0;
    for (int kv = 0; kv < run->c.kv_tiles; kv++) {
        const struct tile_verdicts *v = &run->out[kv * ASC_CHANNELS + (int)ch];
        const struct verdict *one = global ? &v->global : &v->local;
        n += one->count[CLASS_OK] + verdict_bad(one);
        *unjudged += one->unjudged;
    }
    return n;
}

static void output_alone_is_judged(void **state)
{
    (void)state;
    const unsigned recorded[] = {SET(o), SET(lse), SET(q) | SET(o), SET(o) | SET(lse)};
    const int policies[] = {ASC_M_RUNNING, ASC_M_LAGGING, ASC_M_FIXED};
    for (int i = 0; i < 4; i++) {
        for (int policy = 0; policy < 3; policy++) {
            struct spec s = base;
            s.causal = policy == 1 ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_NONE;
            s.unrecorded = ALL & ~recorded[i];
            s.conventions.m_policy = policies[policy];
            s.conventions.m_lag = 8;
            struct kernel_run *run = kernel_run(&s);
            forget_visits(run);
            judge(run);
            assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
            for (int ch = 0; ch < ASC_CHANNELS; ch++) {
                uint64_t unjudged = 0;
                if (recorded[i] & 1u << ch)
                    assert_true(elements_of(run, (enum asc_channel)ch, 0, &unjudged) > 0 && unjudged == 0);
            }
            kernel_run_free(run);
        }
    }
}

static void output_alone_is_found_wrong(void **state)
{
    (void)state;
    const enum mistake mistakes[] = {S_SCALED_TWICE, O_UNNORMALIZED, U_KEY_MISSING, L_ALPHA_FORGOTTEN};
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        for (int with_q = 0; with_q < 2; with_q++) {
            struct spec s = base;
            s.mistake = mistakes[i];
            s.unrecorded = ALL & ~(SET(o) | (with_q ? SET(q) : 0));
            struct kernel_run *run = kernel_run(&s);
            forget_visits(run);
            judge(run);
            assert_int_equal(bad_stages(run, 0), SET(o));
            assert_int_equal(bad_stages(run, 1), SET(o));
            kernel_run_free(run);
        }
    }
    /* A Q that was read wrongly is Q's fault: O follows from it. */
    struct spec s = base;
    s.unrecorded = ALL & ~(SET(q) | SET(o));
    struct kernel_run *run = kernel_run(&s);
    uint16_t *q = run_array(run, asc_q, 0);
    q[5] = q[6];
    forget_visits(run);
    judge(run);
    assert_true(bad_stages(run, 0) & SET(q));
    kernel_run_free(run);
}

static void output_of_nan_fails(void **state)
{
    (void)state;
    struct spec s = base;
    s.unrecorded = ALL & ~SET(o);
    struct kernel_run *run = kernel_run(&s);
    uint16_t *o = run_array(run, asc_o, 0);
    for (int i = 0; i < 64 * 64; i++)
        o[i] = 0x7E00;
    forget_visits(run);
    judge(run);
    assert_int_equal(run->out[asc_o].local.count[CLASS_NAN], 64 * 64);
    assert_int_equal(run->out[asc_o].global.count[CLASS_NAN], 64 * 64);
    kernel_run_free(run);
}

/* However uncertain the scores, o is a mean of V. */
static void output_beyond_v_fails(void **state)
{
    (void)state;
    struct spec s = base;
    s.unrecorded = ALL & ~SET(o);
    s.scale = 1e6f;
    s.o_dtype = DTYPE_F32;
    struct kernel_run *run = kernel_run(&s);
    float *o = run_array(run, asc_o, 0);
    forget_visits(run);
    judge(run);
    assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
    o[7] = 12345.0f;
    judge(run);
    assert_int_equal(run->out[asc_o].local.count[CLASS_OFF], 1);
    assert_int_equal(run->out[asc_o].global.count[CLASS_OFF], 1);
    kernel_run_free(run);
}

/* Elements without a statement, and bounds that no f32 can exceed, are in no class. */
static void no_statement_is_no_class(void **state)
{
    (void)state;
    const float got[] = {1, 2, NAN, INFINITY, 5, -INFINITY};
    const double want[] = {1, NAN, 1, 1, 1, 1}, bound[] = {0, 0, 0, INFINITY, (double)NAN, 1e30};
    const struct matrix captured = {got, DTYPE_F32, 6, 1, 6};
    const double values[] = {1, 2, (double)NAN, INFINITY, 5, -INFINITY};
    uint8_t classes[6];
    struct comparison c = {&captured, values, want, bound, 1, 6, 1, 0, NULL};
    struct verdict v = {0};
    element_judge(&c, &v, classes);
    const uint8_t expected[] = {CLASS_OK, STATUS_UNJUDGED, CLASS_NAN, STATUS_UNJUDGED, STATUS_UNJUDGED, CLASS_INF};
    assert_memory_equal(classes, expected, sizeof classes);
    assert_int_equal(v.unjudged, 3);
    assert_int_equal(v.count[CLASS_OK] + verdict_bad(&v), 3);
    assert_int_equal(v.judged, 1);
    c.cols = 1;
    c.got = values + 1;
    c.want = want + 1;
    v = (struct verdict){0};
    element_judge(&c, &v, classes);
    assert_int_equal(v.judged, 0);
    assert_false(verdict_ok(&v));
}

/* The largest f32 and the first number that rounds to infinity: want within its bound of that. */
static void overflow_is_right_where_the_number_is_too_large(void **state)
{
    (void)state;
    const struct {
        enum dtype t;
        double want, bound, got;
        enum tile_status class;
    } cases[] = {
        {DTYPE_F32, exp(100), 1e37, INFINITY, CLASS_OK},
        {DTYPE_F32, exp(100), 1e37, -INFINITY, CLASS_INF},
        {DTYPE_F32, -exp(100), 1e37, -INFINITY, CLASS_OK},
        {DTYPE_F32, exp(100), 1e37, 5, CLASS_OFF},
        {DTYPE_F32, 0x1p127, 0x1p120, INFINITY, CLASS_INF},
        {DTYPE_F32, 0x1.fffffep127, 0x1p103, INFINITY, CLASS_OK}, /* half a step above the largest f32 */
        {DTYPE_F32, 0x1.fffffep127, 0x1p102, INFINITY, CLASS_INF},
        {DTYPE_F16, 65504, 16, INFINITY, CLASS_OK},
        {DTYPE_F16, 65504, 15, INFINITY, CLASS_INF},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t room = 0;
        dtype_store(cases[i].t, &room, 0, cases[i].got);
        const struct matrix captured = {&room, cases[i].t, 1, 1, 1};
        const struct comparison c = {&captured, &cases[i].got, &cases[i].want, &cases[i].bound, 1, 1, 1, 0, NULL};
        struct verdict v = {0};
        element_judge(&c, &v, NULL);
        if (v.count[cases[i].class] != 1)
            fail_msg("case %zu is not in class %d", i, (int)cases[i].class);
    }
}

static void overflow_is_the_fault_of_m(void **state)
{
    (void)state;
    for (int fill = FILL_NORMAL; fill <= FILL_LARGE; fill++) {
        struct spec s = base;
        s.fill = (enum fill)fill;
        s.mistake = M_TOO_LOW;
        struct kernel_run *run = judged(&s);
        assert_int_equal(bad_stages(run, 0), SET(m));
        kernel_run_free(run);
    }
}

/* Scores so large that their rounding alone is worth many powers of e. */
static void large_scores_are_no_fault(void **state)
{
    (void)state;
    const float scales[] = {100, 1e4f, 1e6f, 1e10f, 1e20f, 1e30f};
    for (int i = 0; i < 6; i++) {
        for (int unit = ASC_UNIT_RAW; unit <= ASC_UNIT_LOG2; unit++) {
            for (int hidden = 0; hidden < 3; hidden++) {
                struct spec s = base;
                s.scale = scales[i];
                s.conventions.s_unit = s.conventions.m_unit = unit;
                s.unrecorded = hidden == 0 ? 0 : hidden == 1 ? SET(m) : SET(s) | SET(m);
                s.causal = ASC_CAUSAL_BOTTOM_RIGHT;
                struct kernel_run *run = judged(&s);
                if (bad_stages(run, 0) | bad_stages(run, 1))
                    fail_msg("scale %g, unit %d, hidden %d: local %x, global %x", (double)scales[i], unit, hidden,
                             bad_stages(run, 0), bad_stages(run, 1));
                kernel_run_free(run);
            }
        }
    }
}

/* exp2(fma(s, log2 e, -m log2 e)) errs by u |m|: as right as subtracting first. A step more than that is wrong. */
static void folded_exponential_is_right(void **state)
{
    (void)state;
    for (int folded = 0; folded < 2; folded++) {
        struct spec s = base;
        s.fill = FILL_LARGE;
        s.folded = folded;
        struct kernel_run *run = judged(&s);
        assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
        kernel_run_free(run);
    }
    struct spec s = base;
    s.folded = 1;
    s.exp_error = 0;
    struct kernel_run *run = judged(&s);
    assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
    float *p = run_array(run, asc_p, 1);
    p[3] *= 1 + 0x1p-16f;
    judge(run);
    assert_int_equal(run->out[ASC_CHANNELS + asc_p].local.count[CLASS_OFF], 1);
    kernel_run_free(run);
}

/* Weights of keys that do not exist are P's fault: l and U only add up what is there. */
static void padding_of_p(void **state)
{
    (void)state;
    for (int hidden = 0; hidden < 2; hidden++) {
        for (int narrow = 0; narrow < 2; narrow++) {
            struct spec s = base;
            s.mistake = P_TAIL_COUNTED;
            s.p_dtype = narrow ? DTYPE_E4M3 : DTYPE_F32;
            s.unrecorded = hidden ? SET(s) : 0;
            struct kernel_run *run = judged(&s);
            assert_int_equal(bad_stages(run, 0), SET(p));
            const struct verdict *v = &run->out[2 * ASC_CHANNELS + asc_p].local;
            assert_int_equal(v->count[CLASS_EXTRA], 64 * (3 * 64 - 150));
            assert_int_equal(v->worst_col, 150 - 2 * 64);
            kernel_run_free(run);
        }
    }
    /* Scores that were not masked are S's fault: P follows from them. */
    struct spec s = base;
    s.mistake = S_TAIL_COUNTED;
    struct kernel_run *run = judged(&s);
    assert_int_equal(bad_stages(run, 0), SET(s));
    const struct tile_verdicts *last = &run->out[2 * ASC_CHANNELS];
    assert_int_equal(verdict_bad(&last[asc_s].global), 64 * (3 * 64 - 150));
    assert_int_equal(verdict_bad(&last[asc_p].global), 64 * (3 * 64 - 150));
    assert_int_equal(bad_stages(run, 1) & ~SET(u), SET(s) | SET(p) | SET(l) | SET(o) | SET(lse));
    /* Nobody has to write padding. */
    s.mistake = RIGHT;
    kernel_run_free(run);
    run = kernel_run(&s);
    const uint32_t pattern = UNWRITTEN_32;
    memcpy((float *)run_array(run, asc_p, 2) + 60, &pattern, sizeof pattern);
    judge(run);
    assert_int_equal(bad_stages(run, 0) | bad_stages(run, 1), 0);
    kernel_run_free(run);
}

/* 0 NaN = NaN: V is where it begins. Who leaves the padding out may have anything there. */
static void padding_of_v(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        for (int skips = 0; skips < 2; skips++) {
            struct spec s = base;
            s.conventions.u_phase = late ? ASC_U_RESCALED : ASC_U_AFTER_PV;
            s.v_padding_nan = 1;
            s.skips_padding = skips;
            struct kernel_run *run = judged(&s);
            assert_int_equal(bad_stages(run, 0), skips ? 0 : SET(v));
            const struct verdict *v = &run->out[2 * ASC_CHANNELS + asc_v].local;
            assert_int_equal(v->count[CLASS_NAN], skips ? 0 : 64 * (3 * 64 - 150));
            if (!skips)
                assert_int_equal(v->worst_row, 150 - 2 * 64);
            kernel_run_free(run);
        }
    }
}

/* Just above ln l = 8 an ulp is 16 u; __logf may err by three of them. */
static void logarithm_may_err_by_three_ulp(void **state)
{
    (void)state;
    const double ln_l = 8 + 0x1p-10, three_ulp = 3 * 0x1p-20;
    assert_true(three_ulp + BOUND_U * ln_l <= bound_lse(0, ln_l, ln_l));
    assert_true(4 * 0x1p-20 + BOUND_U * ln_l > bound_lse(0, ln_l, ln_l));
}

/* Sizes that cannot be counted are no case: -1, not a wrapped product. */
static void sizes_that_wrap(void **state)
{
    (void)state;
    struct kernel_run *run = kernel_run(&base);
    struct judge_scratch *own = judge_scratch_new();
    const struct oracle_case right = run->c;
    const int sides[][4] = {{INT_MAX, 64, 64, 3},      {64, INT_MAX, 64, 3}, {INT_MAX, INT_MAX, INT_MAX, 3},
                            {INT_MAX, 64, INT_MAX, 3}, {64, 64, -1, 3},      {64, 64, 64, INT_MAX}};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        run->c = right;
        run->c.bc = sides[i][0];
        run->c.head_dim = run->c.head_dim_v = sides[i][1];
        run->c.kv_len = sides[i][2];
        run->c.kv_tiles = sides[i][3];
        assert_int_equal(judge_case(&run->c, own, run->out, NULL), -1);
    }
    run->c = right;
    assert_int_equal(judge_case(&run->c, own, run->out, NULL), 0);
    judge_scratch_free(own);
    kernel_run_free(run);
}

/* Scores that are NaN, or that stand where the mask hides every key, are the fault of S alone: a maximum that takes a
   NaN and one that drops it are followed alike, and an alpha of no maximum says nothing. */
static void only_the_scores_are_to_blame(void **state)
{
    (void)state;
    struct spec s = base;
    s.conventions.p_offset = 0;
    for (int taken = 0; taken < 2; taken++) {
        struct kernel_run *run = kernel_run(&s);
        float *alpha = run_array(run, asc_alpha, 0), *m = run_array(run, asc_m, 0), *scores = run_array(run, asc_s, 0);
        for (int col = 0; col < 64; col++)
            scores[3 * 64 + col] = NAN;
        m[3] = taken ? NAN : -INFINITY;
        alpha[3] = NAN; /* -inf - -inf, or of the NaN */
        judge(run);
        assert_int_equal(verdict_bad(&run->out[asc_s].local), 64);
        assert_int_equal(verdict_bad(&run->out[asc_m].local), 0);
        assert_int_equal(verdict_bad(&run->out[asc_alpha].local), 0);
        m[3] = 1e30f; /* no NaN took it there */
        judge(run);
        assert_int_equal(verdict_bad(&run->out[asc_m].local), 1);
        kernel_run_free(run);
    }
    s.q_len = 100;
    s.kv_len = 60;
    s.causal = ASC_CAUSAL_BOTTOM_RIGHT; /* row 0 sees no key */
    struct kernel_run *run = kernel_run(&s);
    float *alpha = run_array(run, asc_alpha, 0), *m = run_array(run, asc_m, 0), *scores = run_array(run, asc_s, 0);
    alpha[0] = 0.5f;
    judge(run);
    assert_int_equal(verdict_bad(&run->out[asc_alpha].local), 1);
    for (int col = 0; col < 60; col++)
        scores[col] = -1e30f;
    m[0] = -1e30f;
    alpha[0] = 1;
    judge(run);
    assert_true(verdict_bad(&run->out[asc_s].local) > 0);
    assert_int_equal(verdict_bad(&run->out[asc_alpha].local), 0);
    kernel_run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_alone_is_judged),
        cmocka_unit_test(only_the_scores_are_to_blame),
        cmocka_unit_test(output_alone_is_found_wrong),
        cmocka_unit_test(output_of_nan_fails),
        cmocka_unit_test(output_beyond_v_fails),
        cmocka_unit_test(no_statement_is_no_class),
        cmocka_unit_test(overflow_is_right_where_the_number_is_too_large),
        cmocka_unit_test(overflow_is_the_fault_of_m),
        cmocka_unit_test(large_scores_are_no_fault),
        cmocka_unit_test(folded_exponential_is_right),
        cmocka_unit_test(padding_of_p),
        cmocka_unit_test(padding_of_v),
        cmocka_unit_test(logarithm_may_err_by_three_ulp),
        cmocka_unit_test(sizes_that_wrap),
    };
    return cmocka_run_group_tests_name("oracle: unjudged", tests, scratch_begin, scratch_end);
}
