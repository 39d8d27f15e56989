/* A declaration written into a registration, and the names it is written with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session/declare.h"
#include <stdlib.h>
#include <string.h>

/* The text with m_unit = log2 declared; NULL: it is refused, for a reason. */
static void becomes(const char *text, const char *expected, int line)
{
    const struct convention_line m_unit = {CONVENTION_OF_m_unit, NULL, "ASC_UNIT_LOG2"};
    struct declared_at at;
    const char *why;
    char *made = declare_in(text, &m_unit, &at, &why);
    if (!expected) {
        assert_null(made);
        assert_non_null(why);
        return;
    }
    assert_non_null(made);
    assert_null(why);
    assert_string_equal(made, expected);
    assert_int_equal(at.line, line);
    free(made);
}

#define LINE "kernel.m_unit = ASC_UNIT_LOG2;"

static void is_inserted(void **state)
{
    (void)state;
    becomes("ASC_KERNEL(k)\n{\n  kernel.br = 4;\n}\n", "ASC_KERNEL(k)\n{\n  " LINE "\n  kernel.br = 4;\n}\n", 3);
    becomes("ASC_KERNEL(k)\n{\n\tkernel.conventions.s_unit = A; // a\n\tf();\n}\n",
            "ASC_KERNEL(k)\n{\n\tkernel.conventions.s_unit = A; // a\n\t" LINE "\n\tf();\n}\n", 4);
    becomes("ASC_KERNEL(k)\n{\n kernel.s_unit =\n  A; /* a\n b */\n f();\n}\n",
            "ASC_KERNEL(k)\n{\n kernel.s_unit =\n  A; /* a\n b */\n " LINE "\n f();\n}\n", 6);
    becomes("ASC_KERNEL(k)\r\n{\r\n kernel.br = 1;\r\n}\r\n",
            "ASC_KERNEL(k)\r\n{\r\n " LINE "\r\n kernel.br = 1;\r\n}\r\n", 3);
    becomes("ASC_KERNEL(k) { kernel.s_unit = A; f(); }", "ASC_KERNEL(k) { kernel.s_unit = A; " LINE " f(); }", 1);
    becomes("ASC_KERNEL(k) {}", "ASC_KERNEL(k) { " LINE "}", 1);
    /* What is said for some problems alone is not where it goes. */
    becomes(
        "ASC_KERNEL(k)\n{\n kernel.s_unit = A;\n if (x) {\n  kernel.l_lanes = 4;\n }\n if (y)\n  kernel.l_sink = B;\n"
        "#if Z\n kernel.s_at = C;\n#endif\n kernel.run = [](auto &run) { kernel.max_nan = 1; };\n}\n",
        "ASC_KERNEL(k)\n{\n kernel.s_unit = A;\n " LINE "\n if (x) {\n  kernel.l_lanes = 4;\n }\n if (y)\n  "
        "kernel.l_sink = B;\n#if Z\n kernel.s_at = C;\n#endif\n kernel.run = [](auto &run) { kernel.max_nan = 1; "
        "};\n}\n",
        4);
    /* Words that are no code. */
    becomes(
        "// ASC_KERNEL(k) {\n/* ASC_KERNEL(k) { */ char c = '\"', *s = \"ASC_KERNEL(k) {\", *r = R\"x(\"{\n)\" )x\";\n"
        "int n = 1'000;\n#define F(x) { \\\n  ASC_KERNEL(x)\nASC_KERNEL(k)\n{\n // kernel.m_unit = A;\n}\n",
        "// ASC_KERNEL(k) {\n/* ASC_KERNEL(k) { */ char c = '\"', *s = \"ASC_KERNEL(k) {\", *r = R\"x(\"{\n)\" "
        ")x\";\nint n = 1'000;\n#define F(x) { \\\n  ASC_KERNEL(x)\nASC_KERNEL(k)\n{\n" LINE "\n // kernel.m_unit = "
        "A;\n}\n",
        9);
}

static void is_replaced(void **state)
{
    (void)state;
    becomes("ASC_KERNEL(k)\n{\n kernel.m_unit = ASC_UNIT_RAW; // a\n}\n",
            "ASC_KERNEL(k)\n{\n kernel.m_unit = ASC_UNIT_LOG2; // a\n}\n", 3);
    becomes("ASC_KERNEL(k) { kernel.s_unit = f(A, B), kernel.conventions . m_unit = f(A, B) , g(); }",
            "ASC_KERNEL(k) { kernel.s_unit = f(A, B), kernel.conventions . m_unit = ASC_UNIT_LOG2 , g(); }", 1);
}

