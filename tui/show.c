#include "tui/show.h"

#include "engine/base/clock.h"
#include "tui/screen/svg.h"
#include "tui/views/layout.h"
#include "tui/views/view.h"
#include <stdio.h>
#include <string.h>

#define MAX_SIDE 2000

/* A canvas of the caller's with the view on it. */
static int show(const struct session *s, enum view_id view, int cols, int rows, bool ascii, struct canvas *canvas,
                struct err *err)
{
    if (cols < 1 || rows < 1 || cols > MAX_SIDE || rows > MAX_SIDE)
        return err_set(err, ERR_USAGE, "", "a screen of %dx%d: expected columns and rows from 1 to %d", cols, rows,
                       MAX_SIDE);
    if (cols < SCREEN_MIN_COLS || rows < SCREEN_MIN_ROWS)
        return err_set(err, ERR_TERMINAL, "", "screen too small: need %dx%d, have %dx%d", SCREEN_MIN_COLS,
                       SCREEN_MIN_ROWS, cols, rows);
    if (canvas_init(canvas, cols, rows, ascii) != 0)
        return err_no_memory(err, "", "a screen of %dx%d", cols, rows);
    const struct view_state vs = {.now = clock_seconds(),
                                  .top = view_start_top(view, s, cols, rows),
                                  .selected = views[view]->begin ? views[view]->begin(s) : 0};
    view_draw(view, s, canvas, &vs);
    if (canvas->no_memory) {
        canvas_free(canvas);
        return err_no_memory(err, "", "all of the screen");
    }
    return 0;
}

int tui_show(const struct session *s, enum view_id view, int cols, int rows, bool ascii, FILE *out, struct err *err)
{
    struct canvas canvas;
    if (show(s, view, cols, rows, ascii, &canvas, err) != 0)
        return -1;
    const bool failed = canvas_write_text(&canvas, out) != 0 || fflush(out) != 0;
    canvas_free(&canvas);
    return failed ? err_errno(err, "", "the screen cannot be written") : 0;
}

int tui_picture(const struct session *s, enum view_id view, int cols, int rows, bool ascii, const struct theme *theme,
                FILE *out, struct err *err)
{
    struct canvas canvas;
    if (show(s, view, cols, rows, ascii, &canvas, err) != 0)
        return -1;
    const bool failed = canvas_write_svg(&canvas, theme, out) != 0 || fflush(out) != 0;
    canvas_free(&canvas);
    return failed ? err_errno(err, "", "the picture cannot be written") : 0;
}
