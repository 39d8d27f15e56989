/* What formats and scales make of values: counts, round trips and the best scale, at the edges. */
#include "engine/base/format.h"
#include "engine/base/quantize.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/quantization/formats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const enum dtype types[3] = {DTYPE_U8, DTYPE_E4M3, DTYPE_E5M2};

static void round_trips_are_those_of_the_codes(void **state)
{
    (void)state;
    static const float scales[] = {1, 0.0078125F, 3.1e-3F, 0x1p-20F, 57.3F};
    enum { N = 65536 };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    assert_non_null(x);
    assert_non_null(y);
    int n = 0;
    for (int bits = 0; bits < N; bits++)
        if (isfinite(f16_to_f32((uint16_t)bits)))
            x[n++] = f16_to_f32((uint16_t)bits);
    for (size_t t = 0; t < 3; t++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            const struct quantizer q = {types[t], QUANTISE_DIVISION, scales[s], 1 / scales[s]};
            formats_round_trip(types[t], scales[s], x, (size_t)n, y);
            for (int i = 0; i < n; i++)
                if (y[i] != quantize_value(types[t], quantize_code(&q, x[i])) * scales[s])
                    fail_msg("type %d scale %g: %a becomes %a", (int)t, (double)scales[s], (double)x[i], (double)y[i]);
        }
    free(x);
    free(y);
}

static void rows_are_rounded_as_numbers_are(void **state)
{
    (void)state;
    static const enum dtype narrow[] = {DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2, DTYPE_E2M1, DTYPE_F32};
    static const double edges[] = {0,           -0.0,        1,        65504,     65519,      65520,    -70000, 0x1p-14,
                                   0x1.ffcp-15, 0x1p-24,     0x1p-25,  0x1.8p-25, 3e-45,      1e39,     -1e308, 5e-324,
                                   0x1p-126,    0x1.fcp-127, 0x1p-133, 0x1p-134,  0x1.8p-134, 448,      464,    465,
                                   4.6e5,       -472,        0x1p-10,  0x1.8p-10, 6,          7,        0.25,   0.75,
                                   57344,       61440,       61441,    NAN,       INFINITY,   -INFINITY};
    enum { EDGES = sizeof edges / sizeof *edges, N = 20000 };
    static double x[N], row[N];
    uint64_t bits = 1;
    for (int i = 0; i < N; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        /* Of any exponent that a type has or lacks; of every third one as many bits as put it near a middle. */
        const double any = ldexp((double)(int64_t)bits, (int)(bits >> 33 & 255) - 63 - 190);
        x[i] = i < EDGES ? edges[i] : i % 3 ? any : format_f64_of(format_f64_bits(any) & ~UINT64_C(0) << (40 + i % 7));
    }
    for (size_t t = 0; t < sizeof narrow / sizeof *narrow; t++) {
        for (int i = 0; i < N; i++) {
            uint32_t room = 0;
            dtype_store(narrow[t], &room, 0, x[i]);
            const double stored = dtype_load(narrow[t], &room, 0), round = bound_round(narrow[t], x[i]);
            if (isnan(stored) ? !isnan(round) : format_f64_bits(stored) != format_f64_bits(round))
                fail_msg("type %d: %a is rounded to %a, stored as %a", (int)narrow[t], x[i], round, stored);
        }
        bound_round_row(narrow[t], x, N, row);
        for (int i = 0; i < N; i++) {
            const double want = isfinite(x[i]) ? bound_round_unlimited(narrow[t], x[i]) : x[i];
            if (format_f64_bits(row[i]) != format_f64_bits(want))
                fail_msg("type %d: %a becomes %a, not %a", (int)narrow[t], x[i], row[i], want);
        }
    }
}

static struct format_counts count(enum dtype type, double scale, const float *value, size_t n)
{
    uint8_t code[64];
    struct format_counts c = {0};
    const struct quantizer q = {type, QUANTISE_DIVISION, (float)scale, 1};
    for (size_t i = 0; i < n; i++)
        code[i] = quantize_code(&q, value[i]);
    formats_add(&(struct format_values){type, code, value, n, scale}, &c);
    return c;
}

static void e4m3_counts(void **state)
{
    (void)state;
    /* The middle between 448 and what would be 480 still becomes 448 by rounding; 2^-10 is half the least code. */
    static const float x[] = {0, -0.0F, 0x1p-10F, 0x1p-9F, 0x1p-7F, 0x1p-6F, 448, 464, 465, -465, NAN, INFINITY};
    const struct format_counts c = count(DTYPE_E4M3, 1, x, 12);
    assert_int_equal(c.elements, 12);
    assert_int_equal(c.known, 12);
    assert_int_equal(c.saturated, 3);
    assert_int_equal(c.flushed, 1);
    assert_int_equal(c.subnormal, 2);
    assert_int_equal(c.nan, 1);
    assert_int_equal(c.compared, 10);
    assert_int_equal(c.code[0x7E], 4);
    assert_float_equal(c.largest, 17, 0);
    assert_float_equal(c.squares, 0x1p-20 + 16 * 16 + 2 * 17 * 17, 0);
}

