/* The softmax state of a q tile's rows after every step: bands over the rows, the invariants, and the row at the cursor
   as a table. */
#include "engine/verdict/states.h"

#include "tui/screen/number.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"
#include <math.h>
#include <stdio.h>

enum {
    INVARIANT_ROWS = 6,   /* at most: what is broken first wraps */
    BAND_LABEL_COLS = 16, /* to the left of the steps, */
    BAND_SCALE_COLS = 11, /* and what the scale takes to their right */
    NAME_COLS = 6
};

/* A quantity of many rows over steps: the largest, one row's own and the smallest, as three lines of blocks. */
struct band {
    const char *label;
    int rows, steps, row;                                /* row: whose own line is between the two */
    double (*value)(const void *ctx, int step, int row); /* NaN: none */
    const void *ctx;
    double least_high; /* the scale reaches to this at least; NaN: to the largest value */
    bool (*is_nan)(const void *ctx, int step, int row); /* there is a value, and it is NaN; NULL: never */
};

static void range_of(const struct band *b, int step, double *low, double *high)
{
    for (int r = 0; r < b->rows; r++) {
        const double x = b->value(b->ctx, step, r);
        if (!isfinite(x))
            continue;
        *low = !(x >= *low) ? x : *low;
        *high = !(x <= *high) ? x : *high;
    }
}

static bool holds_unreal(const struct band *b, int step)
{
    for (int r = 0; r < b->rows; r++)
        if (b->value(b->ctx, step, r) == INFINITY)
            return true;
    return false;
}

/* The largest is what an engineer looks at: there a NaN of any row shows, as an infinity does. */
static bool holds_nan(const struct band *b, int step, int line)
{
    if (!b->is_nan || line == 2)
        return false;
    for (int r = 0; r < b->rows && line == 0; r++)
        if (b->is_nan(b->ctx, step, r))
            return true;
    return line == 1 && b->is_nan(b->ctx, step, b->row);
}

static const char *level(double x, double low, double high)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    /* What differs by less than a thousandth is level. */
    const double span = fmax(high - low, 1e-3 * fmax(fabs(low), fabs(high)));
    const int i = span > 0 ? (int)((x - low) / span * 7 + 0.5) : 0;
    return levels[i < 0 ? 0 : i > 7 ? 7 : i];
}

/* Three lines; columns of the area behind the label are steps `first` on, `at` the one that is marked. Returns 3. */
static int band_draw(const struct band *b, struct canvas *c, struct rect area, int first, int steps, int at)
{
    static const char *const names[] = {"most", "row", "least"};
    double low = NAN, high = b->least_high;
    char number[NUMBER_BYTES];
    for (int step = 0; step < b->steps; step++)
        range_of(b, step, &low, &high);
    canvas_put(c, area, 0, 1, STYLE_STRONG, b->label);
    for (int line = 0; line < 3; line++) {
        canvas_put(c, area, line, BAND_LABEL_COLS - NAME_COLS, STYLE_DIM, names[line]);
        for (int i = 0; i < steps && first + i < b->steps; i++) {
            const int step = first + i;
            double least = NAN, most = NAN;
            range_of(b, step, &least, &most);
            const double x = line == 0 ? most : line == 2 ? least : b->value(b->ctx, step, b->row);
            const enum style style = step == at ? STYLE_STRONG : STYLE_TEXT;
            const int col = BAND_LABEL_COLS + i;
            if (holds_nan(b, step, line))
                canvas_put(c, area, line, col, STYLE_NONFINITE, "N");
            else if (line == 0 && holds_unreal(b, step))
                canvas_put(c, area, line, col, STYLE_NONFINITE, "∞");
            else if (isfinite(x))
                canvas_put(c, area, line, col, style, level(x, low, high));
            else if (!isnan(x))
                canvas_put(c, area, line, col, x > 0 ? STYLE_NONFINITE : STYLE_DIM, x > 0 ? "∞" : "-");
        }
    }
    if (isfinite(high))
        canvas_put(c, area, 0, area.cols - BAND_SCALE_COLS + 1, STYLE_DIM, number_signed(number, high, 9));
    if (isfinite(low))
        canvas_put(c, area, 2, area.cols - BAND_SCALE_COLS + 1, STYLE_DIM, number_signed(number, low, 9));
    return 3;
}

static const struct row_step *at_step(const struct row_states *t, int step, int row)
{
    return &t->at[(size_t)step * (size_t)t->rows + (size_t)row];
}

static double m_of(const void *ctx, int step, int row)
{
    return at_step(ctx, step, row)->m;
}

static double alpha_of(const void *ctx, int step, int row)
{
    return at_step(ctx, step, row)->alpha;
}

