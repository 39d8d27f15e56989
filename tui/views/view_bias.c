/* Biased rounding: a line for each stage, then the cursor's stage in the cursor's head over the kv steps, with curves
   that have error bars. */
#include "engine/session/look.h"

#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LABEL_COL = 2,
    VERDICT_COL = 8,
    EVIDENCE_COL = 22,
    WORDS_COL = 34,
    SIZE_COL = 19,
    PLOT_COL = 37,
    DRIFT_COLS = 15, /* of a number with its error */
    TABLE_ROWS = 3   /* rule, heads, titles */
};

static enum style style_of(enum rounding_state state)
{
    return state == ROUNDING_FOUND          ? STYLE_BAD
           : state == ROUNDING_NONE         ? STYLE_OK
           : state == ROUNDING_INCONCLUSIVE ? STYLE_WARNING
                                            : STYLE_DIM;
}

static const char *glyph_of(enum rounding_state state)
{
    return state == ROUNDING_FOUND ? "✗" : state == ROUNDING_NONE ? "·" : state == ROUNDING_INCONCLUSIVE ? "?" : "░";
}

static int head_of_cursor(const struct session *s)
{
    return s->at.cursor.batch * s->run.trace->problem.heads + s->at.cursor.head;
}

/* Without evidence there is more room for why. */
static int words_col(const struct rounding_cell *cell)
{
    return rounding_evidence_name(cell->evidence)[0] ? WORDS_COL : EVIDENCE_COL;
}

struct stage_rows {
    const struct rounding *b;
    enum asc_channel stage[ASC_CHANNELS];
};

static void stage_row(const struct list *l, int i, struct canvas *c, struct rect line)
{
    const struct stage_rows *rows = l->of;
    const enum asc_channel ch = rows->stage[i];
    const struct rounding_cell *cell = rounding_stage(rows->b, ch);
    char words[256];
    rounding_words(ch, cell, words, sizeof words);
    hit_add(c, line, (struct rect){0, 0, 1, line.cols}, HIT_STAGE, 0, (int)ch, 0);
    canvas_put(c, line, 0, LABEL_COL, list_style(l, i), channel_label(ch));
    canvas_put(c, line, 0, VERDICT_COL, style_of(cell->state), rounding_state_word(cell->state));
    canvas_put(c, line, 0, EVIDENCE_COL, list_style(l, i), rounding_evidence_name(cell->evidence));
    canvas_put_cut(c, line, 0, words_col(cell), list_style(l, i), words);
}

/* Those that are recorded. Returns the lines used. */
static int stages_draw(const struct session *s, const struct rounding *b, struct canvas *c, struct rect area)
{
    struct stage_rows rows = {.b = b};
    struct list list = {.of = &rows, .selected = -1, .kind = LIST_CURSOR, .row = stage_row};
    for (enum asc_channel ch = 0; ch < ASC_CHANNELS; ch++) {
        if (rounding_stage(b, ch)->state == ROUNDING_UNRECORDED)
            continue;
        if (s->at.cursor.channel == ch)
            list.selected = list.n;
        rows.stage[list.n++] = ch;
    }
    return list_draw(&list, c, area);
}

/* The words of the cursor's stage in full, where its line has no room for them. Returns the lines used. */
static int words_draw(const struct session *s, const struct rounding *b, struct canvas *c, struct rect area)
{
    const struct rounding_cell *cell = rounding_stage(b, s->at.cursor.channel);
    struct text_flow f = {.canvas = c, .area = area};
    char words[256];
    rounding_words(s->at.cursor.channel, cell, words, sizeof words);
    if (cell->state == ROUNDING_UNRECORDED || words_col(cell) + text_columns(words) <= area.cols)
        return 0;
    flow_put(&f, STYLE_STRONG, words);
    return f.line;
}

/* A number with its error. */
struct measured {
    double mean, error; /* NaN: not known */
};

static struct measured size_of(const struct rounding_cell *cell)
{
    if (!isnan(cell->size))
        return (struct measured){cell->size, cell->error};
    if (cell->elements && cell->barred == ROUNDING_CLEAR && cell->fit.state == CLUSTERED_FITTED)
        return (struct measured){cell->fit.intercept, cell->fit.error};
    return (struct measured){NAN, NAN};
}

/* In units of 2^-24. */
static struct measured drift_of(const struct rounding *b, enum rounding_curve curve, int head, int kv)
{
    const struct rounding_drift *d = rounding_drift(b, curve, head, kv);
    return (struct measured){rounding_drift_mean(d) * 0x1p24, rounding_drift_error(d) * 0x1p24};
}

