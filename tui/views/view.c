#include "tui/views/view.h"

#include "tui/screen/text_flow.h"
#include "tui/views/layout.h"
#include "tui/views/panels.h"
#include <stdio.h>
#include <string.h>

#define VIEW(id, name, title, ops, about) extern const struct view ops;
#include "tui/views/views.def"
#undef VIEW

const struct view *const views[VIEW_COUNT] = {
#define VIEW(id, name, title, ops, about) &(ops),
#include "tui/views/views.def"
#undef VIEW
};

static const struct {
    const char *name, *title;
} words[VIEW_COUNT] = {
#define VIEW(id, name, title, ops, about) {name, title},
#include "tui/views/views.def"
#undef VIEW
};

const char *view_name(enum view_id id)
{
    return words[id].name;
}

const char *view_title(enum view_id id)
{
    return words[id].title;
}

int view_from_name(const char *name)
{
    for (int v = 0; v < VIEW_COUNT; v++)
        if (strcmp(words[v].name, name) == 0)
            return v;
    return -1;
}

void view_draw(enum view_id id, const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct screen_layout layout;
    canvas_clear(c);
    if (c->hits)
        c->hits->n = 0;
    if (screen_layout(c->cols, c->rows, 0, 0, &layout) != 0) {
        const struct rect all = {0, 0, c->rows, c->cols};
        char words[64];
        snprintf(words, sizeof words, "terminal too small: need %dx%d, have %dx%d", SCREEN_MIN_COLS, SCREEN_MIN_ROWS,
                 c->cols, c->rows);
        struct text_flow f = {.canvas = c, .area = all};
        flow_put(&f, STYLE_WARNING, words);
        if (s->run.judgement && s->run.judgement->complete) /* the answer all the same */
            flow_put(&f, STYLE_STRONG, session_verdict_word(s));
        if (s->run.finding)
            flow_put(&f, STYLE_BAD, s->run.finding->text);
        flow_put(&f, STYLE_DIM, "q leaves");
        return;
    }
    struct canvas part = *c;
    part.rows = pins_view_rows(s, c->rows);
    views[id]->draw(s, &part, vs);
    pins_draw(s, c, part.rows, vs);
    c->no_memory = part.no_memory || session_lacks_memory(s);
}

int view_clamp_top(enum view_id id, const struct session *s, const struct view_state *vs, int cols, int rows, int top)
{
    if (!views[id]->lines)
        return 0;
    int last = views[id]->lines(s, vs, cols) - view_body(cols, pins_view_rows(s, rows)).rows;
    if (top > last)
        top = last;
    return top > 0 ? top : 0;
}

int view_start_top(enum view_id id, const struct session *s, int cols, int rows)
{
    const struct view_state vs = {0};
    return views[id]->start ? view_clamp_top(id, s, &vs, cols, rows, views[id]->start(s, cols, pins_view_rows(s, rows)))
                            : 0;
}

struct view_answer view_act(enum view_id id, const struct session *s, int cols, int rows, struct view_state *vs,
                            enum action a, int times)
{
    const struct view *v = views[id];
    const int by = list_moves(a, view_body(cols, rows).rows);
    const struct view_answer own = v->act ? v->act(s, vs, a, times) : (struct view_answer){0};
    if (own.does != ANSWER_PASSES || by == 0 || (!v->count && !v->lines))
        return own;
    if (v->count)
        vs->selected = list_selected(list_selected(vs->selected, v->count(s)) + by * times, v->count(s));
    else
        vs->top = view_clamp_top(id, s, vs, cols, rows, vs->top + by * times);
    return (struct view_answer){.does = ANSWER_DID};
}