static double log_sum_of(const void *ctx, int step, int row)
{
    return at_step(ctx, step, row)->log_sum;
}

static bool is_nan_at(const void *ctx, int step, int row, enum asc_channel ch, double value)
{
    return isnan(value) && at_step(ctx, step, row)->written & 1u << ch;
}

static bool m_is_nan(const void *ctx, int step, int row)
{
    return is_nan_at(ctx, step, row, asc_m, m_of(ctx, step, row));
}

static bool alpha_is_nan(const void *ctx, int step, int row)
{
    return is_nan_at(ctx, step, row, asc_alpha, alpha_of(ctx, step, row));
}

static bool log_sum_is_nan(const void *ctx, int step, int row)
{
    return is_nan_at(ctx, step, row, asc_l, log_sum_of(ctx, step, row));
}

static double ratio_of(const void *ctx, int step, int row)
{
    const struct row_step *at = at_step(ctx, step, row);
    const double most = error_larger(at->sum_ratio, at->output_ratio);
    return most < 0 ? (double)NAN : most; /* not judged */
}

static bool ratio_is_nan(const void *ctx, int step, int row)
{
    const struct row_step *at = at_step(ctx, step, row);
    return isnan(at->sum_ratio) || isnan(at->output_ratio);
}

static int step_of_cursor(const struct session *s)
{
    for (int i = 0; i < s->tile.states.n_steps; i++)
        if (s->tile.states.steps[i].kv == s->at.cursor.kv_tile)
            return i;
    return s->tile.states.n_steps - 1;
}

static int row_of_cursor(const struct session *s)
{
    const bool by_keys = s->at.cursor.channel == asc_k || s->at.cursor.channel == asc_v;
    return by_keys || s->at.cursor.row >= s->tile.states.rows ? 0 : s->at.cursor.row;
}

static unsigned broken_at(const struct row_states *t, int step)
{
    unsigned broken = 0;
    for (int r = 0; r < t->rows; r++)
        broken |= at_step(t, step, r)->broken;
    return broken;
}

/* A line of signs under the bands: where every invariant holds in all rows, where one is broken, and where first. */
static void signs_draw(const struct row_states *t, struct canvas *c, struct rect area, int first, int steps)
{
    canvas_put(c, area, 0, 1, STYLE_STRONG, "holds");
    for (int i = 0; i < steps && first + i < t->n_steps; i++) {
        const int step = first + i, broken = broken_at(t, step) != 0;
        canvas_put(c, area, 0, BAND_LABEL_COLS + i, broken ? STYLE_BAD : STYLE_OK,
                   step == t->first_step ? "▲"
                   : broken              ? "✗"
                                         : "·");
    }
}

/* Which invariants hold, and which are broken in how many rows and steps. Returns the lines used. */
static int invariants_draw(const struct row_states *t, struct canvas *c, struct rect area)
{
    int line = 0;
    if (t->first_step >= 0 && area.rows > 0) {
        char words[BREAK_WORDS_BYTES], first[BREAK_WORDS_BYTES + 64];
        states_broken_words(at_step(t, t->first_step, t->first_row)->broken, words);
        snprintf(first, sizeof first, "▲ first at k%d, row %d: %s", t->steps[t->first_step].kv, t->first_row, words);
        struct text_flow f = {.canvas = c, .area = {area.row, area.col + 1, area.rows, area.cols - 1}};
        flow_put(&f, STYLE_BAD, first);
        line = f.line;
    }
    for (int i = 0, used = 1; i < INVARIANT_COUNT && line < area.rows; i++) {
        char text[160];
        const bool judged = (t->judged & 1u << i) != 0;
        if (t->broken[i])
            snprintf(text, sizeof text, "✗ %s: %llu", invariant_formula((enum invariant)i),
                     (unsigned long long)t->broken[i]);
        else
            snprintf(text, sizeof text, "%s %s", judged ? "·" : "?", invariant_formula((enum invariant)i));
        if (used + text_columns(text) > area.cols - 1) {
            line++;
            used = 1;
        }
        if (line < area.rows)
            canvas_put(c, area, line, used, t->broken[i] ? STYLE_BAD : judged ? STYLE_OK : STYLE_DIM, text);
        used += text_columns(text) + 3;
    }
    return line + 1 < area.rows ? line + 1 : area.rows;
}

static bool has(const struct row_step *r, enum asc_channel ch)
{
    return (r->written & 1u << ch) != 0;
}

/* "-": not recorded, or never written. */
static const char *number_or_none(char out[NUMBER_BYTES], double x, int is_there)
{
    return is_there ? number_signed(out, x, 10) : "-";
}

static const char *ratio_or_none(char out[NUMBER_BYTES], double x)
{
    return x < 0 ? "-" : number_ratio(out, x);
}

