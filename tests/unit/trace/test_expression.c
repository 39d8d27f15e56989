#include "engine/trace/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t at[EXPRESSION_WHOLE] = {7, 3, 2, 1, 10, 20}; /* i, j, h, b, q_len, kv_len */

static void test_values(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"1 + 2 * 3", 7},
                 {"(1 + 2) * 3", 9},
                 {"10 - 4 - 3", 3},
                 {"100 / 10 / 5", 2},
                 {"-7 / 2", -3},
                 {"-7 % 3", -1},
                 {"- -i", 7},
                 {"!i + 1", 1},
                 {"!(i == 7) + 5", 5},
                 {"1 < 2 == 1", 1},
                 {"i > j", 1},
                 {"i >= 7", 1},
                 {"j > 3", 0},
                 {"i != 7", 0},
                 {"0 && 0 || 1", 1},
                 {"1 || 0 && 0", 1},
                 {"i && j", 1}, /* 1, not 3 */
                 {"1 ? 2 : 0 ? 3 : 4", 2},
                 {"0 ? 2 : 0 ? 3 : 4", 4},
                 {"0 || 1 ? 5 : 6", 5},
                 {"1 ? 0 ? 8 : 9 : 4", 9},
                 {"min(i, j) * 10 + max(i, j)", 37},
                 {"abs(j - i) + h * b", 6},
                 {"q_len-kv_len", -10},
                 {"0 && 1 / 0", 0},
                 {"1 || 1 / 0", 1},
                 {"j == 0 ? 1 / 0 : 4", 4},
                 {"9223372036854775807", INT64_MAX},
                 {"\t i\t", 7}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct expression e;
        char why[EXPRESSION_WHY_BYTES];
        int64_t value = -99;
        if (expression_parse(cases[i].text, false, &e, why) != 0)
            fail_msg("%s: %s", cases[i].text, why);
        if (!expression_whole(&e, e.n - 1, at, &value) || value != cases[i].value)
            fail_msg("%s is %lld", cases[i].text, (long long)value);
    }
}

static void test_no_value(void **state)
{
    static const char *const texts[] = {"1 / 0",
                                        "1 % (i - 7)",
                                        "9223372036854775807 + 1",
                                        "-9223372036854775807 - 2",
                                        "i * 9223372036854775807",
                                        "-(-9223372036854775807 - 1)",
                                        "abs(-9223372036854775807 - 1)",
                                        "(-9223372036854775807 - 1) / -1",
                                        "(-9223372036854775807 - 1) % -1",
                                        "1 && 1 / 0",
                                        "1 / 0 || 1",
                                        "1 / 0 ? 1 : 2"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct expression e;
        char why[EXPRESSION_WHY_BYTES];
        int64_t value;
        assert_int_equal(expression_parse(texts[i], false, &e, why), 0);
        if (expression_whole(&e, e.n - 1, at, &value))
            fail_msg("%s has a value", texts[i]);
    }
}

static void refuses(const char *text, bool scores, const char *said)
{
    struct expression e;
    char why[EXPRESSION_WHY_BYTES];
    if (expression_parse(text, scores, &e, why) == 0)
        fail_msg("%s is taken", text);
    if (!strstr(why, said) || strchr(why, '\n'))
        fail_msg("%s: %s; expected %s", text, why, said);
}

static void test_refused(void **state)
{
    char deep[512];
    (void)state;
    refuses("", false, "column 1: expected a number, a name or `(`, found the end");
    refuses("i <", false, "column 4: expected a number, a name or `(`, found the end");
    refuses("i = j", false, "column 3: expected an operator or the end, found `=`");
    refuses("i & j", false, "column 3: ");
    refuses("(i < j", false, "column 7: expected `)`, found the end");
    refuses("i < j)", false, "column 6: ");
    refuses("j ? 1", false, "column 6: expected `:`");
    refuses("min(i)", false, "column 6: expected `,`, found `)`");
    refuses("abs i", false, "column 5: expected `(`");
    refuses("i < k", false, "column 5: expected i, j, h, b, q_len, kv_len, abs, min or max, found `k`");
    refuses("3i", false, "column 1: expected a number, found `3i`");
    refuses("0x10", false, "column 1: expected a number");
    refuses("i < 0.5", false, "column 5: expected a whole number");
    refuses("tanh(i)", false, "column 1: ");
    refuses("s > 0", false, "column 1: ");
    refuses("9223372036854775808", false, "column 1: the number is too large");
    refuses("1e999", true, "column 1: the number is too large");
    refuses("s % 2", true, "column 3: % takes whole numbers");
    refuses("inf", true, "column 1: expected s, i, j");
    refuses("i \x1b[31m\xff", false, "column 3: expected an operator or the end, found `^[[31m<FF>`");
    refuses("i < \xe2\x80\xae", false, "found `<U+202E>`");
    for (int n = 1; n < 100; n += 98) { /* nested once: taken; 99 times: not */
        memset(deep, '(', (size_t)n);
        deep[n] = 'i';
        memset(deep + n + 1, ')', (size_t)n);
        deep[2 * n + 1] = '\0';
        struct expression e;
        char why[EXPRESSION_WHY_BYTES];
        assert_int_equal(expression_parse(deep, false, &e, why), n == 1 ? 0 : -1);
        if (n > 1)
            assert_non_null(strstr(why, "nested too deeply"));
    }
    memset(deep, '-', 200);
    strcpy(deep + 200, "i");
    refuses(deep, false, "nested too deeply");
    for (size_t i = 0; i < 250; i++)
        deep[i] = i % 2 ? '+' : 'i';
    strcpy(deep + 250, "i");
    refuses(deep, false, "too many parts");
}

static void test_uses(void **state)
{
    struct expression e;
    char why[EXPRESSION_WHY_BYTES];
    (void)state;
    assert_int_equal(expression_parse("s * .5 - 1e-3 * abs(i - j)", true, &e, why), 0);
    assert_int_equal(e.uses, 1u << EXPRESSION_I | 1u << EXPRESSION_J | 1u << EXPRESSION_S);
    assert_true(e.node[e.n - 1].real);
    assert_int_equal(expression_parse("j < 64 && h != b", true, &e, why), 0);
    assert_false(e.node[e.n - 1].real);
    assert_int_equal(expression_parse("s > 0 ? i : j", true, &e, why), 0);
    assert_true(e.node[e.n - 1].real);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_no_value),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_uses),
    };
    return cmocka_run_group_tests_name("expression", tests, NULL, NULL);
}