static void u8_and_e5m2_counts(void **state)
{
    (void)state;
    static const float x[] = {127.5F, 127.75F, -128.5F, -128.75F, 0.5F, 0.75F, -127};
    const struct format_counts c = count(DTYPE_U8, 1, x, 7);
    assert_int_equal(c.saturated, 2);
    assert_int_equal(c.flushed, 1);
    assert_int_equal(c.subnormal, 0);
    assert_int_equal(c.nan, 0);
    static const float y[] = {61440, 61441, 0x1p-17F, 0x1p-16F, 0x1p-14F, NAN};
    const struct format_counts d = count(DTYPE_E5M2, 1, y, 6);
    assert_int_equal(d.saturated, 1);
    assert_int_equal(d.flushed, 1);
    assert_int_equal(d.subnormal, 1);
    assert_int_equal(d.nan, 1);
}

static void unknown_values_are_not_judged(void **state)
{
    (void)state;
    static const uint8_t code[] = {0, 0x7E, 0xFF, 0x01};
    struct format_counts c = {0};
    formats_add(&(struct format_values){DTYPE_E4M3, code, NULL, 4, 2}, &c);
    assert_int_equal(c.elements, 4);
    assert_int_equal(c.known, 0);
    assert_int_equal(c.nan, 1);
    assert_int_equal(c.subnormal, 1);
    assert_true(isnan(formats_rms(&c)));
    formats_add(&(struct format_values){DTYPE_E4M3, code, NULL, 0, 2}, &c);
    assert_int_equal(c.elements, 4);
}

static void headroom_is_in_bits(void **state)
{
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        const double limit = formats_limit(types[t]);
        assert_float_equal(formats_headroom(types[t], 2, 2 * limit), 0, 1e-15);
        assert_float_equal(formats_headroom(types[t], 2, limit), 1, 1e-15);
        assert_float_equal(formats_headroom(types[t], 1, 4 * limit), -2, 1e-15);
        assert_true(isinf(formats_headroom(types[t], 1, 0)));
    }
}

/* No scale that may be chosen has a smaller error, and the error said is that of the codes. */
static void best_of_all_candidates(void **state)
{
    (void)state;
    float x[300], y[300];
    srand(3);
    for (int fill = 0; fill < 3; fill++) {
        for (int i = 0; i < 300; i++)
            x[i] = (float)(rand() % 2000 - 1000) * (fill == 1 && i % 100 == 7 ? 0.06F : 0.002F);
        for (int i = 0; fill == 2 && i < 300; i++)
            x[i] = i % 50 ? 0 : NAN;
        for (size_t t = 0; t < 3; t++) {
            double squares;
            const float best = formats_best_scale(types[t], x, 300, 0, &squares);
            const double natural = formats_amax(x, 300) / formats_limit(types[t]);
            int found = 0;
            for (int i = FORMATS_LOWEST; i <= FORMATS_HIGHEST && fill < 2; i++) {
                const float scale = (float)(natural * exp2(i / 8.0));
                double sum = 0;
                formats_round_trip(types[t], scale, x, 300, y);
                for (int e = 0; e < 300; e++)
                    sum += pow((double)x[e] - (double)y[e], 2);
                assert_true(sum >= squares * (1 - 1e-12));
                found |= scale == best && sum <= squares * (1 + 1e-12);
            }
            if (fill == 2) { /* nothing but zeros and NaN */
                assert_float_equal(best, 1, 0);
                assert_float_equal(squares, 0, 0);
            } else {
                assert_true(found);
            }
            if (fill == 1 && types[t] == DTYPE_U8) /* its step is what three outliers cost everything else */
                assert_true((double)best < natural);
        }
    }
}

static void one_value_is_exact_at_the_limit(void **state)
{
    (void)state;
    static const float x[] = {0.5F};
    double squares;
    assert_float_equal(formats_best_scale(DTYPE_E4M3, x, 1, 0, &squares), 0.5F / 448, 0);
    assert_float_equal(squares, 0, 0);
    assert_float_equal(formats_best_scale(DTYPE_E4M3, x, 1, 0.25F, &squares), 0.25F, 0); /* as good, and its own */
    assert_float_equal(squares, 0, 0);
    assert_float_equal(formats_best_scale(DTYPE_E4M3, x, 0, 0, &squares), 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_rounded_as_numbers_are),
        cmocka_unit_test(round_trips_are_those_of_the_codes),
        cmocka_unit_test(e4m3_counts),
        cmocka_unit_test(u8_and_e5m2_counts),
        cmocka_unit_test(unknown_values_are_not_judged),
        cmocka_unit_test(headroom_is_in_bits),
        cmocka_unit_test(best_of_all_candidates),
        cmocka_unit_test(one_value_is_exact_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
