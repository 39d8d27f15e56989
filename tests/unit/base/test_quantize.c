/* Codes and their scales, at the edges: ties, the largest value, groups of zeros, what is no number. */
#include "engine/base/format.h"
#include "engine/base/quantize.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const enum dtype types[3] = {DTYPE_U8, DTYPE_E4M3, DTYPE_E5M2};
static const float limits[3] = {127, 448, 57344};

static uint32_t bits(float x)
{
    return format_f32_bits(x);
}

static void scales_are_f32_quotients(void **state)
{
    (void)state;
    static const float amax[] = {1, 3, 448, 57344, 0.1F, 65504, 0x1p-24F};
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof amax / sizeof *amax; i++) {
            const struct quantizer q = quantizer_of(types[t], amax[i], QUANTISE_RECIPROCAL);
            /* The f64 quotient of two f32 rounds to the f32 quotient: 53 >= 2 * 24 + 2 bits. */
            assert_int_equal(bits(q.scale), bits((float)((double)amax[i] / (double)limits[t])));
            assert_int_equal(bits(q.reciprocal), bits((float)((double)limits[t] / (double)amax[i])));
        }
}

static void a_group_of_zeros_has_scale_one(void **state)
{
    (void)state;
    static const uint8_t zero[3] = {128, 0, 0};
    for (size_t t = 0; t < 3; t++)
        for (int by = QUANTISE_DIVISION; by <= QUANTISE_RECIPROCAL; by++) {
            const struct quantizer q = quantizer_of(types[t], 0, (enum quantize_by)by);
            assert_true(q.scale == 1 && q.reciprocal == 1);
            assert_int_equal(quantize_code(&q, 0), zero[t]);
        }
}

static void the_largest_value_becomes_the_largest_code(void **state)
{
    (void)state;
    /* e4m3 0x7E is 448; e5m2 0x7B is 57344. */
    static const uint8_t high[3] = {255, 0x7E, 0x7B}, low[3] = {1, 0xFE, 0xFB};
    for (size_t t = 0; t < 3; t++)
        for (int i = -200; i < 160; i++) {
            const float amax = exp2f((float)i / 10);
            const struct quantizer q = quantizer_of(types[t], amax, QUANTISE_DIVISION);
            assert_int_equal(quantize_code(&q, amax), high[t]);
            assert_int_equal(quantize_code(&q, -amax), low[t]);
        }
}

static void ties_go_to_even(void **state)
{
    (void)state;
    /* With these amax the scale is 1, so that x is the quotient. */
    struct quantizer q = quantizer_of(DTYPE_U8, 127, QUANTISE_DIVISION);
    assert_int_equal(quantize_code(&q, 0.5F), 128);
    assert_int_equal(quantize_code(&q, nextafterf(0.5F, 1)), 129);
    assert_int_equal(quantize_code(&q, 1.5F), 130);
    assert_int_equal(quantize_code(&q, 2.5F), 130);
    assert_int_equal(quantize_code(&q, -0.5F), 128);
    assert_int_equal(quantize_code(&q, -1.5F), 126);
    assert_int_equal(quantize_code(&q, -126.5F), 2);
    q = quantizer_of(DTYPE_E4M3, 448, QUANTISE_DIVISION);
    assert_true(quantize_value(DTYPE_E4M3, quantize_code(&q, 17)) == 16); /* of 16 and 18, 8 * 2 and 9 * 2 */
    assert_true(quantize_value(DTYPE_E4M3, quantize_code(&q, 19)) == 20);
    assert_true(quantize_value(DTYPE_E4M3, quantize_code(&q, nextafterf(17, 18))) == 18);
    assert_true(quantize_value(DTYPE_E4M3, quantize_code(&q, 0x1p-10F)) == 0); /* half of the least subnormal */
    assert_true(quantize_value(DTYPE_E4M3, quantize_code(&q, nextafterf(0x1p-10F, 1))) == 0x1p-9F);
    q = quantizer_of(DTYPE_E5M2, 57344, QUANTISE_DIVISION);
    assert_true(quantize_value(DTYPE_E5M2, quantize_code(&q, 9)) == 8);
    assert_true(quantize_value(DTYPE_E5M2, quantize_code(&q, 11)) == 12);
}

