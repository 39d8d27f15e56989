#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/study/text_diff.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "@9/8 -gone +new" */
static void is(const char *before, const char *now, int context, const char *expected)
{
    struct text_diff d;
    char made[2048] = "";
    assert_int_equal(text_diff_make(before, now, context, &d), 0);
    for (size_t i = 0; i < d.n; i++) {
        const struct diff_line *l = &d.lines[i];
        char place[32] = "";
        if (l->op == '@')
            snprintf(place, sizeof place, "%d/%d", l->before, l->now);
        snprintf(made + strlen(made), sizeof made - strlen(made), "%s%c%s%.*s", i ? " " : "",
                 l->op == ' ' ? '=' : l->op, place, (int)l->length, l->text);
    }
    assert_string_equal(made, expected);
    text_diff_free(&d);
}

static void lines(void **state)
{
    (void)state;
    is("a\nb\nc\n", "a\nb\nc\n", 3, "");
    is("a\nb\nc\n", "a\nx\nc\n", 3, "=a -b +x =c");
    is("a\nb\nc\n", "a\nc\n", 0, "@2/2 -b");
    is("a\nc\n", "a\nb\nc\n", 0, "@2/2 +b");
    is("", "a\n", 3, "+a");
    is("a\n", "", 3, "-a");
    is(NULL, NULL, 3, "");
    is(NULL, "a", 3, "+a");
    is("a\nb", "a\nb\n", 3, ""); /* a newline at the end is no line */
    is("a\n\nb\n", "a\nb\n", 0, "@2/2 -");
    /* What is common to both in the middle stays. */
    is("a\nb\nc\nd\ne\n", "x\nb\ny\nd\nz\n", 3, "-a +x =b -c +y =d -e +z");
    is("a\nb\na\nb\n", "b\na\nb\na\n", 3, "-a =b =a =b +a");
}

static void context(void **state)
{
    (void)state;
    is("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", 1, "@4/4 =4 -5 +five =6");
    is("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n", 1, "=1 -2 +two =3 @7/7 =7 -8 +eight =9");
    /* Two changes whose surroundings meet are shown together. */
    is("1\n2\n3\n4\n", "one\n2\n3\nfour\n", 1, "-1 +one =2 =3 -4 +four");
}

static void counts(void **state)
{
    (void)state;
    struct text_diff d;
    assert_int_equal(text_diff_make("a\nb\nc\n", "a\nx\ny\nz\nc\n", 3, &d), 0);
    assert_int_equal(d.added, 3);
    assert_int_equal(d.removed, 1);
    assert_int_equal(d.lines[1].op, '-');
    assert_int_equal(d.lines[1].before, 2);
    assert_int_equal(d.lines[4].op, '+');
    assert_int_equal(d.lines[4].now, 4);
    text_diff_free(&d);
}

/* Texts that are too large to compare line by line are right all the same: all of one, then all of the other. */
static void large(void **state)
{
    (void)state;
    char *a = NULL, *b = NULL;
    size_t bytes;
    FILE *out_a = open_memstream(&a, &bytes), *out_b = open_memstream(&b, &bytes);
    for (int i = 0; i < 3000; i++) {
        fprintf(out_a, i % 3 ? "a%d\n" : "both%d\n", i);
        fprintf(out_b, i % 3 ? "b%d\n" : "both%d\n", i);
    }
    fclose(out_a);
    fclose(out_b);
    struct text_diff d;
    assert_int_equal(text_diff_make(a, b, 3, &d), 0);
    assert_int_equal(d.added, 2999); /* the first line is the same */
    assert_int_equal(d.removed, 2999);
    text_diff_free(&d);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(context),
        cmocka_unit_test(counts),
        cmocka_unit_test(large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
