/* Causes are named where they are the cause, and nowhere else. The wrong values come from an f32 kernel, not from the
   formulas of the cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/test_oracle_kernel.h"
#include <cmocka.h>

static struct judge_scratch *scratch;

static const struct spec base = {.q_len = 64,
                                 .kv_len = 192,
                                 .head_dim = 64,
                                 .br = 64,
                                 .bc = 64,
                                 .conventions = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED},
                                 .p_dtype = DTYPE_F32};

/* The causes named for a run, as a set of 1u << cause, from its tiles with bad scores. */
static unsigned named(const struct spec *s, struct cause_evidence evidence[CAUSE_COUNT])
{
    struct kernel_run *run = kernel_run(s);
    unsigned set = 0;
    memset(evidence, 0, CAUSE_COUNT * sizeof *evidence);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    for (int kv = 0; kv < run->c.kv_tiles; kv++) {
        const struct verdict *v = &run->out[kv * ASC_CHANNELS + asc_s].local;
        if (v->judged && !verdict_ok(v))
            assert_int_equal(cause_collect(&run->c, asc_s, kv, scratch, evidence), 0);
    }
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (cause_named(&evidence[cause]))
            set |= 1u << cause;
    kernel_run_free(run);
    return set;
}

static void listed_causes_are_named(void **state)
{
    (void)state;
    const struct {
        enum mistake mistake;
        enum cause cause;
    } cases[] = {{S_SCALED_TWICE, CAUSE_SCALED_TWICE},
                 {S_NOT_SCALED, CAUSE_NOT_SCALED},
                 {S_K_NOT_TRANSPOSED, CAUSE_K_NOT_TRANSPOSED}};
    const enum fill fills[] = {FILL_NORMAL, FILL_LARGE, FILL_OUTLIERS, FILL_ARANGE};
    for (int i = 0; i < 3; i++) {
        for (int fill = 0; fill < 4; fill++) {
            for (int shape = 0; shape < 3; shape++) {
                struct spec s = base;
                struct cause_evidence e[CAUSE_COUNT];
                s.mistake = cases[i].mistake;
                s.fill = fills[fill];
                s.summing = (enum summing)((fill + i) % 3);
                s.causal = shape == 1 ? ASC_CAUSAL_TOP_LEFT : ASC_CAUSAL_NONE;
                s.kv_len = shape == 2 ? 141 : 192;
                const unsigned set = named(&s, e);
                const struct cause_evidence *it = &e[cases[i].cause];
                if (set != 1u << cases[i].cause)
                    fail_msg("mistake %d fill %d shape %d: named %x; explained %llu of %llu, discriminating %llu, "
                             "chance %llu of %llu",
                             i, fill, shape, set, (unsigned long long)it->explained, (unsigned long long)it->elements,
                             (unsigned long long)it->discriminating, (unsigned long long)it->chance_hit,
                             (unsigned long long)it->chance_tried);
                assert_true(it->applicable && it->rounding < it->elements);
            }
        }
    }
}

static void units(void **state)
{
    (void)state;
    struct cause_evidence e[CAUSE_COUNT];
    struct spec s = base;
    s.conventions.s_unit = s.conventions.m_unit = ASC_UNIT_LOG2;
    s.mistake = S_SCALED_TWICE;
    assert_int_equal(named(&s, e), 1u << CAUSE_SCALED_TWICE);
    s.conventions.s_unit = s.conventions.m_unit = ASC_UNIT_RAW;
    s.mistake = S_SCALED_THRICE; /* a raw score is not scaled at all: this one carries the square of the scale */
    assert_int_equal(named(&s, e), 1u << CAUSE_SCALED_TWICE);
    assert_int_equal(e[CAUSE_NOT_SCALED].applicable, 0);
}

static void other_mistakes_have_no_name(void **state)
{
    (void)state;
    const enum mistake others[] = {
        S_SCALE_AND_HALF, S_SIGN,     S_ROUNDED_F16,  S_PLUS_MILLI,        S_LAST_PRODUCT,    S_RESULT_TRANSPOSED,
        S_NEIGHBOUR_TILE, S_NEXT_KEY, S_HALF_OF_D,    S_ABSOLUTE,          S_F16_ACCUMULATOR, S_Q_ROUNDED_BF16,
        S_SCALED_THRICE,  S_SQUARED,  S_TAIL_COUNTED, S_CAUSAL_OFF_BY_ONE,
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        for (int fill = FILL_NORMAL; fill <= FILL_ARANGE; fill++) {
            struct cause_evidence e[CAUSE_COUNT];
            struct spec s = base;
            s.mistake = others[i];
            s.fill = (enum fill)fill;
            s.kv_len = 180;
            s.causal = s.mistake == S_CAUSAL_OFF_BY_ONE ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_NONE;
            const unsigned set = named(&s, e);
            if (fill == FILL_NORMAL)
                assert_true(e[CAUSE_SCALED_TWICE].elements > 0);
            if (set)
                fail_msg("mistake %d fill %d: named %x", (int)others[i], fill, set);
        }
    }
}

