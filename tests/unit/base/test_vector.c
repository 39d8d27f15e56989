/* Loops for the vector unit against libm and the scalar conversions. */
#include "engine/base/exp.h"
#include "engine/base/vector.h"
#include "engine/oracle/values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { STEPS = 400000 };

/* Relative errors all over the range, its ends included, against the next wider type. */
static void test_exp_error(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i <= STEPS; i++) {
        const double x = -745.5 + 1456.0 * i / STEPS, got = exp_lane(x);
        const long double want = expl((long double)x);
        if (want < 0x1p-1022L) {
            assert_true(fabsl((long double)got - want) <= EXP_ERROR * want + 0x1p-1074L);
        } else if (want <= 0x1.fffffffffffffp1023L * (1 - 2 * (long double)EXP_ERROR)) {
            worst = fmax(worst, (double)(fabsl((long double)got - want) / want));
        }
    }
    print_message("# largest relative error of exp_lane: 2^%.2f, stated: 2^%.0f\n", log2(worst), log2(EXP_ERROR));
    assert_true(worst <= EXP_ERROR);
    assert_true(worst > EXP_ERROR / 16);
}

static void test_exp_ends(void **state)
{
    (void)state;
    assert_true(exp_lane(0) == 1);
    assert_true(exp_lane(-0.0) == 1);
    assert_true(exp_lane(-INFINITY) == 0);
    assert_true(exp_lane(-746) == 0);
    assert_true(exp_lane(-745.1) == 0x1p-1074);
    assert_true(exp_lane(710) == INFINITY);
    assert_true(exp_lane(INFINITY) == INFINITY);
    assert_true(exp_lane(709.7) < INFINITY);
    assert_true(isnan(exp_lane(NAN)));
}

/* On both sides of the place where the series ends, too. */
static void test_tanh(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 1; i <= STEPS; i++)
        for (int part = 0; part < 3; part++) {
            const double x = part == 0   ? ldexp(1 + (double)(i % 4096) / 4096, -60 + i / 4096 % 66)
                             : part == 1 ? 0x1p-4 * (0.5 + (double)i / STEPS)
                                         : -25.0 * i / STEPS;
            const long double want = tanhl((long double)x);
            worst = fmax(worst, (double)fabsl(((long double)tanh_lane(x) - want) / want));
        }
    print_message("# largest relative error of tanh_lane: 2^%.2f, stated: 2^%.0f\n", log2(worst), log2(TANH_ERROR));
    assert_true(worst <= TANH_ERROR);
    assert_true(worst > TANH_ERROR / 16);
    assert_true(tanh_lane(0) == 0);
    assert_true(tanh_lane(INFINITY) == 1 && tanh_lane(-INFINITY) == -1);
    assert_true(isnan(tanh_lane(NAN)));
}

/* Every code of a 16-bit type, in rows with a gap behind each. */
static void check_codes(enum dtype t)
{
    enum { ROWS = 256, COLS = 256, STRIDE = COLS + 3 };
    uint16_t *codes = calloc((size_t)ROWS * STRIDE, sizeof *codes);
    double *values = calloc((size_t)ROWS * COLS, sizeof *values);
    const struct matrix m = {codes, t, STRIDE, ROWS, COLS};
    assert_true(codes && values);
    for (int i = 0; i < ROWS * COLS; i++)
        codes[i / COLS * STRIDE + i % COLS] = (uint16_t)i;
    values_load(&m, values);
    for (int i = 0; i < ROWS * COLS; i++) {
        const uint16_t code = (uint16_t)i;
        const double want = dtype_load(t, &code, 0);
        assert_true(isnan(want) ? isnan(values[i]) : values[i] == want && !signbit(values[i]) == !signbit(want));
    }
    free(codes);
    free(values);
}

static void test_load(void **state)
{
    (void)state;
    check_codes(DTYPE_F16);
    check_codes(DTYPE_BF16);
}

/* Lengths that are no multiple of LANES; NaNs first, last and in between. */
static void test_sums(void **state)
{
    (void)state;
    double x[19];
    for (int n = 0; n <= 19; n++) {
        double sum = 0;
        double sizes = 0;
        for (int i = 0; i < n; i++) {
            x[i] = (i % 3 - 1) * (i + 1);
            sum += x[i];
            sizes += fabs(x[i]);
        }
        assert_true(vector_sum(x, n) == sum);
        assert_true(vector_sum_sizes(x, n) == sizes);
        for (int i = 0; i < n; i++) {
            double y[19];
            for (int k = 0; k < n; k++)
                y[k] = k == i ? 7 : NAN;
            assert_true(vector_max(y, n, -INFINITY) == 7);
            assert_true(vector_max(y, n, 9) == 9);
            assert_true(isnan(vector_sum(y, n)) || n == 1);
        }
    }
    assert_true(vector_max(x, 0, -INFINITY) == -INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_error), cmocka_unit_test(test_exp_ends), cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_load),      cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
