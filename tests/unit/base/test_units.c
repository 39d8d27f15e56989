#include "engine/base/units.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void expect_seconds(double seconds, const char *words)
{
    char text[32];
    units_seconds(seconds, text, sizeof text);
    assert_string_equal(text, words);
}

static void expect_bytes(uint64_t bytes, const char *words)
{
    char text[32];
    units_bytes(bytes, text, sizeof text);
    assert_string_equal(text, words);
}

static void test_seconds(void **state)
{
    (void)state;
    expect_seconds(0, "");
    expect_seconds(-1, "");
    expect_seconds(NAN, "");
    expect_seconds(1.2345e-6, "1.23 us");
    expect_seconds(9.996e-6, "10.0 us");
    expect_seconds(99.96e-6, "100 us");
    expect_seconds(999.4e-6, "999 us");
    expect_seconds(999.6e-6, "1.00 ms");
    expect_seconds(0.0568, "56.8 ms");
    expect_seconds(0.99951, "1.00 s");
    expect_seconds(1.25, "1.25 s");
    expect_seconds(3600, "3600 s");
}

static void test_bytes(void **state)
{
    (void)state;
    expect_bytes(0, "0 B");
    expect_bytes(1023, "1023 B");
    expect_bytes(1024, "1.00 KiB");
    expect_bytes(80896, "79.0 KiB");
    expect_bytes(1023 * 1024 + 700, "1.00 MiB");
    expect_bytes(UINT64_C(1) << 31, "2.00 GiB");
    expect_bytes(UINT64_MAX, "16.0 EiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