static void what_is_beyond_saturates(void **state)
{
    (void)state;
    static const uint8_t high[3] = {255, 0x7E, 0x7B}, low[3] = {0, 0xFE, 0xFB};
    for (size_t t = 0; t < 3; t++) {
        const struct quantizer q = quantizer_of(types[t], limits[t], QUANTISE_DIVISION);
        assert_int_equal(quantize_code(&q, limits[t] * 2), high[t]);
        assert_int_equal(quantize_code(&q, -limits[t] * 2), low[t]);
        assert_int_equal(quantize_code(&q, INFINITY), high[t]);
        assert_int_equal(quantize_code(&q, -INFINITY), low[t]);
    }
}

static void what_is_no_number(void **state)
{
    (void)state;
    static const uint8_t nan_code[3] = {128, 0x7F, 0x7F};
    for (size_t t = 0; t < 3; t++) {
        struct quantizer q = quantizer_of(types[t], limits[t], QUANTISE_DIVISION);
        if (types[t] == DTYPE_U8)
            assert_int_equal(quantize_code(&q, NAN), nan_code[t]);
        else
            assert_true(isnan(quantize_value(types[t], quantize_code(&q, NAN))));
        /* An infinite member takes the scale with it: finite ones are 0 then, itself is no number. */
        q = quantizer_of(types[t], INFINITY, QUANTISE_DIVISION);
        assert_true(isinf(q.scale));
        assert_true(quantize_value(types[t], quantize_code(&q, 1000)) == 0);
    }
    assert_true(quantize_amax(quantize_amax(0, NAN), -3) == 3);
    assert_true(quantize_amax(quantize_amax(0, -3), NAN) == 3);
    assert_true(isinf(quantize_amax(3, -INFINITY)));
}

/* Division and multiplication by the reciprocal differ: near a tie by a step of the code. */
static void the_reciprocal_is_another_formula(void **state)
{
    (void)state;
    int differing = 0;
    for (int i = 1; i < 4096; i++) {
        const float amax = 1 + (float)i / 4096;
        const struct quantizer by = quantizer_of(DTYPE_U8, amax, QUANTISE_DIVISION),
                               times = quantizer_of(DTYPE_U8, amax, QUANTISE_RECIPROCAL);
        for (int n = 1; n < 253; n += 2) {
            const float x = amax * (float)n / 254; /* near half a step */
            const int a = quantize_code(&by, x), b = quantize_code(&times, x);
            assert_true(a - b >= -1 && a - b <= 1);
            differing += a != b;
        }
    }
    assert_true(differing > 0);
}

/* Every code is what its own value becomes. */
static void codes_are_fixed_points(void **state)
{
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        const struct quantizer q = quantizer_of(types[t], limits[t], QUANTISE_DIVISION);
        for (int code = 0; code < 256; code++) {
            const float value = quantize_value(types[t], (uint8_t)code);
            if (!isfinite(value))
                continue;
            assert_int_equal(quantize_code(&q, value), code);
        }
    }
    assert_true(quantize_value(DTYPE_U8, 0) == -128 && quantize_value(DTYPE_U8, 255) == 127);
}

static void e2m1_has_sixteen_numbers(void **state)
{
    (void)state;
    static const float values[8] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    for (int code = 0; code < 16; code++) {
        const float value = quantize_value(DTYPE_E2M1, (uint8_t)code);
        assert_int_equal(bits(value), bits(code < 8 ? values[code] : -values[code - 8]));
        assert_int_equal(quantize_code(&(struct quantizer){DTYPE_E2M1, QUANTISE_DIVISION, 1, 1}, value), code);
        assert_int_equal(bits(quantize_value(DTYPE_E2M1, (uint8_t)(code | 0xA0))), bits(value));
    }
    /* Each midpoint goes to the even code, a little more or less to the nearer one; beyond 6 all is 6. */
    const struct quantizer one = quantizer_by(DTYPE_E2M1, 1);
    for (int code = 0; code < 7; code++) {
        const float middle = (values[code] + values[code + 1]) / 2;
        for (int sign = 0; sign <= 8; sign += 8) {
            const float by = sign ? -1 : 1;
            assert_int_equal(quantize_code(&one, by * middle), sign | (code % 2 ? code + 1 : code));
            assert_int_equal(quantize_code(&one, by * nextafterf(middle, 0)), sign | code);
            assert_int_equal(quantize_code(&one, by * nextafterf(middle, 7)), sign | (code + 1));
        }
    }
    static const float beyond[] = {6.99F, 7, 8, 1e30F, INFINITY};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        assert_int_equal(quantize_code(&one, beyond[i]), 7);
        assert_int_equal(quantize_code(&one, -beyond[i]), 15);
    }
    assert_int_equal(quantize_code(&one, NAN), 7);
}