/* It has room in DRIFT_COLS, with a blank behind it: "-6.0e6 ±7e4". */
static void measured_words(struct measured x, char *out, size_t bytes)
{
    if (isnan(x.mean))
        snprintf(out, bytes, "–");
    else if (isnan(x.error))
        snprintf(out, bytes, "%+.3g", x.mean);
    else if (fabs(x.mean) >= 100 && fabs(x.mean) < 1e4 && x.error < 1e4)
        snprintf(out, bytes, "%+.0f ±%.0f", x.mean, x.error);
    else
        snprintf(out, bytes, "%+.3g ±%.1g", x.mean, x.error);
    if (text_columns(out) >= DRIFT_COLS)
        snprintf(out, bytes, "%+.1e ±%.0e", x.mean, x.error);
    for (char *e = out; (e = strchr(e, 'e')); e++) /* e+06: e6 */
        if (e[1] == '+' || e[2] == '0')
            memmove(e + 1 + (e[1] == '-'), e + 2 + (e[2] == '0'), strlen(e + 2 + (e[2] == '0')) + 1);
}

/* What the curve shows: the stage's own estimate at each step, or where it has none, a drift. */
static struct measured plotted(const struct rounding *b, enum asc_channel ch, int head, int kv, int drift)
{
    return drift ? drift_of(b, ch == asc_o ? ROUNDING_OUTPUT : ROUNDING_SUM, head, kv)
                 : size_of(rounding_cell(b, ch, head, kv));
}

static bool has_size(const struct rounding *b, enum asc_channel ch, int head)
{
    for (int kv = 0; channel_per_kv(ch) && kv < b->kv_tiles; kv++)
        if (!isnan(size_of(rounding_cell(b, ch, head, kv)).mean))
            return true;
    return false;
}

/* One point of a curve that runs down the screen: zero in the middle, the error as a bar. */
static void point_draw(struct canvas *c, struct rect area, struct measured x, double most, enum style style)
{
    const int middle = area.cols / 2;
    canvas_put(c, area, 0, middle, STYLE_RULE, "│");
    if (isnan(x.mean) || !(most > 0))
        return;
    const double error = isnan(x.error) ? 0 : x.error, unit = middle / most;
    const int from = (int)lround((x.mean - error) * unit), to = (int)lround((x.mean + error) * unit);
    for (int at = from; at <= to; at++)
        if (middle + at >= 0 && middle + at < area.cols)
            canvas_put(c, area, 0, middle + at, style, "─");
    const int at = middle + (int)lround(x.mean * unit);
    canvas_put(c, area, 0, at < 0 ? 0 : at >= area.cols ? area.cols - 1 : at, style, "█");
}

static void heads_draw(const struct session *s, const struct rounding *b, struct canvas *c, struct rect area)
{
    const int room = area.cols - LABEL_COL - 8, here = head_of_cursor(s);
    const int first = window_first(here, room, b->heads);
    canvas_put(c, area, 0, 0, STYLE_DIM, "heads");
    for (int i = 0; i < room && first + i < b->heads; i++) {
        const struct rounding_cell *cell = rounding_cell(b, s->at.cursor.channel, first + i, b->kv_tiles);
        canvas_put(c, area, 0, 8 + i, first + i == here ? STYLE_CURSOR : style_of(cell->state), glyph_of(cell->state));
    }
}

/* One stage of one head over the kv steps. */
struct step_rows {
    const struct rounding *b;
    enum asc_channel stage;
    int head, plot_cols;
    bool drift;  /* the curve is a drift: the stage has no estimate of its own */
    double most; /* of the curve, with its error */
};

static void step_row(const struct list *l, int kv, struct canvas *c, struct rect line)
{
    const struct step_rows *t = l->of;
    const bool per_kv = channel_per_kv(t->stage);
    const struct rounding_cell *cell = rounding_cell(t->b, t->stage, t->head, per_kv ? kv : t->b->kv_tiles);
    const struct rect plot = {line.row, line.col + PLOT_COL, 1, t->plot_cols};
    char words[64];
    hit_add(c, line, (struct rect){0, 0, 1, line.cols}, HIT_KV, 0, kv, 0);
    canvas_printf(c, line, 0, 0, list_style(l, kv), "%d", kv);
    if (per_kv || kv == 0) { /* what exists once per q tile has one verdict */
        canvas_put(c, line, 0, 5, style_of(cell->state), rounding_state_word(cell->state));
        measured_words(size_of(cell), words, sizeof words);
        canvas_put(c, line, 0, SIZE_COL, list_style(l, kv), words);
    }
    point_draw(c, plot, plotted(t->b, t->stage, t->head, kv, t->drift), t->most,
               style_of(t->drift ? ROUNDING_UNRECORDED : cell->state));
    for (int curve = 0; curve < ROUNDING_CURVES; curve++) {
        measured_words(drift_of(t->b, (enum rounding_curve)curve, t->head, kv), words, sizeof words);
        canvas_put(c, line, 0, line.cols - (ROUNDING_CURVES - curve) * DRIFT_COLS, list_style(l, kv), words);
    }
}

