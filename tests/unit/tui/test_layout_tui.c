#include "tui/views/layout.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void check(int cols, int rows, int finding)
{
    static unsigned char taken[120][320];
    struct screen_layout l;
    assert_int_equal(screen_layout(cols, rows, 0, finding, &l), 0);
    const struct rect panels[] = {l.header,       l.strip,       l.facts,   l.finding,     l.map,      l.state,
                                  l.tile,         l.element,     l.source,  l.legend,      l.top_rule, l.state_rule,
                                  l.element_rule, l.source_rule, l.divider, l.bottom_rule, l.keys};
    memset(taken, 0, sizeof taken);
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++) {
        const struct rect *p = &panels[i];
        if (p->rows < 0 || p->cols < 0 || p->row < 0 || p->col < 0 || p->row + p->rows > rows ||
            p->col + p->cols > cols)
            fail_msg("%dx%d: panel %zu leaves the screen: %d,%d %dx%d", cols, rows, i, p->row, p->col, p->rows,
                     p->cols);
        for (int r = p->row; r < p->row + p->rows; r++)
            for (int c = p->col; c < p->col + p->cols; c++)
                if (taken[r][c]++)
                    fail_msg("%dx%d: panel %zu overlaps another at %d,%d", cols, rows, i, r, c);
    }
    /* What no screen may lack. */
    assert_true(l.tile.rows >= 5 && l.tile.cols >= 60);
    assert_true(l.finding.rows >= 2 && l.finding.rows >= (finding < 4 ? finding : 4));
    assert_int_equal(l.keys.rows, 1);
    assert_true(cols < 80 || l.map.cols >= 15);
    if (cols >= 80 && rows >= 24) {
        assert_true(l.map.rows >= 10 - (l.finding.rows - 2));
        assert_true(l.source.rows >= 3 - (l.finding.rows > 2));
        assert_true(l.state.rows >= 4);
    }
}

static void panels_never_overlap(void **state)
{
    (void)state;
    for (int rows = SCREEN_MIN_ROWS; rows <= 120; rows++)
        for (int cols = SCREEN_MIN_COLS; cols <= 320; cols += cols < 130 ? 1 : 7)
            for (int finding = 0; finding < 12; finding += 3)
                check(cols, rows, finding);
}

static void small_screens_are_refused(void **state)
{
    (void)state;
    struct screen_layout l;
    assert_int_equal(screen_layout(59, 24, 0, 0, &l), -1);
    assert_int_equal(screen_layout(80, 15, 0, 0, &l), -1);
    assert_int_equal(screen_layout(0, 0, 0, 0, &l), -1);
    assert_int_equal(l.map.rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_never_overlap),
        cmocka_unit_test(small_screens_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
