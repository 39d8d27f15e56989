/* Pinned elements, a line each, above the last two lines of every view. */
#include "engine/oracle/element.h"
#include "engine/session/session.h"
#include "tui/screen/number.h"
#include "tui/views/panels.h"
#include "tui/views/sign.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FOOT_ROWS 2        /* the message and the keys */
#define LEAST_VIEW_ROWS 24 /* pins lie over the last rows of a view that has fewer without them */

int pins_view_rows(const struct session *s, int rows)
{
    return rows - s->at.pins.n >= LEAST_VIEW_ROWS ? rows - s->at.pins.n : rows;
}

/* As an element of a tile: blame is local, what is wrong only by the reference was given something wrong. */
static enum tile_status sign_of(const struct pin_value *local, const struct pin_value *global, bool by_reference)
{
    if (by_reference)
        return global->class;
    if (class_bad(local->class))
        return local->class;
    if (class_bad(global->class))
        return STATUS_UPSTREAM;
    return local->class == STATUS_UNJUDGED && global->class == STATUS_UNJUDGED ? STATUS_UNJUDGED : CLASS_OK;
}

static void number_or(char out[NUMBER_BYTES], double value, const char *otherwise)
{
    if (isnan(value))
        snprintf(out, NUMBER_BYTES, "%s", otherwise);
    else
        number_signed(out, value, 12);
}

/* "S h3 q17 k40 r3 c5", at the cursor's kv step */
static void place_of(const struct session *s, const struct pin *pin, char *out, size_t bytes)
{
    const struct cursor *c = &pin->at;
    char batch[16] = "", kv[16] = "";
    if (s->run.trace && s->run.trace->problem.batch > 1)
        snprintf(batch, sizeof batch, " b%d", c->batch);
    if (channel_per_kv(c->channel))
        snprintf(kv, sizeof kv, " k%d", s->at.cursor.kv_tile);
    snprintf(out, bytes, "%s%s h%d q%d%s r%d c%d", session_label(s, c->channel), batch, c->head, c->q_tile, kv, c->row,
             c->col);
}

static int place_columns(const struct session *s)
{
    int most = 0;
    for (int i = 0; i < s->at.pins.n; i++) {
        char place[64];
        place_of(s, &s->at.pins.at[i], place, sizeof place);
        most = text_columns(place) > most ? text_columns(place) : most;
    }
    return most;
}

static void pin_draw(const struct session *s, struct canvas *c, struct rect line, const struct pin *pin, int columns,
                     bool global)
{
    char place[64], got[NUMBER_BYTES], want[NUMBER_BYTES], ratio[NUMBER_BYTES] = "-";
    struct pin_value by[2]; /* by what was captured, by the reference */
    place_of(s, pin, place, sizeof place);
    canvas_fill(c, line, STYLE_TEXT, " ");
    canvas_put(c, line, 0, 0, STYLE_KEY, "◆");
    canvas_put(c, line, 0, 2, STYLE_STRONG, place);
    const int col = 4 + columns;
    if (!pin_value(pin, s->at.cursor.kv_tile, 0, &by[0]) || !pin_value(pin, s->at.cursor.kv_tile, 1, &by[1])) {
        canvas_put_cut(c, line, 0, col, STYLE_DIM, "not recorded in this run, or not judged yet");
        return;
    }
    const struct pin_value v = by[global];
    const enum tile_status sign = sign_of(&by[0], &by[1], global);
    number_or(got, v.got, sign == CLASS_MISSING || sign == STATUS_UNJUDGED ? "-" : "nan");
    number_or(want, v.want, "-");
    if ((v.bound > 0 && !isnan(v.got) && !isnan(v.want)) || v.got == v.want)
        number_ratio(ratio, element_ratio(captured_type(s, pin->at.channel), v.class, v.got, v.want, v.bound));
    canvas_put(c, line, 0, col, sign_style(sign), sign_glyph(sign));
    canvas_printf(c, line, 0, col + 2, STYLE_TEXT, "got %12s  want %12s  err/bound %s", got, want, ratio);
}

/* Moves what a view has drawn in the rows from `from` on down by n, with what clicks on it mean. */
static void move_down(struct canvas *c, int from, int rows, int n)
{
    const size_t cols = (size_t)c->cols;
    memmove(c->cells + (size_t)(from + n) * cols, c->cells + (size_t)from * cols,
            (size_t)rows * cols * sizeof *c->cells);
    for (int i = 0; c->hits && i < c->hits->n; i++)
        if (c->hits->at[i].area.row >= from)
            c->hits->at[i].area.row += n;
}

void pins_draw(const struct session *s, struct canvas *c, int view_rows, const struct view_state *vs)
{
    const int n = s->at.pins.n, columns = place_columns(s);
    if (c->rows > view_rows)
        move_down(c, view_rows - FOOT_ROWS, FOOT_ROWS, n);
    for (int i = 0; i < n; i++)
        pin_draw(s, c, (struct rect){c->rows - FOOT_ROWS - n + i, 0, 1, c->cols}, &s->at.pins.at[i], columns,
                 vs->global);
}