static void e8m0_is_an_exponent(void **state)
{
    (void)state;
    for (int code = 0; code < 255; code++) {
        const float value = e8m0_to_f32((uint8_t)code);
        assert_true((double)value == ldexp(1, code - 127));
        assert_int_equal(e8m0_from_f32(value), code);
        assert_int_equal(e8m0_from_f32(nextafterf(2 * value, 0)), code); /* the next power is not reached */
    }
    assert_true(isnan(e8m0_to_f32(0xFF)));
    assert_int_equal(e8m0_from_f32(NAN), 0xFF);
    assert_int_equal(e8m0_from_f32(INFINITY), 0xFE);
    assert_int_equal(e8m0_from_f32(0), 0);
}

/* Shared exponents as the MX specification has them, at the edges of a power of two and of the range. */
static void scales_that_are_powers_of_two(void **state)
{
    (void)state;
    static const struct {
        enum dtype type;
        float amax;
        double scale;
    } cases[] = {{DTYPE_E2M1, 4, 1},
                 {DTYPE_E2M1, 7.99F, 1},
                 {DTYPE_E2M1, 8, 2},
                 {DTYPE_E2M1, 3.99F, 0.5},
                 {DTYPE_E4M3, 256, 1},
                 {DTYPE_E4M3, 511, 1},
                 {DTYPE_E5M2, 32768, 1},
                 {DTYPE_E5M2, 65504, 1},
                 {DTYPE_E5M2, 32767, 0.5},
                 {DTYPE_E2M1, 0, 1},
                 {DTYPE_E2M1, 0x1p-126F, 0x1p-127},
                 {DTYPE_E5M2, 0x1p-24F, 0x1p-39},
                 {DTYPE_E2M1, 0x1p127F, 0x1p125}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true((double)quantize_scale(cases[i].type, DTYPE_E8M0, cases[i].amax, 1) == cases[i].scale);
}

/* NVFP4: the largest block has the scale 448, the smallest ones the least of e4m3. */
static void scales_of_e4m3_beside_one_of_the_tensor(void **state)
{
    (void)state;
    const float tensor = quantize_tensor_scale(DTYPE_E2M1, 12);
    assert_int_equal(bits(tensor), bits(12 / 2688.0F));
    assert_true(quantize_scale(DTYPE_E2M1, DTYPE_E4M3, 12, tensor) == 448);
    assert_true(quantize_scale(DTYPE_E2M1, DTYPE_E4M3, 6, tensor) == 224);
    assert_true(quantize_scale(DTYPE_E2M1, DTYPE_E4M3, 1e-9F, tensor) == 0x1p-9F);
    assert_true(quantize_scale(DTYPE_E2M1, DTYPE_E4M3, 0, tensor) == 1);
    assert_true(quantize_tensor_scale(DTYPE_E2M1, 0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_f32_quotients),
        cmocka_unit_test(a_group_of_zeros_has_scale_one),
        cmocka_unit_test(the_largest_value_becomes_the_largest_code),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(what_is_beyond_saturates),
        cmocka_unit_test(what_is_no_number),
        cmocka_unit_test(the_reciprocal_is_another_formula),
        cmocka_unit_test(codes_are_fixed_points),
        cmocka_unit_test(e2m1_has_sixteen_numbers),
        cmocka_unit_test(e8m0_is_an_exponent),
        cmocka_unit_test(scales_that_are_powers_of_two),
        cmocka_unit_test(scales_of_e4m3_beside_one_of_the_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