/* Of the cursor's row. */
static void step_row(const struct list *l, int step, struct canvas *c, struct rect line)
{
    const struct session *s = l->of;
    const struct row_states *t = &s->tile.states;
    const struct row_step *r = at_step(t, step, row_of_cursor(s));
    char m[NUMBER_BYTES], alpha[NUMBER_BYTES], sum_l[NUMBER_BYTES], sum[NUMBER_BYTES], want[NUMBER_BYTES],
        ratio[NUMBER_BYTES], output[NUMBER_BYTES];
    hit_add(c, line, (struct rect){0, 0, 1, line.cols}, HIT_KV, 0, t->steps[step].kv, 0);
    canvas_printf(c, line, 0, 0, r->broken ? STYLE_BAD : list_style(l, step), "%s%-5d %10s %10s %10s %10s %10s %6s %6s",
                  r->broken ? "✗" : " ", t->steps[step].kv, number_or_none(m, r->m, has(r, asc_m)),
                  number_or_none(alpha, r->alpha, has(r, asc_alpha)), number_or_none(sum_l, r->l, has(r, asc_l)),
                  number_or_none(sum, r->log_sum, has(r, asc_l)),
                  number_or_none(want, r->log_sum_want, !isnan(r->log_sum_want)), ratio_or_none(ratio, r->sum_ratio),
                  ratio_or_none(output, r->output_ratio));
}

static void table_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const enum asc_unit unit = s->run.trace->conventions.m_unit;
    const char *const m_head = unit == ASC_UNIT_RAW ? "m, raw" : unit == ASC_UNIT_LOG2 ? "m, log2" : "m";
    const struct list list = {
        .of = s, .n = s->tile.states.n_steps, .selected = step_of_cursor(s), .kind = LIST_TABLE, .row = step_row};
    if (area.rows < 2)
        return;
    canvas_printf(c, area, 0, 1, STYLE_DIM, "%-5s %10s %10s %10s %10s %10s %6s %6s", "kv", m_head, "alpha", "l",
                  "m + ln l", "reference", "sum", "u / l");
    list_draw(&list, c, (struct rect){area.row + 1, area.col, area.rows - 1, area.cols});
}

static void view_state_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    const struct row_states *t = &s->tile.states;
    struct rect body = view_body(c->cols, c->rows);
    char title[96] = "softmax state", place[64], right[64] = "";
    (void)vs;
    if (!t->steps || t->n_steps == 0 || s->tile.states_slot != session_slot(s)) {
        view_frame_draw(s, c, VIEW_STATE, title, right);
        if (!values_under_way_draw(s, c, body))
            canvas_put(c, body, 1, 1, STYLE_DIM, "unknown: this q tile is not recorded, or not judged yet");
        return;
    }
    const int at = step_of_cursor(s), row = row_of_cursor(s);
    tile_words(s, (struct place){session_slot(s), 0, asc_o}, place, sizeof place);
    snprintf(title, sizeof title, "softmax state of %s: %d rows over %d step%s", place, t->rows, t->n_steps,
             t->n_steps == 1 ? "" : "s");
    snprintf(right, sizeof right, "row %d, k%d", row, t->steps[at].kv);
    view_frame_draw(s, c, VIEW_STATE, title, right);
    const struct band bands[] = {{"m", t->rows, t->n_steps, row, m_of, t, NAN, m_is_nan},
                                 {"m + ln l", t->rows, t->n_steps, row, log_sum_of, t, NAN, log_sum_is_nan},
                                 {"alpha", t->rows, t->n_steps, row, alpha_of, t, NAN, alpha_is_nan},
                                 {"err/bnd", t->rows, t->n_steps, row, ratio_of, t, 1, ratio_is_nan}};
    const int room = body.cols - BAND_LABEL_COLS - BAND_SCALE_COLS, steps = room < t->n_steps ? room : t->n_steps;
    const int first = window_first(at, steps, t->n_steps), n = body.rows >= 30 ? 4 : 3;
    int line = 0;
    for (int i = 0; i < n; i++) { /* where there is no room for all, alpha is in the table */
        const struct band *b = &bands[n == 3 && i == 2 ? 3 : i];
        line += band_draw(b, c, (struct rect){body.row + line, body.col, 3, body.cols}, first, steps, at);
    }
    signs_draw(t, c, (struct rect){body.row + line++, body.col, 1, body.cols}, first, steps);
    line += invariants_draw(t, c,
                            (struct rect){body.row + line, body.col,
                                          body.rows - line < INVARIANT_ROWS ? body.rows - line : INVARIANT_ROWS,
                                          body.cols});
    table_draw(s, c, (struct rect){body.row + line, body.col, body.rows - line, body.cols});
}

const struct view view_state = {.draw = view_state_draw, .states = true};
