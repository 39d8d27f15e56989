/* The tile map: q tiles down, kv tiles across, one glyph each; and the heads. */
#include "tui/views/panels.h"

#include "tui/views/sign.h"
#include <stdio.h>

void map_title(const struct session *s, char *out, size_t bytes)
{
    const struct cursor *cur = &s->at.cursor;
    const struct asc_problem *p = shown_problem(s);
    if (p->batch > 1)
        snprintf(out, bytes, "%s b%d h%d/%d", session_label(s, cur->channel), cur->batch, cur->head, (int)p->heads);
    else
        snprintf(out, bytes, "%s head %d/%d", session_label(s, cur->channel), cur->head, (int)p->heads);
}

/* What of the map is visible. */
struct window {
    int label_cols, step; /* columns per tile */
    int first_q, q, first_kv, kv, kv_tiles;
};

static struct window make_window(const struct session *s, struct rect area, int rows)
{
    const struct layout *l = &s->run.trace->layout;
    struct window w = {.label_cols = 4, .step = 1, .q = rows, .kv_tiles = 1};
    if (channel_per_kv(s->at.cursor.channel))
        w.kv_tiles = l->kv_tiles;
    const int longest = l->q_tiles > w.kv_tiles ? l->q_tiles : w.kv_tiles;
    if (longest > 100) /* "q99 ", "q999 ", "q99999 " */
        w.label_cols = longest > 1000 ? 7 : 5;
    int room = area.cols - w.label_cols;
    if (w.kv_tiles > room)
        room--; /* for the sign that there are more */
    if (area.cols >= 24 && w.kv_tiles * 2 <= room)
        w.step = 2;
    w.kv = room / w.step < w.kv_tiles ? room / w.step : w.kv_tiles;
    if (w.q > l->q_tiles)
        w.q = l->q_tiles;
    w.first_kv = w.kv_tiles > 1 ? window_first(s->at.cursor.kv_tile, w.kv, w.kv_tiles) : 0;
    w.first_q = window_first(s->at.cursor.q_tile, w.q, l->q_tiles);
    return w;
}

static void columns_draw(struct canvas *c, struct rect area, const struct window *w)
{
    if (w->kv_tiles == 1)
        canvas_put(c, area, 0, 0, STYLE_DIM, "kv  all");
    else if (w->kv < w->kv_tiles)
        canvas_printf(c, area, 0, 0, STYLE_DIM, "k%d", w->first_kv);
    else
        canvas_put(c, area, 0, 0, STYLE_DIM, "kv");
    for (int i = 0; w->kv_tiles > 1 && i < w->kv; i++)
        canvas_printf(c, area, 0, w->label_cols + i * w->step, STYLE_DIM, "%d", (w->first_kv + i) % 10);
    if (w->kv_tiles > 1 && w->first_kv + w->kv < w->kv_tiles)
        canvas_put(c, area, 0, w->label_cols + (w->kv - 1) * w->step + 1, STYLE_DIM, "→");
}

static void tiles_draw(const struct session *s, struct canvas *c, struct rect area, const struct window *w)
{
    const struct cursor *cur = &s->at.cursor;
    const struct rect tiles = {1, w->label_cols, w->q, w->kv * w->step};
    hit_add(c, area, tiles, HIT_TILE, w->first_q, w->kv_tiles > 1 ? w->first_kv : -1, w->kv_tiles > 1 ? w->step : 0);
    for (int r = 0; r < w->q; r++) {
        const int q = w->first_q + r, slot = trace_slot(s->run.trace, cur->batch, cur->head, q);
        const int used = canvas_printf(c, area, 1 + r, 0, STYLE_DIM, "q%d", q);
        const char *more = r == 0 && q > 0 ? "↑" : r + 1 == w->q && q + 1 < s->run.trace->layout.q_tiles ? "↓" : "";
        if (used < w->label_cols)
            canvas_put(c, area, 1 + r, used, STYLE_DIM, more);
        for (int i = 0; i < w->kv; i++) {
            const struct place place = {slot, w->kv_tiles > 1 ? w->first_kv + i : 0, cur->channel};
            const int col = w->label_cols + i * w->step;
            const bool here = q == cur->q_tile && (w->kv_tiles == 1 || place.kv == cur->kv_tile);
            const enum tile_status sign = sign_of_tile(s, place);
            canvas_put(c, area, 1 + r, col, here ? STYLE_CURSOR : sign_style(sign), here ? "◆" : sign_glyph(sign));
        }
    }
}

/* "heads 0✗1✗2·", or one glyph each where that has no room; arrows where there are more. */
static void heads_draw(const struct session *s, struct canvas *c, struct rect area, int row)
{
    const struct asc_problem *p = &s->run.trace->problem;
    const int n = p->batch * p->heads, at = s->at.cursor.batch * p->heads + s->at.cursor.head;
    const int digits = n > 100 ? 3 : n > 10 ? 2 : 1;
    const bool numbered = area.cols >= 24;
    const int start = 6, step = numbered ? digits + (digits > 1 ? 2 : 1) : 1;
    int visible = (area.cols - start) / step;
    if (visible >= n)
        visible = n;
    else
        visible = (area.cols - start - 1) / step;
    const int first = window_first(at, visible, n);
    canvas_put(c, area, row, 0, STYLE_DIM, "heads");
    hit_add(c, area, (struct rect){row, start, 1, visible * step}, HIT_HEAD, 0, first, step);
    if (first > 0)
        canvas_put(c, area, row, start - 1, STYLE_DIM, "←");
    if (first + visible < n)
        canvas_put(c, area, row, start + visible * step, STYLE_DIM, "→");
    for (int i = 0; i < visible; i++) {
        const int head = first + i, col = start + i * step;
        const enum tile_status sign = sign_of_head(s, head / p->heads, head % p->heads);
        const enum style style = head == at ? STYLE_CURSOR : sign_style(sign);
        if (numbered)
            canvas_printf(c, area, row, col, head == at ? STYLE_CURSOR : STYLE_TEXT, "%*d", digits, head);
        canvas_put(c, area, row, col + (numbered ? digits : 0), style, sign_glyph(sign));
    }
}

void map_draw(const struct session *s, struct canvas *c, struct rect area)
{
    if (!s->run.trace || !s->run.judgement || area.rows < 3)
        return;
    const struct window w = make_window(s, area, area.rows - 2);
    columns_draw(c, area, &w);
    tiles_draw(s, c, area, &w);
    /* A blank line before the heads where there is room for it. */
    const int below = 1 + w.q;
    heads_draw(s, c, area, below + (area.rows >= below + 2 && area.cols >= 24));
}
