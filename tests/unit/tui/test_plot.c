/* Curves at their edges: gaps, infinities, constant series, one point, no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tui/screen/plot.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *draw(int cols, int rows, int ascii, const struct plot_series *series, int n)
{
    struct canvas c;
    char *text = NULL;
    size_t bytes;
    double low;
    double high;
    assert_int_equal(canvas_init(&c, cols, rows, ascii), 0);
    plot_range(series, n, &low, &high);
    plot_draw(&c, (struct rect){0, 0, rows, cols}, series, n, low, high);
    FILE *out = open_memstream(&text, &bytes);
    canvas_write_text(&c, out);
    fclose(out);
    canvas_free(&c);
    return text;
}

static void expect(int cols, int rows, int ascii, const double *y, int n, const char *wanted)
{
    const struct plot_series series = {.y = y, .n = n};
    char *text = draw(cols, rows, ascii, &series, 1);
    if (strcmp(text, wanted) != 0)
        fail_msg("%s instead of %s", text, wanted);
    free(text);
}

static void lines(void **state)
{
    (void)state;
    expect(2, 1, 0, (double[]){0, 1, 2, 3}, 4, "⡠⠊\n");
    expect(2, 1, 0, (double[]){3, 2, 1, 0}, 4, "⠑⢄\n");
    expect(4, 1, 1, (double[]){0, 1, 2, 3}, 4, "****\n");
    expect(1, 2, 0, (double[]){0, 1}, 2, "⢸\n⡇\n");
}

static void gaps_and_infinities(void **state)
{
    (void)state;
    expect(3, 1, 0, (double[]){0, NAN, NAN, NAN, NAN, 1}, 6, "⡀ ⠈\n");
    expect(2, 1, 0, (double[]){NAN, NAN}, 2, "\n");
    expect(2, 2, 0, (double[]){0, NAN, INFINITY, NAN, -INFINITY, NAN, 1}, 7, "⠈⠈\n⡀⡀\n");
}

static void constants(void **state)
{
    (void)state;
    double low = 1;
    double high = 1;
    const double flat[] = {5, 5, 5}, none[] = {NAN, INFINITY}, zero[] = {0, 0}, huge[] = {-1.7e308, 1.7e308};
    assert_int_equal(plot_range(&(struct plot_series){.y = flat, .n = 3}, 1, &low, &high), 1);
    assert_true(low < 5 && high > 5 && high - low <= 0.006);
    assert_int_equal(plot_range(&(struct plot_series){.y = none, .n = 2}, 1, &low, &high), 0);
    assert_true(low == 0 && high == 0);
    assert_int_equal(plot_range(&(struct plot_series){.y = zero, .n = 2}, 1, &low, &high), 1);
    assert_true(low == 0 && high == 0);
    expect(2, 1, 0, zero, 2, "⠤⠤\n");
    expect(1, 1, 0, zero, 1, "⠄\n");
    expect(1, 1, 0, huge, 2, "⡜\n");
}

/* Nothing leaves the area, and none of it needs room. */
static void no_room(void **state)
{
    (void)state;
    struct canvas c;
    const double y[] = {0, 1, 2};
    const struct plot_series series = {.y = y, .n = 3};
    assert_int_equal(canvas_init(&c, 4, 2, 0), 0);
    plot_draw(&c, (struct rect){0, 0, 0, 4}, &series, 1, 0, 2);
    plot_draw(&c, (struct rect){1, 3, 5, 5}, &series, 1, 0, 2);
    plot_draw(&c, (struct rect){-3, -3, 3, 3}, &series, 1, 0, 2);
    for (int i = 0; i < 7; i++)
        assert_int_equal(c.cells[i].code, ' ');
    canvas_free(&c);
    assert_int_equal(plot_column(10, 1, 0), 0);
    assert_int_equal(plot_column(10, 5, 4), 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(gaps_and_infinities),
        cmocka_unit_test(constants),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
