#include "tui/views/view.h"

#include "tui/screen/hits.h"
#include "tui/screen/text_flow.h"
#include "tui/views/layout.h"
#include "tui/views/panels.h"
#include <stdio.h>
#include <string.h>

const struct view views[VIEW_COUNT] = {
#define VIEW(id, name, title, draw, lines, start) {name, title, draw, lines, start},
#include "tui/views/views.def"
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
    if (c->hits)
        c->hits->n = 0;
    if (screen_layout(c->cols, c->rows, 0, &layout) != 0) {
        const struct rect all = {0, 0, c->rows, c->cols};
        char words[64];
        snprintf(words, sizeof words, "terminal too small: need %dx%d, have %dx%d", SCREEN_MIN_COLS, SCREEN_MIN_ROWS,
                 c->cols, c->rows);
        struct text_flow f = {.canvas = c, .area = all};
        flow_put(&f, STYLE_WARNING, words);
        return;
    }
    struct canvas part = *c;
    part.rows = pins_view_rows(s, c->rows);
    views[id].draw(s, &part, vs);
    pins_draw(s, c, part.rows, vs);
    c->no_memory = part.no_memory || session_lacks_memory(s);
}

struct rect view_body(int cols, int rows)
{
    return (struct rect){2, 0, rows - 4, cols};
}

int view_clamp_top(enum view_id id, const struct session *s, int cols, int rows, int top)
{
    if (!views[id].lines)
        return 0;
    int last = views[id].lines(s, cols) - view_body(cols, pins_view_rows(s, rows)).rows;
    if (top > last)
        top = last;
    return top > 0 ? top : 0;
}

int view_start_top(enum view_id id, const struct session *s, int cols, int rows)
{
    return views[id].start ? view_clamp_top(id, s, cols, rows, views[id].start(s, cols, pins_view_rows(s, rows))) : 0;
}

void text_right(struct canvas *c, struct rect area, int row, enum style style, const char *text)
{
    canvas_put(c, area, row, area.cols - text_columns(text), style, text);
}

void rule_draw(struct canvas *c, struct rect area, const char *title, const char *right)
{
    /* A corner and a blank at each end; three columns between the texts. */
    const int room = area.cols - 4;
    int title_cols = title ? text_columns(title) : 0, right_cols = right ? text_columns(right) : 0;
    if (right_cols && title_cols + 3 + right_cols > room) {
        const int least = room / 2 < right_cols ? room / 2 : right_cols;
        right_cols = room - 3 - title_cols > least ? room - 3 - title_cols : least;
        title_cols = room - 3 - right_cols;
    }
    if (title_cols > room)
        title_cols = room;
    canvas_fill(c, area, STYLE_RULE, "─");
    if (title_cols > 0) {
        canvas_put(c, area, 0, 1, STYLE_RULE, " ");
        canvas_put_cut(c, (struct rect){area.row, area.col, 1, 2 + title_cols}, 0, 2, STYLE_STRONG, title);
        canvas_put(c, area, 0, 2 + title_cols, STYLE_RULE, " ");
    }
    if (right_cols > 0) {
        const int col = area.cols - 2 - right_cols;
        canvas_put(c, area, 0, col - 1, STYLE_RULE, " ");
        canvas_put_cut(c, (struct rect){area.row, area.col, 1, area.cols - 2}, 0, col, STYLE_TEXT, right);
        canvas_put(c, area, 0, area.cols - 2, STYLE_RULE, " ");
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

void tile_words(const struct session *s, struct place place, char *out, size_t bytes)
{
    char batch[16] = "", kv[16] = "";
    out[0] = '\0';
    if (!s->trace || place.slot < 0)
        return;
    const int32_t *at = trace_slot_place(s->trace, place.slot);
    if (s->trace->problem.batch > 1)
        snprintf(batch, sizeof batch, "b%d ", (int)at[0]);
    if (channel_per_kv(place.channel))
        snprintf(kv, sizeof kv, " k%d", place.kv);
    snprintf(out, bytes, "%sh%d q%d%s", batch, (int)at[1], (int)at[2], kv);
}

void place_words(const struct session *s, struct place place, char *out, size_t bytes)
{
    char tile[64];
    tile_words(s, place, tile, sizeof tile);
    snprintf(out, bytes, "%s%s%s", channel_label(place.channel), tile[0] ? " " : "", tile);
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
