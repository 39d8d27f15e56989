/* Types that a scenario leaves open: defaults where the kernel takes them, else what it takes. */
#include "engine/run/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint32_t f16 = 1u << DTYPE_F16, bf16 = 1u << DTYPE_BF16, e4m3 = 1u << DTYPE_E4M3, u8 = 1u << DTYPE_U8;

static void check(const struct child_hello *hello, const char *const settings[], int q, int k, int v)
{
    struct scenario s;
    struct err err;
    scenario_init(&s);
    for (int i = 0; settings[i]; i += 2)
        assert_int_equal(scenario_set(&s, settings[i], settings[i + 1], &err), 0);
    adopt_types(hello, &s);
    assert_int_equal(s.problem.dtype, q);
    assert_int_equal(s.problem.k_dtype, k);
    assert_int_equal(s.problem.v_dtype, v);
    scenario_free(&s);
}
#define CHECK(hello, q, k, v, ...) check(hello, (const char *const[]){__VA_ARGS__, NULL}, q, k, v)

static void test_left_open(void **state)
{
    (void)state;
    const struct child_hello plain = {.dtypes = f16 | bf16}, codes = {.dtypes = e4m3 | u8};
    const struct child_hello mixed = {.dtypes = bf16 | f16, .k_dtypes = e4m3, .v_dtypes = e4m3 | u8};
    const struct child_hello apart = {.dtypes = f16, .k_dtypes = u8, .v_dtypes = f16};
    CHECK(&plain, DTYPE_F16, DTYPE_F16, DTYPE_F16, NULL);
    CHECK(&codes, DTYPE_E4M3, DTYPE_E4M3, DTYPE_E4M3, NULL);
    CHECK(&mixed, DTYPE_F16, DTYPE_E4M3, DTYPE_E4M3, NULL);
    CHECK(&apart, DTYPE_F16, DTYPE_U8, DTYPE_F16, NULL);
}

/* A kernel that does not take it says so itself. */
static void test_what_is_stated_stays(void **state)
{
    (void)state;
    const struct child_hello codes = {.dtypes = e4m3 | u8};
    const struct child_hello mixed = {.dtypes = bf16 | f16, .k_dtypes = e4m3, .v_dtypes = e4m3 | u8};
    CHECK(&codes, DTYPE_F16, DTYPE_F16, DTYPE_F16, "shape.dtype", "f16");
    CHECK(&codes, DTYPE_U8, DTYPE_U8, DTYPE_U8, "shape.dtype", "u8");
    CHECK(&mixed, DTYPE_BF16, DTYPE_E4M3, DTYPE_E4M3, "shape.dtype", "bf16");
    CHECK(&mixed, DTYPE_F16, DTYPE_E4M3, DTYPE_U8, "shape.v_dtype", "u8");
    CHECK(&mixed, DTYPE_F16, DTYPE_F32, DTYPE_E4M3, "shape.k_dtype", "f32");
}

static void test_layouts(void **state)
{
    (void)state;
    const struct child_hello rows = {.dtypes = f16, .layouts = ASC_SUPPORTS(BLHD)},
                             both = {.dtypes = f16, .layouts = 3};
    struct scenario s;
    struct err err;
    scenario_init(&s);
    adopt_types(&both, &s);
    assert_int_equal(s.problem.layout, ASC_BHLD);
    adopt_types(&rows, &s);
    assert_int_equal(s.problem.layout, ASC_BLHD);
    assert_int_equal(scenario_set(&s, "shape.layout", "BHLD", &err), 0);
    adopt_types(&rows, &s);
    assert_int_equal(s.problem.layout, ASC_BHLD);
    scenario_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_left_open), cmocka_unit_test(test_what_is_stated_stays),
                                       cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
