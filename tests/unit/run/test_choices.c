/* What a kernel's source says that its build may choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/run/measure.h"

static void reads(const char *source, size_t n, const char *first, const char *last)
{
    struct choices c;
    assert_int_equal(choices_read(source, &c), 0);
    assert_int_equal(c.n, n);
    if (n) {
        assert_string_equal(c.define[0], first);
        assert_string_equal(c.define[n - 1], last);
    }
    choices_free(&c);
    assert_null(c.define);
}

static void test_choices(void **state)
{
    (void)state;
    reads("#define WS 1\nASC_CHOICES(WS, 0, 1, 2);\nint i;\n", 3, "WS=0", "WS=2");
    reads("ASC_CHOICES( BR ,64,128 );\nASC_CHOICES(SKEW, -1);", 3, "BR=64", "SKEW=-1");
    reads("// ASC_CHOICES(WS, 0, 1);\n#define ASC_CHOICES(name, ...)\n", 0, "", "");
    choices_free(NULL);
}

/* What cannot be read ends the line it stands in. */
static void test_broken(void **state)
{
    (void)state;
    reads("", 0, "", "");
    reads("ASC_CHOICES(", 0, "", "");
    reads("ASC_CHOICES(WS", 0, "", "");
    reads("ASC_CHOICES(WS,", 0, "", "");
    reads("ASC_CHOICES(, 1)\nASC_CHOICES(WS, 1, \"2\")", 1, "WS=1", "WS=1");
    reads("ASC_CHOICES(A23456789012345678901234567890123456789012345678901234567890, 1, 12, 123)", 2,
          "A23456789012345678901234567890123456789012345678901234567890=1",
          "A23456789012345678901234567890123456789012345678901234567890=12"); /* 63 bytes and the end */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices), cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