static void steps_draw(const struct session *s, const struct rounding *b, struct canvas *c, struct rect area)
{
    const enum asc_channel ch = s->at.cursor.channel;
    const int plot_cols = area.cols - PLOT_COL - 2 * DRIFT_COLS - 1;
    struct step_rows t = {.b = b, .stage = ch, .head = head_of_cursor(s), .plot_cols = plot_cols > 0 ? plot_cols : 0};
    const struct list list = {
        .of = &t, .n = b->kv_tiles, .selected = s->at.cursor.kv_tile, .kind = LIST_TABLE, .row = step_row};
    char words[64];
    t.drift = !has_size(b, ch, t.head);
    for (int kv = 0; kv < b->kv_tiles; kv++) {
        const struct measured x = plotted(b, ch, t.head, kv, t.drift);
        if (!isnan(x.mean))
            t.most = fmax(t.most, fabs(x.mean) + (isnan(x.error) ? 0 : x.error));
    }
    canvas_put(c, area, 0, 0, STYLE_DIM, "kv");
    canvas_put(c, area, 0, 5, STYLE_DIM, "verdict");
    canvas_printf(c, area, 0, SIZE_COL, STYLE_DIM, "%s", rounding_unit(ch, rounding_cell(b, ch, t.head, b->kv_tiles)));
    snprintf(words, sizeof words, "%s±%.2g", !t.drift ? "" : ch == asc_o ? "u / l: " : "m + ln l: ", t.most);
    canvas_put_cut(c, (struct rect){area.row, area.col + PLOT_COL, 1, t.plot_cols}, 0, 0, STYLE_DIM,
                   t.most > 0 ? words : "");
    canvas_put(c, area, 0, area.cols - 2 * DRIFT_COLS, STYLE_DIM, "m + ln l");
    canvas_put(c, area, 0, area.cols - DRIFT_COLS, STYLE_DIM, "u / l, 2⁻²⁴");
    list_draw(&list, c, (struct rect){area.row + 1, area.col, area.rows - 1, area.cols});
}

/* How far it is, and what there is to do. */
static void progress_words(const struct session *s, char *out, size_t bytes)
{
    const struct rounding_progress *now = session_rounding(s);
    out[0] = '\0';
    if (now && now->step && now->total)
        snprintf(out, bytes, "%s: %d of %d heads, x stops", runner_step_words(now->step), now->done, now->total);
    else if (now && now->step)
        snprintf(out, bytes, "%s …, x stops", runner_step_words(now->step));
    else if (now && now->err.code != ERR_NONE)
        snprintf(out, bytes, "%s", now->err.message);
    else if (now && now->result && now->result->lost[0])
        snprintf(out, bytes, "%s", now->result->lost);
    else if (now && now->result && now->result->negated)
        snprintf(out, bytes, "with Q and V negated");
    else if (now && now->result)
        snprintf(out, bytes, "-: rerun with Q and V negated");
}

static void nothing_draw(const struct session *s, struct canvas *c, struct rect area)
{
    struct text_flow f = {.canvas = c, .area = area};
    flow_put(&f, STYLE_DIM,
             !s->run.trace || !s->run.judgement ? "No run yet."
             : s->run.isolation.trace ? "An isolated run is not searched for bias: ` goes back to the ordinary run."
             : !trace_complete(s->run.trace) ? "The run did not complete: it is not searched for bias."
             : !s->run.judgement->complete   ? "The bias search starts once every tile is judged."
                                             : "Judging every recorded q tile again.");
}

static void view_bias_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    (void)vs;
    struct rect area = view_body(c->cols, c->rows);
    const struct rounding *b = session_rounding_result(s);
    char right[128], title[96];
    area.col = 1;
    area.cols -= 2;
    progress_words(s, right, sizeof right);
    view_frame_draw(s, c, VIEW_BIAS, "bias", right);
    if (!b) {
        nothing_draw(s, c, area);
        return;
    }
    const int used = stages_draw(s, b, c, area);
    if (area.rows < used + TABLE_ROWS + 1) { /* no room for the steps: why it is so is not cut all the same */
        if (area.rows > used)
            words_draw(s, b, c, (struct rect){area.row + used, area.col, area.rows - used, area.cols});
        return;
    }
    snprintf(title, sizeof title, "%s of batch %d, head %d over kv steps", channel_label(s->at.cursor.channel),
             s->at.cursor.batch, s->at.cursor.head);
    rule_draw(c, (struct rect){area.row + used, 0, 1, area.cols + 2}, title, NULL);
    const struct rect below = {area.row + used + 1, area.col, area.rows - used - 1, area.cols};
    const int words = words_draw(s, b, c, below);
    heads_draw(s, b, c, (struct rect){below.row + words, below.col, 1, below.cols});
    steps_draw(s, b, c, (struct rect){below.row + words + 1, below.col, below.rows - words - 1, below.cols});
}

const struct view view_bias = {.draw = view_bias_draw, .rounding = true};
