#include "engine/base/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void names_lead_back(void **state)
{
    (void)state;
    for (int t = 0; t < DTYPE_COUNT; t++) {
        assert_int_equal(dtype_from_name(dtype_name((enum dtype)t)), t);
        assert_true(dtype_bytes((enum dtype)t) >= 1 && dtype_bytes((enum dtype)t) <= 8);
        assert_true(strlen(dtype_safetensors((enum dtype)t)) >= 2);
    }
    assert_int_equal(dtype_bytes(DTYPE_BF16), 2);
    assert_string_equal(dtype_safetensors(DTYPE_E4M3), "U8");
    assert_string_equal(dtype_safetensors(DTYPE_I64), "I64");
    assert_int_equal(dtype_from_name("F16"), -1);
    assert_int_equal(dtype_from_name("f1"), -1);
    assert_int_equal(dtype_from_name(""), -1);
    assert_int_equal(dtype_from_name(NULL), -1);
    assert_int_equal(dtype_bytes((enum dtype)DTYPE_COUNT), 0);
    assert_string_equal(dtype_name((enum dtype)DTYPE_COUNT), "none");
}

/* Element 1 of three, at an odd address: its neighbors stay. */
static void store_then_load(void **state)
{
    (void)state;
    static const double exact[] = {0, 1, 2, 96};
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const size_t bytes = dtype_bytes((enum dtype)t);
        for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
            unsigned char room[1 + 3 * 8];
            if ((t == DTYPE_E2M1 && exact[i] > 6) || (t == DTYPE_E8M0 && (exact[i] == 0 || exact[i] > 2)))
                continue; /* what they have not */
            memset(room, 0xA7, sizeof room);
            dtype_store((enum dtype)t, room + 1, 1, exact[i]);
            assert_true(dtype_load((enum dtype)t, room + 1, 1) == exact[i]);
            for (size_t b = 0; b < sizeof room; b++)
                if (b < 1 + bytes || b >= 1 + 2 * bytes)
                    assert_int_equal(room[b], 0xA7);
        }
    }
}

static double through(enum dtype t, double x)
{
    unsigned char element[8];
    dtype_store(t, element, 0, x);
    return dtype_load(t, element, 0);
}

static void each_type_rounds_in_its_way(void **state)
{
    (void)state;
    assert_true(through(DTYPE_F16, 1 + 0x1p-11) == 1);
    assert_true(through(DTYPE_F16, 1 + 0x1p-11 + 0x1p-40) == 1 + 0x1p-10);
    assert_true(through(DTYPE_F16, 1e6) == INFINITY);
    assert_true(through(DTYPE_BF16, -3.0e38 * 2) == -INFINITY);
    assert_true(through(DTYPE_BF16, 0x1p-133) == 0x1p-133);
    assert_true(through(DTYPE_F32, 1 + 0x1p-24) == 1);
    assert_true(through(DTYPE_F64, 0x1.23456789ABCDEp-1030) == 0x1.23456789ABCDEp-1030);
    assert_true(through(DTYPE_E4M3, 1e9) == 448 && through(DTYPE_E4M3, -INFINITY) == -448);
    assert_true(through(DTYPE_E5M2, INFINITY) == 57344);
    assert_true(signbit(through(DTYPE_E4M3, -0.0)) && signbit(through(DTYPE_F16, -0.0)));
    for (int t = DTYPE_F16; t <= DTYPE_E5M2; t++)
        assert_true(isnan(through((enum dtype)t, NAN)));
}

static void integers_truncate_and_clamp(void **state)
{
    (void)state;
    assert_true(through(DTYPE_U8, 254.9) == 254 && through(DTYPE_U8, 1e300) == 255 && through(DTYPE_U8, -0.9) == 0);
    assert_true(through(DTYPE_U8, -1) == 0 && through(DTYPE_U8, 255.9) == 255 && through(DTYPE_U8, 256) == 255);
    assert_true(through(DTYPE_I32, -7.9) == -7 && through(DTYPE_I32, 0x1p31) == 2147483647.0);
    assert_true(through(DTYPE_I32, -INFINITY) == -0x1p31 && through(DTYPE_I32, -0x1p31 - 0.5) == -0x1p31);
    assert_true(through(DTYPE_I64, 0x1p62) == 0x1p62 && through(DTYPE_I64, -0x1p63) == -0x1p63);
    int64_t largest = 0;
    dtype_store(DTYPE_I64, &largest, 0, INFINITY);
    assert_true(largest == INT64_MAX);
    for (int t = DTYPE_U8; t <= DTYPE_I64; t++)
        assert_true(through((enum dtype)t, NAN) == 0);
}

/* The pattern is a NaN wherever it exists, whether filled in by 16 bits or by elements, and no value that was stored.
 */
