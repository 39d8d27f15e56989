/* Bounds of O and LSE in long rows: what goes through, what does not, and where they are the worst case's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/oracle/bound.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/product.h"
#include "tests/unit/lib/long_kernel.h"

static struct judge_scratch *scratch;

static struct long_result judged(const struct long_spec *s)
{
    struct long_data data;
    struct long_result r;
    assert_true(long_data_make(&data, s));
    assert_int_equal(long_judge(s, &data, scratch, &r), 0);
    long_data_free(&data);
    return r;
}

static struct long_spec spec(void)
{
    return (struct long_spec){.keys = LIKELY_KEYS, .rows = 8, .dim = 64, .core = TENSOR_CORE_H100, .known = true};
}

static void lambda(void **state)
{
    (void)state;
    const double chance = 2 * exp(-LIKELY_LAMBDA * LIKELY_LAMBDA / 2) * 0x1p36;
    assert_true(chance < 1e-12);
    assert_true(chance > 1e-14); /* and no larger than it has to be */
}

/* What is taken apart comes to the bound again: a cut is half systematic, half either way. */
static void shares(void **state)
{
    (void)state;
    struct oracle_case c = {.known_cores = 1u << TENSOR_CORE_H100 | 1u << TENSOR_CORE_F32};
    const struct product_share share = product_share(&c, ASC_ACC_MMA_F16, 64);
    assert_true(fabs(2 * share.systematic / tensor_core_bound(TENSOR_CORE_H100, 64) - 1) < 1e-12);
    assert_true(share.cut + share.terms <= share.systematic);
    c.known_cores = 0; /* the loosest */
    assert_true(fabs(2 * product_share(&c, ASC_ACC_MMA_F16, 64).systematic / tensor_core_bound(TENSOR_CORE_V100, 64) -
                     1) < 1e-12);
    const struct product_share f32 = product_share(&c, ASC_ACC_F32, 64);
    assert_true(f32.systematic == 0 && fabs(sqrt(f32.variance) - 8 * BOUND_U) < 1e-12);
    assert_true(product_share(&c, ASC_ACC_MMA_F16_F16, 64).variance == 0); /* of f16 sums nothing is claimed */
}

/* Of every way to sum, and of weights that are no independent numbers. */
static void correct(void **state)
{
    (void)state;
    static const enum tensor_core cores[] = {TENSOR_CORE_F32, TENSOR_CORE_V100, TENSOR_CORE_A100, TENSOR_CORE_H100};
    for (int i = 0; i < 4 * LONG_FILLS; i++) {
        struct long_spec s = spec();
        s.fill = (enum long_fill)(i % LONG_FILLS);
        s.core = cores[i % 4];
        s.known = i % 3 != 0;
        s.reversed = i % 5 == 0;
        s.folds_alpha = i % 2;
        s.exp_low = i % 5 == 1;
        const struct long_result r = judged(&s);
        assert_int_equal(r.bad_o + r.bad_lse, 0);
        assert_false(noise_unusual(&r.noise));
        /* Equal weights are rounded alike: their errors are one, and nothing is nearer than the worst case. */
        if (s.fill == LONG_NORMAL || s.fill == LONG_POSITIVE || s.fill == LONG_CONSTANT)
            assert_int_equal(r.likely_o, s.fill != LONG_CONSTANT);
    }
}

static void edges(void **state)
{
    (void)state;
    struct long_spec s = spec();
    s.at_bounds = 0.99;
    assert_int_equal(judged(&s).bad_lse, 0);
    assert_int_equal(judged(&s).bad_o, 0);
    s.at_bounds = -0.99;
    assert_int_equal(judged(&s).bad_lse, 0);
    s.at_bounds = 1.01;
    assert_int_equal(judged(&s).bad_lse, 1);
    s.at_bounds = 1.3; /* a step of f16 beyond */
    assert_int_equal(judged(&s).bad_o, 1);
    s.at_bounds = -1.3;
    assert_int_equal(judged(&s).bad_o, 1);
    assert_int_equal(judged(&s).bad_lse, 1);
    s.at_bounds = NAN;
    assert_int_equal(judged(&s).bad_o, 1);
    assert_true(noise_unusual(&(struct output_noise){.known = true, .row = NAN, .limit = 2}));
    assert_false(noise_unusual(&(struct output_noise){.row = 3, .limit = 2}));
}

static void mistakes(void **state)
{
    (void)state;
    for (int m = LONG_RIGHT + 1; m < LONG_MISTAKES; m++) {
        struct long_spec s = spec();
        s.mistake = (enum long_mistake)m;
        s.rows = 16;
        const struct long_result r = judged(&s);
        /* O times 1 + 2^-10 is within what rounding weights may do to an element, but not to all of them. */
        assert_int_equal(r.bad_o > 0, m != LONG_O_SCALED);
        assert_true(noise_unusual(&r.noise));
    }
}

/* A tile more or less: rows of fewer keys are judged by the worst case alone. */
static void short_rows(void **state)
{
    (void)state;
    struct long_spec s = spec();
    const struct long_result at = judged(&s);
    s.keys -= LONG_BC;
    const struct long_result below = judged(&s);
    assert_true(at.likely_o && at.likely_lse && at.noise.known);
    assert_false(below.likely_o || below.likely_lse || below.noise.known);
    assert_true(below.bound > 2 * at.bound);
    s.mistake = LONG_TILE_LEFT_OUT;
    assert_true(judged(&s).bad_o > 0);
}

static int make(void **state)
{
    (void)state;
    scratch = judge_scratch_new();
    return !scratch;
}

static int drop(void **state)
{
    (void)state;
    judge_scratch_free(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lambda), cmocka_unit_test(shares),   cmocka_unit_test(correct),
        cmocka_unit_test(edges),  cmocka_unit_test(mistakes), cmocka_unit_test(short_rows),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
