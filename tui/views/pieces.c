/* Small drawing helpers and facts that views and panels share. */
#include "engine/session/look.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct rect view_body(int cols, int rows)
{
    return (struct rect){2, 0, rows - 4, cols};
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

const struct asc_problem *shown_problem(const struct session *s)
{
    return s->run.trace ? &s->run.trace->problem : &s->subject.scenario.problem;
}

bool session_failed_to_show(const struct session *s)
{
    if (s->job.phase != PHASE_FAILED)
        return false;
    return !s->run.trace || (s->job.err.code != ERR_RUN && s->job.err.code != ERR_CANCELLED);
}

const struct verdict *cursor_verdict(const struct session *s, bool global)
{
    const struct place place = session_place(s);
    if (!s->run.trace || !s->run.judgement || place.slot < 0 || !trace_has(s->run.trace, place.channel) ||
        !judgement_slot_done(s->run.judgement, place.slot))
        return NULL;
    const struct tile_verdicts *tile = judgement_tile(s->run.judgement, place);
    const struct verdict *v = global ? &tile->global : &tile->local;
    return v->judged ? v : NULL;
}

bool cursor_has_detail(const struct session *s)
{
    const struct tile_detail *d = &s->tile.detail;
    return d->got && d->rows > 0 && d->cols > 0 && d->channel == (int)s->at.cursor.channel &&
           (!channel_per_kv(s->at.cursor.channel) || d->kv == s->at.cursor.kv_tile);
}

void tile_words(const struct session *s, struct place place, char *out, size_t bytes)
{
    char batch[16] = "", kv[16] = "";
    out[0] = '\0';
    if (!s->run.trace || place.slot < 0)
        return;
    const int32_t *at = trace_slot_place(s->run.trace, place.slot);
    if (s->run.trace->problem.batch > 1)
        snprintf(batch, sizeof batch, "b%d ", (int)at[0]);
    if (channel_per_kv(place.channel))
        snprintf(kv, sizeof kv, " k%d", place.kv);
    snprintf(out, bytes, "%sh%d q%d%s", batch, (int)at[1], (int)at[2], kv);
}

void place_words(const struct session *s, struct place place, char *out, size_t bytes)
{
    char tile[64];
    tile_words(s, place, tile, sizeof tile);
    snprintf(out, bytes, "%s%s%s", session_label(s, place.channel), tile[0] ? " " : "", tile);
}

struct view_answer act_on_element(const struct session *s, struct view_state *vs, enum action a, int times)
{
    static const struct {
        enum action action, means;
        int times;
    } within[] = {{ACTION_KV_PREV, ACTION_COL_PREV, 1},          {ACTION_KV_NEXT, ACTION_COL_NEXT, 1},
                  {ACTION_Q_PREV, ACTION_ROW_PREV, 1},           {ACTION_Q_NEXT, ACTION_ROW_NEXT, 1},
                  {ACTION_PAGE_UP, ACTION_ROW_PREV, PAGE_TILES}, {ACTION_PAGE_DOWN, ACTION_ROW_NEXT, PAGE_TILES}};
    (void)s;
    (void)vs;
    for (size_t i = 0; i < sizeof within / sizeof *within; i++)
        if (within[i].action == a)
            return (struct view_answer){
                .does = ANSWER_MEANS, .action = within[i].means, .times = within[i].times * times};
    return a == ACTION_ZOOM ? (struct view_answer){.does = ANSWER_OPENS, .view = VIEW_SOURCE} : (struct view_answer){0};
}

void looks_words(const struct session *s, char *out, size_t bytes)
{
    const struct laboratory_state *x = session_looked(s);
    out[0] = '\0';
    if (!s->run.trace)
        snprintf(out, bytes, "no run yet");
    else if (!x)
        snprintf(out, bytes, "…");
    else if (x->failed)
        snprintf(out, bytes, "out of memory");
    else if (x->stopped && x->total)
        snprintf(out, bytes, "stopped at %d of %d: x goes on", x->done, x->total);
    else if (x->total)
        snprintf(out, bytes, "%d of %d, x stops", x->done, x->total);
}

const char *looks_number(char out[LOOKS_NUMBER], double value)
{
    if (isnan(value))
        snprintf(out, LOOKS_NUMBER, "–");
    else if (isinf(value))
        snprintf(out, LOOKS_NUMBER, "%s∞", value < 0 ? "−" : "");
    else
        snprintf(out, LOOKS_NUMBER, "%.3g", value);
    return out;
}

void looks_cell(struct canvas *c, struct rect area, int row, int end, enum style style, double value)
{
    char text[LOOKS_NUMBER];
    looks_number(text, value);
    canvas_put(c, area, row, end - text_columns(text), style, text);
}
