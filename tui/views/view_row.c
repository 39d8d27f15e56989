/* m, alpha and l of the cursor's row over the kv tiles: curves, and below them the numbers. */
#include "tui/screen/number.h"
#include "tui/screen/plot.h"
#include "tui/views/panels.h"
#include "tui/views/sign.h"
#include "tui/views/view_text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STATES = 3, SCALE_COLS = 9 };

static const enum asc_channel states[STATES] = {asc_m, asc_alpha, asc_l};

struct row_values {
    int n;               /* kv tiles */
    double *got[STATES]; /* [n]; NaN: not recorded, masked, not written */
    double *want[STATES];
};

/* What was captured; of an l in several lanes their sum. NaN where any of it is missing. */
static double captured(const struct session *s, enum asc_channel ch, int kv)
{
    const int slot = session_slot(s), row = s->at.cursor.row;
    if (slot < 0 || !trace_has(s->run.trace, ch) || sign_of_tile(s, (struct place){slot, kv, ch}) == STATUS_MASKED)
        return NAN;
    const struct tile tile = trace_tile(s->run.trace, ch, slot, kv);
    double sum = 0;
    if (!tile.data || row < 0 || row >= tile.valid_rows)
        return NAN;
    for (int lane = 0; lane < tile.cols; lane++) {
        const size_t i = (size_t)row * (size_t)tile.cols + (size_t)lane;
        sum += dtype_is_unwritten(tile.dtype, tile.data, i) ? NAN : dtype_load(tile.dtype, tile.data, i);
    }
    return sum;
}

/* values->got[0] holds all arrays; NULL where there is no memory. */
static void collect(const struct session *s, struct row_values *values)
{
    const int n = s->run.trace->layout.kv_tiles;
    double *all = malloc((size_t)n * 2 * STATES * sizeof *all);
    values->n = n;
    for (int k = 0; k < STATES; k++) {
        values->got[k] = all ? all + (ptrdiff_t)2 * k * n : NULL;
        values->want[k] = all ? all + (ptrdiff_t)(2 * k + 1) * n : NULL;
        for (int kv = 0; all && kv < n; kv++) {
            values->got[k][kv] = captured(s, states[k], kv);
            values->want[k][kv] = s->tile.row_want[states[k]] ? s->tile.row_want[states[k]][kv] : NAN;
        }
    }
}

static void scale_draw(struct canvas *c, struct rect area, int row, double value)
{
    char text[NUMBER_BYTES];
    canvas_printf(c, area, row, 0, STYLE_DIM, "%*s", SCALE_COLS - 1, number_signed(text, value, SCALE_COLS - 2));
}

/* One curve with its scale: a title, the curve, and the steps below it. */
static void curve_draw(const struct session *s, struct canvas *c, struct rect area, const struct row_values *values,
                       int k)
{
    const struct plot_series series[] = {{values->got[k], values->n, STYLE_TEXT, 0},
                                         {values->want[k], values->n, STYLE_KEY, 1}};
    const struct rect inside = {area.row + 1, area.col + SCALE_COLS, area.rows - 2, area.cols - SCALE_COLS - 1};
    char last[16];
    double low;
    double high;
    canvas_put(c, area, 0, SCALE_COLS, STYLE_STRONG, channel_label(states[k]));
    if (!plot_range(series, 2, &low, &high)) {
        canvas_put(c, area, 2, SCALE_COLS, STYLE_DIM, "nothing known");
        return;
    }
    scale_draw(c, area, 1, high);
    scale_draw(c, area, area.rows - 2, low);
    plot_draw(c, inside, series, 2, low, high);
    snprintf(last, sizeof last, "k%d", values->n - 1);
    canvas_put(c, area, area.rows - 1, SCALE_COLS, STYLE_DIM, "k0");
    if (values->n > 1)
        canvas_put(c, area, area.rows - 1, area.cols - 1 - text_columns(last), STYLE_DIM, last);
    canvas_put(c, area, area.rows - 1, SCALE_COLS + plot_column(inside.cols, values->n, s->at.cursor.kv_tile) / 2,
               STYLE_CURSOR, "◆");
}

struct kv_rows {
    const struct session *s;
    const struct row_values *values;
};

static void kv_row(const struct list *l, int kv, struct canvas *c, struct rect line)
{
    const struct kv_rows *rows = l->of;
    hit_add(c, line, (struct rect){0, 0, 1, line.cols}, HIT_KV, 0, kv, 0);
    canvas_printf(c, line, 0, 0, kv == l->selected ? STYLE_CURSOR : STYLE_DIM, "%4d", kv);
    for (int k = 0; k < STATES; k++) {
        char got[NUMBER_BYTES], want[NUMBER_BYTES];
        const enum tile_status sign = sign_of_tile(rows->s, (struct place){session_slot(rows->s), kv, states[k]});
        const double x = rows->values->got[k][kv], y = rows->values->want[k][kv];
        canvas_printf(c, line, 0, 6 + 24 * k, STYLE_TEXT, "%9s", isnan(x) ? "-" : number_signed(got, x, 9));
        canvas_printf(c, line, 0, 16 + 24 * k, STYLE_DIM, "%10s", isnan(y) ? "-" : number_signed(want, y, 9));
        canvas_put(c, line, 0, 27 + 24 * k, sign_style(sign), sign_glyph(sign));
    }
}

static void table_draw(const struct session *s, struct canvas *c, struct rect area, const struct row_values *values)
{
    const struct kv_rows rows = {s, values};
    const struct list list = {
        .of = &rows, .n = values->n, .selected = s->at.cursor.kv_tile, .kind = LIST_TABLE, .row = kv_row};
    int col = 6;
    canvas_put(c, area, 0, 0, STYLE_DIM, "   k");
    for (int k = 0; k < STATES; k++, col += 24)
        canvas_printf(c, area, 0, col, STYLE_DIM, "%*s%s %10s", 9 - text_columns(channel_label(states[k])), "",
                      channel_label(states[k]), "reference");
    list_draw(&list, c, (struct rect){area.row + 1, area.col, area.rows - 1, area.cols});
}

static void view_row_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    const struct rect body = view_body(c->cols, c->rows);
    char tile[64], title[96];
    struct row_values values;
    (void)vs;
    tile_words(s, (struct place){session_slot(s), s->at.cursor.kv_tile, asc_m}, tile, sizeof tile);
    snprintf(title, sizeof title, "row %d of %s", s->at.cursor.row, tile[0] ? tile : "this tile");
    view_frame_draw(s, c, VIEW_ROW, title, c->ascii ? "captured ***, reference ..." : "captured ⠤⠤, reference ⠄ ⠄");
    if (!s->run.trace || session_slot(s) < 0) {
        canvas_put(c, body, 1, 3, STYLE_DIM, s->run.trace ? "not recorded" : "no run yet");
        return;
    }
    collect(s, &values);
    if (!values.got[0]) {
        c->no_memory = true;
        return;
    }
    const int high = body.rows / 2, wide = body.cols / STATES;
    for (int k = 0; k < STATES; k++)
        curve_draw(s, c, (struct rect){body.row, body.col + k * wide, high, wide}, &values, k);
    table_draw(s, c, (struct rect){body.row + high, 1, body.rows - high, body.cols - 2}, &values);
    free(values.got[0]);
}

const struct view view_row = {.draw = view_row_draw};