/* Inputs that can not tell one formula from another give no name, even for the mistake itself. */
static void uninformative_inputs(void **state)
{
    (void)state;
    const enum fill fills[] = {FILL_ZEROS, FILL_CONSTANT};
    for (int i = 0; i < 2; i++) {
        for (int mistake = S_SCALED_TWICE; mistake <= S_K_NOT_TRANSPOSED; mistake++) {
            struct cause_evidence e[CAUSE_COUNT];
            struct spec s = base;
            s.fill = fills[i];
            s.mistake = (enum mistake)mistake;
            assert_int_equal(named(&s, e), 0);
        }
    }
}

static void not_where_the_tile_is_not_square(void **state)
{
    (void)state;
    struct cause_evidence e[CAUSE_COUNT];
    struct spec s = base;
    s.bc = 32;
    s.mistake = S_SCALED_TWICE;
    assert_int_equal(named(&s, e), 1u << CAUSE_SCALED_TWICE);
    assert_int_equal(e[CAUSE_K_NOT_TRANSPOSED].applicable, 0);
    assert_int_equal(e[CAUSE_K_NOT_TRANSPOSED].elements, 0);
}

static void rule(void **state)
{
    (void)state;
    const struct cause_evidence good = {
        .elements = 100000, .explained = 99990, .discriminating = 16, .chance_tried = 4096, .applicable = 1};
    struct cause_evidence e = good;
    assert_true(cause_named(&e));
    e.explained--;
    assert_false(cause_named(&e));
    e = good;
    e.discriminating--;
    assert_false(cause_named(&e));
    e = good;
    e.applicable = 0;
    assert_false(cause_named(&e));
    e = good;
    e.chance_hit = 4096;
    assert_false(cause_named(&e));
    e.chance_hit = 700; /* 16 ln(4097/701) = 28.2 */
    assert_false(cause_named(&e));
    e.chance_hit = 600; /* 30.7 */
    assert_true(cause_named(&e));
    e = good;
    e.chance_tried = 0; /* nothing tried, nothing known about chance */
    assert_false(cause_named(&e));
    const struct cause_evidence none = {.applicable = 1};
    assert_false(cause_named(&none));
}

static void names(void **state)
{
    (void)state;
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
        assert_int_equal(cause_from_name(cause_name((enum cause)c)), c);
        assert_true(cause_sentence((enum cause)c)[0] && cause_formula((enum cause)c)[0]);
        assert_int_equal(cause_channel((enum cause)c), asc_s);
    }
    assert_int_equal(cause_from_name("scaled-thrice"), -1);
    assert_string_equal(cause_name(CAUSE_SCALED_TWICE), "scaled-twice");
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        assert_true(bound_formula((enum asc_channel)ch)[0] != 0);
}

static void nothing_to_collect(void **state)
{
    (void)state;
    struct cause_evidence e[CAUSE_COUNT] = {{0}};
    struct spec s = base;
    s.unrecorded = 1u << asc_s;
    struct kernel_run *run = kernel_run(&s);
    assert_int_equal(cause_collect(&run->c, asc_s, 0, scratch, e), 0);
    assert_int_equal(cause_collect(&run->c, asc_o, 0, scratch, e), 0);
    assert_int_equal(cause_collect(&run->c, asc_s, 99, scratch, e), 0);
    for (int c = 0; c < CAUSE_COUNT; c++)
        assert_int_equal(e[c].elements, 0);
    kernel_run_free(run);
}

static int begin(void **state)
{
    (void)state;
    oracle_init();
    scratch = judge_scratch_new();
    return scratch ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    judge_scratch_free(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_causes_are_named),
        cmocka_unit_test(units),
        cmocka_unit_test(other_mistakes_have_no_name),
        cmocka_unit_test(uninformative_inputs),
        cmocka_unit_test(not_where_the_tile_is_not_square),
        cmocka_unit_test(rule),
        cmocka_unit_test(names),
        cmocka_unit_test(nothing_to_collect),
    };
    return cmocka_run_group_tests_name("oracle: causes", tests, begin, end);
}
