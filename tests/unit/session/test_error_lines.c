#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session/error_lines.h"
#include <stdio.h>
#include <string.h>

/* "E k.cu:12 words|..." */
static void are(const char *where, const char *message, const char *expected)
{
    static const char kinds[] = "-NWE";
    static struct error_line lines[ERROR_LINES_MAX];
    struct err err;
    char made[2048] = "";
    err_set(&err, ERR_BUILD, where, "%s", message);
    const int n = error_lines(&err, lines);
    for (int i = 0; i < n; i++)
        snprintf(made + strlen(made), sizeof made - strlen(made), "%s%c %s:%d %.*s", i ? "|" : "", kinds[lines[i].kind],
                 lines[i].file, lines[i].line, (int)lines[i].length, lines[i].text);
    assert_string_equal(made, expected);
}

/* The first line's place is where the error is. */
static void first_line(void **state)
{
    (void)state;
    are("k.cu:7", "expected ';'\n    7 | int x\n      |      ^",
        "E k.cu:7 expected ';'|- k.cu:7     7 | int x|- k.cu:7       |      ^");
    are("k.cu:7:3: key", "expected a number", "E k.cu:7 expected a number");
    are("", "no memory", "- :0 no memory");
    are("k.cu", "does not register a kernel", "- :0 does not register a kernel");
    are("k.cu:3", "x.h:9:1: error: expected '}'", "E x.h:9 x.h:9:1: error: expected '}'");
    are("k.cu:0", "none", "- :0 none"); /* there is no line 0 */
    are("k.cu:99999999999999999999", "none", "- :0 none");
    are("k.cu:1", "", "");
}

/* Errors come first, each with what belongs to it; the others keep their order. */
static void errors_first(void **state)
{
    (void)state;
    are("k.cu:2",
        "first\n"
        "k.cu:5:1: warning: unused\n"
        "    5 | int y;\n"
        "k.cu: In function 'void f()':\n"
        "k.cu:9:4: error: 'z' was not declared\n"
        "k.cu:8:4: note: here\n"
        "k.cu:11: warning: last",
        "E k.cu:2 first|"
        "- k.cu:9 k.cu: In function 'void f()':|"
        "E k.cu:9 k.cu:9:4: error: 'z' was not declared|"
        "N k.cu:8 k.cu:8:4: note: here|"
        "W k.cu:5 k.cu:5:1: warning: unused|"
        "- k.cu:5     5 | int y;|"
        "W k.cu:11 k.cu:11: warning: last");
    are("k.cu:1",
        "k.cu: In instantiation of 'f<int>':\n"
        "k.cu:40:12:   required from here\n"
        "k.cu:3:5: error: no member\n"
        "    3 | x",
        "- k.cu:3 k.cu: In instantiation of 'f<int>':|"
        "- k.cu:3 k.cu:40:12:   required from here|"
        "E k.cu:3 k.cu:3:5: error: no member|"
        "- k.cu:3     3 | x");
}

/* As many as there is room for, and no more. */
static void many(void **state)
{
    (void)state;
    static struct error_line lines[ERROR_LINES_MAX];
    struct err err;
    char text[2001] = "";
    for (int i = 0; i < 2000; i++)
        text[i] = i % 2 ? '\n' : ':';
    err_set(&err, ERR_BUILD, "k.cu:1", "%s", text);
    assert_int_equal(error_lines(&err, lines), ERROR_LINES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_line),
        cmocka_unit_test(errors_first),
        cmocka_unit_test(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
