/* Inputs negated, bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/study/rounding.h"
#include <cmocka.h>
#include <math.h>

static void every_code_gets_its_negative(void **state)
{
    (void)state;
    static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32, DTYPE_E4M3, DTYPE_E5M2, DTYPE_E2M1};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const enum dtype t = types[i];
        const size_t n = t == DTYPE_E2M1 ? 16 : dtype_bytes(t) == 1 ? 256 : 65536;
        for (size_t code = 0; code < n; code++) {
            uint32_t bits = (uint32_t)code << (t == DTYPE_F32 ? 16 : 0);
            const double before = dtype_load(t, &bits, 0);
            assert_int_equal(negate_elements(t, &bits, 1), 0);
            const double after = dtype_load(t, &bits, 0);
            assert_true(isnan(before) ? isnan(after) : after == -before);
            assert_true(isnan(before) || (signbit(before) != 0) != (signbit(after) != 0));
            negate_elements(t, &bits, 1);
            assert_int_equal(bits, (uint32_t)code << (t == DTYPE_F32 ? 16 : 0));
        }
    }
}

static void codes_without_a_sign_are_mirrored(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        unsigned char x[2] = {(unsigned char)code, ASC_U8_MIDPOINT};
        assert_int_equal(negate_elements(DTYPE_U8, x, 2), code == 0);
        assert_int_equal(x[0] - ASC_U8_MIDPOINT, code == 0 ? -ASC_U8_MIDPOINT : ASC_U8_MIDPOINT - code);
        assert_int_equal(x[1], ASC_U8_MIDPOINT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_gets_its_negative),
        cmocka_unit_test(codes_without_a_sign_are_mirrored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
