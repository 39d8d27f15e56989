#include "tui/view.h"

#include "tui/actions.h"
#include "tui/layout.h"
#include "tui/panels.h"
#include <stdio.h>
#include <string.h>

const struct view views[VIEW_COUNT] = {
#define VIEW(id, name, title, draw, lines, start) {name, title, draw, lines, start},
#include "tui/views.def"
#undef VIEW
};

int view_from_name(const char *name)
{
    for (int v = 0; v < VIEW_COUNT; v++)
        if (strcmp(views[v].name, name) == 0)
            return v;
    return -1;
}

void view_draw(enum view_id id, const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct screen_layout layout;
    canvas_clear(c);
    if (screen_layout(c->cols, c->rows, &layout) != 0) {
        const struct rect all = {0, 0, c->rows, c->cols};
        canvas_printf(c, all, 0, 0, STYLE_WARNING, "terminal too small: need %dx%d, have %dx%d", SCREEN_MIN_COLS,
                      SCREEN_MIN_ROWS, c->cols, c->rows);
        return;
    }
    views[id].draw(s, c, vs);
}

struct rect view_body(int cols, int rows)
{
    return (struct rect){2, 0, rows - 4, cols};
}

int view_clamp_top(enum view_id id, const struct session *s, int cols, int rows, int top)
{
    if (!views[id].lines)
        return 0;
    int last = views[id].lines(s, cols) - view_body(cols, rows).rows;
    if (top > last)
        top = last;
    return top > 0 ? top : 0;
}

int view_start_top(enum view_id id, const struct session *s, int cols, int rows)
{
    return views[id].start ? view_clamp_top(id, s, cols, rows, views[id].start(s, cols, rows)) : 0;
}

void text_right(struct canvas *c, struct rect area, int row, enum style style, const char *text)
{
    canvas_put(c, area, row, area.cols - text_columns(text), style, text);
}

void rule_draw(struct canvas *c, struct rect area, const char *title, const char *right)
{
    canvas_fill(c, area, STYLE_RULE, "─");
    if (title && *title) {
        canvas_put(c, area, 0, 1, STYLE_RULE, " ");
        int used = canvas_put(c, area, 0, 2, STYLE_STRONG, title);
        canvas_put(c, area, 0, 2 + used, STYLE_RULE, " ");
    }
    if (right && *right) {
        int col = area.cols - 2 - text_columns(right);
        canvas_put(c, area, 0, col - 1, STYLE_RULE, " ");
        canvas_put(c, area, 0, col, STYLE_TEXT, right);
        canvas_put(c, area, 0, area.cols - 2, STYLE_RULE, " ");
    }
}

/* "n/N bad": keys before the last blank, what they do after it. */
static int hint_draw(struct canvas *c, struct rect area, int col, const char *hint)
{
    const char *what = strrchr(hint, ' ');
    int used = canvas_printf(c, area, 0, col, STYLE_KEY, "%.*s", what ? (int)(what - hint) : 0, hint);
    return used + canvas_put(c, area, 0, col + used, STYLE_TEXT, what ? what : hint);
}

void keys_draw(struct canvas *c, struct rect area)
{
    int last = area.cols, col = 0;
    for (int a = ACTION_COUNT; a-- > 0;) {
        const char *hint = action_text(a)->hint;
        if (hint[0] != '!')
            continue;
        last -= text_columns(hint + 1);
        hint_draw(c, area, last, hint + 1);
        last -= 2;
    }
    for (int a = 0; a < ACTION_COUNT; a++) {
        const char *hint = action_text(a)->hint;
        if (!hint[0] || hint[0] == '!')
            continue;
        if (col + text_columns(hint) > last)
            break;
        col += hint_draw(c, area, col, hint) + 2;
    }
}

void message_draw(const struct session *s, struct canvas *c, struct rect area)
{
    rule_draw(c, area, NULL, NULL);
    if (s->message[0]) {
        canvas_put(c, area, 0, 1, STYLE_RULE, " ");
        int used = canvas_put(c, area, 0, 2, STYLE_WARNING, s->message);
        canvas_put(c, area, 0, 2 + used, STYLE_RULE, " ");
    }
}

int window_first(int at, int visible, int n)
{
    int first = at - visible / 2;
    if (first > n - visible)
        first = n - visible;
    return first > 0 ? first : 0;
}

const struct asc_problem *shown_problem(const struct session *s)
{
    return s->trace ? &s->trace->problem : &s->scenario.problem;
}

int session_failed_to_show(const struct session *s)
{
    if (s->phase != PHASE_FAILED)
        return 0;
    return !s->trace || (s->err.code != ERR_RUN && s->err.code != ERR_CANCELLED);
}

const struct verdict *cursor_verdict(const struct session *s, int truth)
{
    const struct place place = session_place(s);
    if (!s->trace || !s->judgement || place.slot < 0 || !trace_has(s->trace, place.channel) ||
        !judgement_slot_done(s->judgement, place.slot))
        return NULL;
    const struct tile_verdicts *tile = judgement_tile(s->judgement, place);
    const struct verdict *v = truth ? &tile->global : &tile->local;
    return v->judged ? v : NULL;
}

int cursor_has_detail(const struct session *s)
{
    const struct tile_detail *d = &s->detail;
    return d->got && d->rows > 0 && d->cols > 0 && d->channel == (int)s->cursor.channel &&
           (!channel_per_kv(s->cursor.channel) || d->kv == s->cursor.kv_tile);
}

void place_words(const struct session *s, struct place place, char *out, size_t bytes)
{
    const char *label = channel_label(place.channel);
    if (!s->trace || place.slot < 0) {
        snprintf(out, bytes, "%s", label);
        return;
    }
    const int32_t *at = trace_slot_place(s->trace, place.slot);
    char batch[16] = "", kv[16] = "";
    if (s->trace->problem.batch > 1)
        snprintf(batch, sizeof batch, " b%d", (int)at[0]);
    if (channel_per_kv(place.channel))
        snprintf(kv, sizeof kv, " k%d", place.kv);
    snprintf(out, bytes, "%s%s h%d q%d%s", label, batch, (int)at[1], (int)at[2], kv);
}
