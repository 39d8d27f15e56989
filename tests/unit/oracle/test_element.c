/* What a verdict says beside its counts: the worst element, its place, and the ratios got / want. */
#include "engine/oracle/element.h"

#include "engine/base/format.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, COLS = 51, N = ROWS * COLS };

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

struct tile {
    double got[N], want[N], bound[N];
};

static struct verdict judge_shape(const struct tile *t, int rows, int cols)
{
    const struct matrix captured = {t->got, DTYPE_F64, cols, rows, cols};
    const struct comparison c = {&captured, t->got, t->want, t->bound, rows, cols, 0, 0, NULL};
    struct verdict v = {0};
    element_judge(&c, &v, NULL);
    return v;
}

static struct verdict judge(const struct tile *t, int rows)
{
    return judge_shape(t, rows, COLS);
}

/* The first of the largest ratios, wherever it stands in its row, in rows of any length: those of whole vectors are
   gone through several at a time. */
static void test_worst(void **state)
{
    const int widths[] = {COLS, 1, 8, 24, 48};
    uint32_t seed = 3;
    (void)state;
    for (int round = 0; round < 2500; round++) {
        const int cols = widths[round % 5], rows = N / cols, n = rows * cols;
        struct tile t;
        double worst = 0;
        int place = 0;
        for (int i = 0; i < n; i++) {
            t.want[i] = 1;
            t.bound[i] = 0x1p-10 * (1 + random_bits(&seed) % 4);
            t.got[i] = 1 + t.bound[i] * (random_bits(&seed) % 512) / (round % 4 ? 512 : 500);
            const double ratio = fabs(t.got[i] - 1) / t.bound[i];
            if (ratio > worst) {
                worst = ratio;
                place = i;
            }
        }
        const struct verdict v = judge_shape(&t, rows, cols);
        assert_int_equal(v.worst_row, place / cols);
        assert_int_equal(v.worst_col, place % cols);
        assert_true(v.worst_ratio == (float)worst);
        if (round % 4 == 0)
            continue; /* some are off already */
        assert_int_equal(v.count[CLASS_OK], n);
        /* One that is off, at the end of its row: it alone is. */
        const int off = (round % rows + 1) * cols - 1;
        t.got[off] = 1 + 2 * t.bound[off];
        const struct verdict bad = judge_shape(&t, rows, cols);
        assert_true(bad.count[CLASS_OFF] == 1 && bad.count[CLASS_OK] == (uint32_t)n - 1);
        assert_int_equal(bad.worst_row * cols + bad.worst_col, off);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nearest ranks among 31 evenly spaced elements of a tile without a bad one; many are alike. */
static void test_ratios(void **state)
{
    enum { SAMPLE = 31 };
    uint32_t seed = 5;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct tile t;
        double ratios[SAMPLE] = {0};
        int n = 0;
        for (int i = 0; i < N; i++) {
            t.want[i] = random_bits(&seed) % 9 ? 2 : 0;
            t.got[i] = 1 + (double)(random_bits(&seed) % (uint32_t)(1 + round % 9));
            t.bound[i] = 100;
        }
        for (int k = 0; k < SAMPLE; k++)
            if (t.want[k * N / SAMPLE] != 0)
                ratios[n++] = t.got[k * N / SAMPLE] / 2;
        qsort(ratios, (size_t)n, sizeof ratios[0], ascending);
        const struct verdict v = judge(&t, ROWS);
        assert_true(v.ratio_median == (float)ratios[n / 2]);
        assert_true(v.ratio_spread == (float)(ratios[3 * n / 4] - ratios[n / 4]));
    }
}

/* The interval 1 +- bound holds no f16 but 1: what lies outside is as bad as its distance, in bounds, says. */
static void test_narrow_reach(void **state)
{
    const double got = 1 + 0x1p-10, want = 1, bound = 0x1p-14;
    const uint16_t code = f16_from_f64(got);
    const struct matrix captured = {&code, DTYPE_F16, 1, 1, 1};
    const struct comparison c = {&captured, &got, &want, &bound, 1, 1, 0, 0, NULL};
    struct verdict v = {0};
    (void)state;
    element_judge(&c, &v, NULL);
    assert_int_equal(v.count[CLASS_OFF], 1);
    assert_true(v.worst_ratio == 16);
    assert_true(element_ratio(DTYPE_F16, CLASS_OFF, got, want, bound) == 16);
}

/* In rows of whole vectors no number passes that is none or too far off, and no bound that is none, wherever it stands.
 */
static void test_nothing_passes_in_vectors(void **state)
{
    enum { WIDTH = 16 };
    static const double nan_below = -NAN;
    const struct {
        double got, want, bound;
    } bad[] = {{NAN, 1, 1},      {nan_below, 1, 1}, {INFINITY, 1, 1},  {-INFINITY, 1, 1}, {1, NAN, 1},
               {1, INFINITY, 1}, {1, 1, NAN},       {1, 1, nan_below}, {1, 1, -1},        {1, 1, INFINITY},
               {3, 1, 1},        {-1.5, 1, 2},      {0x1p-1074, 0, 0}, {1, 1, 0x1p128}};
    (void)state;
    for (int place = 0; place < ROWS * WIDTH; place++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            struct tile t;
            for (int k = 0; k < N; k++)
                t.got[k] = t.want[k] = t.bound[k] = 1;
            t.got[place] = bad[i].got;
            t.want[place] = bad[i].want;
            t.bound[place] = bad[i].bound;
            const struct verdict v = judge_shape(&t, ROWS, WIDTH);
            if (v.count[CLASS_OK] == ROWS * WIDTH && !v.unjudged)
                fail_msg("%g, wanted %g, bound %g passes at %d", bad[i].got, bad[i].want, bad[i].bound, place);
        }
}

/* The largest error where there is a NaN is NaN; of an infinity it is infinite. */
static void test_worst_of_nan(void **state)
{
    (void)state;
    const uint64_t unwritten = UNWRITTEN_64;
    struct tile t;
    for (int i = 0; i < N; i++)
        t.got[i] = t.want[i] = t.bound[i] = 1;
    t.got[7] = 4;
    struct verdict v = judge(&t, ROWS);
    assert_true(verdict_worst(&v) == 3);
    t.got[9] = INFINITY;
    v = judge(&t, ROWS);
    assert_true(isinf(verdict_worst(&v)));
    t.got[N - 1] = NAN;
    v = judge(&t, ROWS);
    assert_true(isnan(verdict_worst(&v)));
    memcpy(&t.got[N - 1], &unwritten, sizeof unwritten);
    v = judge(&t, ROWS);
    assert_int_equal(v.count[CLASS_MISSING], 1);
    assert_true(isnan(verdict_worst(&v)));
    assert_true(isnan(error_larger(INFINITY, NAN)) && isnan(error_larger(NAN, 1)) && error_larger(1, 2) == 2);
}

/* What is shown beside an element agrees with its class: a value that its type rounds is within, however small the
   bound of the arithmetic is. */
static void test_ratio_agrees_with_class(void **state)
{
    (void)state;
    const double want = 1 + 0x1p-12, near = 1, far = 1 + 0x1p-10, tiny = 0x1p-30;
    const double got[] = {near, far};
    for (int i = 0; i < 2; i++) {
        const uint16_t code = f16_from_f64(got[i]);
        const struct matrix captured = {&code, DTYPE_F16, 1, 1, 1};
        const struct comparison c = {&captured, &got[i], &want, &tiny, 1, 1, 0, 0, NULL};
        const int class = element_classify(&c, 0, 0);
        assert_int_equal(class, i ? CLASS_OFF : CLASS_OK);
        assert_int_equal(element_ratio(DTYPE_F16, class, got[i], want, tiny) > 1, i);
    }
    assert_true(element_ratio(DTYPE_F32, CLASS_OK, 1, 1, 0) == 0);
    assert_true(isnan(element_ratio(DTYPE_F32, CLASS_NAN, NAN, 1, 1)));
    assert_true(isinf(element_ratio(DTYPE_F32, CLASS_INF, INFINITY, 1, 1)));
    assert_true(element_ratio(DTYPE_F32, CLASS_OFF, 3, 1, 1) == 2);
    assert_true(element_ratio(DTYPE_F32, CLASS_EXTRA, 0, 1, 1) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worst),        cmocka_unit_test(test_ratios),
        cmocka_unit_test(test_narrow_reach), cmocka_unit_test(test_nothing_passes_in_vectors),
        cmocka_unit_test(test_worst_of_nan), cmocka_unit_test(test_ratio_agrees_with_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
