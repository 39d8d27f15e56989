#include "tui/show.h"

#include "engine/base/clock.h"
#include "tui/keys/actions.h"
#include "tui/loop.h"
#include "tui/screen/svg.h"
#include "tui/views/layout.h"
#include "tui/views/view.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 2000

static int check_size(int cols, int rows, struct err *err)
{
    if (cols < 1 || rows < 1 || cols > MAX_SIDE || rows > MAX_SIDE)
        return err_set(err, ERR_USAGE, "", "a screen of %dx%d: expected columns and rows from 1 to %d", cols, rows,
                       MAX_SIDE);
    if (cols < SCREEN_MIN_COLS || rows < SCREEN_MIN_ROWS)
        return err_set(err, ERR_TERMINAL, "", "screen too small: need %dx%d, have %dx%d", SCREEN_MIN_COLS,
                       SCREEN_MIN_ROWS, cols, rows);
    return 0;
}

/* A canvas of the caller's with the view on it. */
static int show(const struct session *s, enum view_id view, int cols, int rows, bool ascii, int colors, bool light,
                struct canvas *canvas, struct err *err)
{
    if (check_size(cols, rows, err) != 0)
        return -1;
    if (canvas_init(canvas, cols, rows, ascii) != 0)
        return err_no_memory(err, "", "a screen of %dx%d", cols, rows);
    canvas->colors = ascii ? 0 : colors;
    canvas->light = light;
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
    if (show(s, view, cols, rows, ascii, 0, false, &canvas, err) != 0)
        return -1;
    const bool failed = canvas_write_text(&canvas, out) != 0 || fflush(out) != 0;
    canvas_free(&canvas);
    return failed ? err_errno(err, "", "the screen cannot be written") : 0;
}

int tui_picture(const struct session *s, enum view_id view, int cols, int rows, bool ascii, const struct theme *theme,
                FILE *out, struct err *err)
{
    struct canvas canvas;
    if (show(s, view, cols, rows, ascii, COLORS_ALL, theme->background == BACKGROUND_LIGHT, &canvas, err) != 0)
        return -1;
    const bool failed = canvas_write_svg(&canvas, theme, out) != 0 || fflush(out) != 0;
    canvas_free(&canvas);
    return failed ? err_errno(err, "", "the picture cannot be written") : 0;
}

enum { CAPTION_ROWS = 2, MOST_FRAMES = 200 };

/* Screens so far, each with the key that led to it below. */
struct reel {
    struct canvas canvas[MOST_FRAMES];
    struct svg_frame frame[MOST_FRAMES];
    int n;
    bool moves; /* false: the last one is enough */
    bool too_many, no_memory;
};

/* "Enter", and the first clause of what it does. */
static void caption_draw(struct canvas *c, const char *key)
{
    const struct rect line = {c->rows - 1, 1, 1, c->cols - 2};
    const int code = key_from_name(key);
    const enum action a = code == KEY_ID_NONE ? ACTION_NONE : action_of_key(code);
    const char *help = a == ACTION_NONE ? "" : action_text(a)->help;
    const size_t clause = strncmp(help, "view: ", 6) == 0 ? 6 + strcspn(help + 6, ",;:(") : strcspn(help, ",;:(");
    if (!*key)
        return;
    int col = canvas_printf(c, line, 0, 0, STYLE_HEADER, " %s ", key) + 2;
    canvas_printf(c, line, 0, col, STYLE_TEXT, "%.*s", (int)clause, help);
}

static void keep(void *ctx, const struct canvas *c, double seconds, const char *key)
{
    struct reel *reel = ctx;
    reel->too_many |= reel->n == MOST_FRAMES;
    if (!reel->moves && reel->n > 0)
        canvas_free(&reel->canvas[--reel->n]);
    if (reel->n == MOST_FRAMES)
        return;
    struct canvas *kept = &reel->canvas[reel->n];
    if (canvas_init(kept, c->cols, c->rows + (reel->moves ? CAPTION_ROWS : 0), c->ascii) != 0) {
        reel->no_memory = true;
        return;
    }
    memcpy(kept->cells, c->cells, (size_t)c->cols * (size_t)c->rows * sizeof *c->cells);
    if (reel->moves)
        caption_draw(kept, key);
    reel->frame[reel->n++] = (struct svg_frame){kept, seconds};
}

int tui_show_script(struct session *s, enum view_id view, const struct tui_script *script, FILE *out, struct err *err)
{
    const struct tui_options options = {.ascii = script->ascii, .view = view};
    struct reel *reel = calloc(1, sizeof *reel);
    if (!reel)
        return err_no_memory(err, "", "screens");
    reel->moves = script->moves;
    const struct tui_playing playing = {.cols = script->cols,
                                        .rows = script->rows,
                                        .colors = script->moves ? COLORS_ALL : 0,
                                        .light = script->theme && script->theme->background == BACKGROUND_LIGHT,
                                        .keys = script->keys,
                                        .shown = keep,
                                        .ctx = reel};
    int failed = check_size(script->cols, script->rows, err) != 0 || tui_play(s, &options, &playing, err) != 0;
    if (!failed && reel->no_memory)
        failed = err_no_memory(err, "", "screens");
    if (!failed && reel->too_many)
        failed = err_set(err, ERR_INPUT, script->keys, "leads to more than %d screens", MOST_FRAMES);
    if (!failed && ((script->moves ? canvas_write_movie(reel->frame, reel->n, script->theme, out)
                                   : canvas_write_text(&reel->canvas[reel->n - 1], out)) != 0 ||
                    fflush(out) != 0))
        failed = err_errno(err, "", "the screens cannot be written");
    for (int i = 0; i < reel->n; i++)
        canvas_free(&reel->canvas[i]);
    free(reel);
    return failed ? -1 : 0;
}