static void unwritten_is_a_nan_of_its_own(void **state)
{
    (void)state;
    const uint16_t fill = UNWRITTEN_16;
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const enum dtype type = (enum dtype)t;
        unsigned char array[16];
        for (size_t i = 0; i < sizeof array; i += 2)
            memcpy(array + i, &fill, 2);
        assert_int_equal(dtype_is_unwritten(type, array, 1), dtype_has_unwritten(type));
        if (!dtype_has_unwritten(type))
            continue;
        assert_true(isnan(dtype_load(type, array, 1)));
        static const double stored[] = {NAN, -NAN, INFINITY, 0, 1};
        for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
            dtype_store(type, array, 1, stored[i]);
            assert_false(dtype_is_unwritten(type, array, 1));
            assert_true(dtype_is_unwritten(type, array, 0));
        }
    }
    assert_false(dtype_has_unwritten(DTYPE_E4M3) || dtype_has_unwritten(DTYPE_I64));
    const uint32_t word = UNWRITTEN_32;
    const uint64_t words = UNWRITTEN_64;
    assert_true(dtype_is_unwritten(DTYPE_F32, &word, 0) && dtype_is_unwritten(DTYPE_F64, &words, 0));
}

/* What becomes of memory that nobody wrote: as it is, quieted by an operation, widened, its sign changed. */
static void what_nobody_wrote_is_known_again(void **state)
{
    (void)state;
    static const uint32_t known[] = {0x7FA07FA0, 0x7FE07FA0, 0xFFE07FA0, 0x7FF57FF5, 0x7FF40000,
                                     0x7FFEA000, 0x7FE00000, 0x7FAA7FAA, 0x7FAF7FAF};
    static const uint32_t others[] = {0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0x7F800000, 0x3F800000, 0x7FA07FA1};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(dtype_nobodys(DTYPE_F32, &known[i], 0));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(dtype_nobodys(DTYPE_F32, &others[i], 0));
    const uint32_t unfinished = 0x7FEA7FAA;
    assert_int_equal(dtype_nobodys(DTYPE_F32, &unfinished, 0), UNFINISHED_16);
    assert_int_equal(dtype_nobodys(DTYPE_F32, &known[3], 0), UNWRITTEN_16);
    static const uint16_t halves[] = {0x7FA0, 0xFFF5, 0x7E00, 0x7FFF, 0x7C00};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(dtype_nobodys(DTYPE_F16, halves, i) != 0, i < 2);
        assert_int_equal(dtype_nobodys(DTYPE_BF16, halves, i) != 0, i < 2);
    }
    const uint16_t quieted = 0x7FE0;
    assert_true(dtype_nobodys(DTYPE_BF16, &quieted, 0) && !dtype_nobodys(DTYPE_F16, &quieted, 0));
    assert_int_equal(dtype_nobodys(DTYPE_E4M3, &quieted, 0), 0);
}

/* One step up from a number is the next code's value. */
static void ulp_is_the_next_number(void **state)
{
    (void)state;
    static const struct {
        enum dtype t;
        uint32_t code[3]; /* subnormal, one below a power of two, that power */
    } types[] = {{DTYPE_F16, {3, 0x3BFF, 0x3C00}},
                 {DTYPE_BF16, {3, 0x3F7F, 0x3F80}},
                 {DTYPE_F32, {3, 0x3F7FFFFF, 0x3F800000}},
                 {DTYPE_E4M3, {3, 0x37, 0x38}},
                 {DTYPE_E5M2, {1, 0x3B, 0x3C}}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int k = 0; k < 3; k++) {
            const uint32_t code = types[i].code[k], next = code + 1;
            const double x = dtype_load(types[i].t, &code, 0), y = dtype_load(types[i].t, &next, 0);
            assert_true(dtype_ulp(types[i].t, x) == y - x);
            assert_true(dtype_ulp(types[i].t, -x) == y - x);
        }
    }
    assert_true(dtype_ulp(DTYPE_F32, 0) == 0x1p-149 && dtype_ulp(DTYPE_F64, 1) == 0x1p-52);
    assert_true(dtype_ulp(DTYPE_U8, 100) == 1 && dtype_ulp(DTYPE_I64, -7) == 1);
    assert_true(isnan(dtype_ulp(DTYPE_F32, INFINITY)) && isnan(dtype_ulp(DTYPE_U8, NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lead_back),
        cmocka_unit_test(store_then_load),
        cmocka_unit_test(each_type_rounds_in_its_way),
        cmocka_unit_test(integers_truncate_and_clamp),
        cmocka_unit_test(unwritten_is_a_nan_of_its_own),
        cmocka_unit_test(ulp_is_the_next_number),
        cmocka_unit_test(what_nobody_wrote_is_known_again),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