/* Of ASC_RUN: what is set stands behind its name and its call. */
static void is_in_a_list(void **state)
{
    (void)state;
    becomes("ASC_RUN(k, run.o = f(a, b),\n  br = 4);\n",
            "ASC_RUN(k, run.o = f(a, b),\n  br = 4, m_unit = ASC_UNIT_LOG2);\n", 2);
    becomes("ASC_RUN(k, (m_unit = f<1, 2>(a)), bc = g(1, 2)\n);",
            "ASC_RUN(k, (m_unit = f<1, 2>(a)), bc = g(1, 2), m_unit = ASC_UNIT_LOG2\n);", 1);
    becomes("ASC_RUN(k, m_unit = 1, br = 4, m_unit_of = 2);",
            "ASC_RUN(k, m_unit = 1, br = 4, m_unit_of = 2, m_unit = ASC_UNIT_LOG2);", 1);
    becomes("ASC_RUN(k, f(),\n m_unit = h(A, B) , bc = 2);", "ASC_RUN(k, f(),\n m_unit = ASC_UNIT_LOG2 , bc = 2);", 2);
    becomes("ASC_RUN(k, f(), channel_dtype[asc_p] = A, m_unit=A);",
            "ASC_RUN(k, f(), channel_dtype[asc_p] = A, m_unit=ASC_UNIT_LOG2);", 1);
    becomes("ASC_RUN(k, f(), m_unit = A, m_unit = B);", NULL, 0);
    becomes("ASC_RUN(k, f());", NULL, 0);
    becomes("ASC_RUN(k, f(), br = 1", NULL, 0);
    becomes("ASC_RUN(k, f(),\n#if X\n br = 1\n#else\n br = 2\n#endif\n);", NULL, 0);
    becomes("ASC_RUN(k, f(), br = 1); ASC_KERNEL(k) {}", NULL, 0);
}

/* Where another value may stand by then, or the registration is not to be seen, nothing is written. */
static void is_refused(void **state)
{
    (void)state;
    static const char *const bodies[] = {"kernel.m_unit = A; kernel.m_unit = B;",
                                         "if (x) kernel.m_unit = A;",
                                         "if (x) { kernel.m_unit = A; }",
                                         "kernel.m_unit = kernel.s_unit = A;",
                                         "kernel.s_unit = kernel.m_unit = A;",
                                         "kernel.m_unit += 1;",
                                         "f(kernel.m_unit);",
                                         "if (x) kernel.s_unit = A, kernel.m_unit = B;",
                                         "\n#if X\nkernel.m_unit = A;\n#endif\n",
                                         "\n# ifdef X\nkernel.m_unit = A;\n#else\nkernel.m_unit = B;\n# endif\n",
                                         "for (;;) kernel.m_unit = A;",
                                         "else kernel.m_unit = A;",
                                         "kernel.m_unit = x ? A : [] { return B; }();"};
    char text[256];
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        snprintf(text, sizeof text, "ASC_KERNEL(k) { %s }", bodies[i]);
        becomes(text, NULL, 0);
    }
    becomes("", NULL, 0);
    becomes("int x;", NULL, 0);
    becomes("ASC_KERNEL(a) {} ASC_KERNEL(b) {}", NULL, 0);
    becomes("ASC_KERNEL(a);", NULL, 0);
    becomes("MY_ASC_KERNEL(a) {}", NULL, 0);
    becomes("ASC_KERNEL", NULL, 0);
    becomes("ASC_KERNEL(", NULL, 0);
    becomes("/* ASC_KERNEL(a) {", NULL, 0);
}

/* Each choice has one name in C, of that value. */
static void names(void **state)
{
    (void)state;
#define VALUES(...) __VA_ARGS__
#define CONVENTION(name, type, kind, low, high, choices, names, by_default, otherwise)                                 \
    {                                                                                                                  \
        static const int values[] = {VALUES names};                                                                    \
        const size_t n = CONVENTION_##kind == CONVENTION_CHOICE ? (size_t)(high) + 1 : 1;                              \
        assert_int_equal(sizeof values / sizeof *values, n);                                                           \
        for (size_t i = 0; i < n; i++)                                                                                 \
            assert_int_equal(values[i], i);                                                                            \
    }
#include "probes/conventions.def"
#undef CONVENTION
    char name[32];
    convention_c_name(CONVENTION_OF_acc_u, 8, name, sizeof name);
    assert_string_equal(name, "ASC_ACC_WGMMA_E4M3_F16");
    convention_c_name(CONVENTION_OF_acc_u, 9, name, sizeof name);
    assert_string_equal(name, "");
    convention_c_name(CONVENTION_OF_no_lse, 1, name, sizeof name);
    assert_string_equal(name, "1");
    convention_c_name(CONVENTION_OF_m_lag, 0, name, sizeof name);
    assert_string_equal(name, "");
    for (int i = 0; i < CONVENTIONS; i++)
        for (int value = 0; value <= conventions[i].high && conventions[i].kind == CONVENTION_CHOICE; value++) {
            convention_c_name(i, value, name, sizeof name);
            assert_true(name[0] && strlen(name) + 1 < sizeof name);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_inserted), cmocka_unit_test(is_replaced), cmocka_unit_test(is_in_a_list),
        cmocka_unit_test(is_refused),  cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
