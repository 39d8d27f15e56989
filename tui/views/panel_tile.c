/* The cursor's tile: captured, wanted, difference, error/bound of its elements. */
#include "tui/views/panels.h"

#include "engine/base/tensor_core.h"
#include "engine/oracle/element.h"
#include "engine/trace/conventions.h"
#include "engine/trace/writers.h"
#include "engine/verdict/case.h"
#include "tui/screen/number.h"
#include "tui/views/sign.h"
#include <math.h>
#include <stdio.h>

static const char *const shown_words[SHOW_COUNT] = {[SHOW_GOT] = "captured",
                                                    [SHOW_WANT] = "wanted",
                                                    [SHOW_DIFF] = "difference",
                                                    [SHOW_ULP] = "ulp",
                                                    [SHOW_RATIO] = "err/bound"};

struct element {
    double got, want, bound;
    enum tile_status sign;
    enum dtype type; /* as captured */
    int class;       /* by what is shown */
    int missing;
};

enum dtype captured_type(const struct session *s, enum asc_channel ch)
{
    return trace_captured_type(s->run.trace, ch);
}

/* Where a tile may be left out, as behind a causal diagonal, nobody has written, and that is right. */
static bool is_written(const struct session *s, int row, int col)
{
    const int slot = session_slot(s), per_kv = channel_per_kv(s->at.cursor.channel);
    const struct tile tile = trace_tile(s->run.trace, s->at.cursor.channel, slot, per_kv ? s->at.cursor.kv_tile : 0);
    const size_t i = (size_t)row * (size_t)tile.cols + (size_t)col;
    return !tile.data || row >= tile.rows || col >= tile.cols || !dtype_is_unwritten(tile.dtype, tile.data, i);
}

static struct element element_at(const struct session *s, int row, int col, bool global)
{
    const struct tile_detail *d = &s->tile.detail;
    const size_t i = (size_t)row * (size_t)d->cols + (size_t)col;
    const double *want = global ? d->want_global : d->want_local, *bound = global ? d->bound_global : d->bound_local;
    const uint8_t *classes = global ? d->class_global : d->class_local;
    struct element e = {d->got[i],
                        want ? want[i] : NAN,
                        bound ? bound[i] : NAN,
                        sign_of_element(d, row, col),
                        captured_type(s, s->at.cursor.channel),
                        STATUS_UNJUDGED,
                        0};
    if (classes)
        e.class = classes[i];
    e.missing = (int)e.sign == CLASS_MISSING || (!class_bad((int)e.sign) && isnan(e.got) && !is_written(s, row, col));
    return e;
}

static double ratio_of(const struct element *e)
{
    return element_ratio(e->type, e->class, e->got, e->want, e->bound);
}

/* Texts of an element. Nothing is said of what was not written; a wanted value that is NaN is no statement. */
static const char *got_text(char out[NUMBER_BYTES], const struct element *e, int width)
{
    if (!e->missing)
        return number_signed(out, e->got, width);
    snprintf(out, NUMBER_BYTES, "%s", width >= 9 ? "unwritten" : class_bad((int)e->sign) ? "?" : "-");
    return out;
}

static const char *nothing(char out[NUMBER_BYTES])
{
    snprintf(out, NUMBER_BYTES, "-");
    return out;
}

static const char *want_text(char out[NUMBER_BYTES], const struct element *e, int width)
{
    return isnan(e->want) ? nothing(out) : number_signed(out, e->want, width);
}

static const char *diff_text(char out[NUMBER_BYTES], const struct element *e, int width)
{
    if (e->missing || isnan(e->want))
        return nothing(out);
    return number_signed(out, e->got == e->want ? 0 : e->got - e->want, width);
}

/* The difference counted in steps of the captured type at the wanted value. */
static const char *ulp_text(char out[NUMBER_BYTES], const struct element *e, int width)
{
    const double ulps = e->got == e->want ? 0 : (e->got - e->want) / dtype_ulp(e->type, e->want);
    if (e->missing || isnan(e->want))
        return nothing(out);
    if (!(fabs(ulps) < 1e5) || ulps == 0)
        return number_signed(out, ulps, width);
    snprintf(out, NUMBER_BYTES, "%+.*f", fabs(ulps) < 1000 ? 2 : 0, ulps);
    return out;
}

static const char *ratio_text(char out[NUMBER_BYTES], const struct element *e)
{
    return e->missing || isnan(e->want) ? nothing(out) : number_ratio(out, ratio_of(e));
}

double tile_ratio(const struct session *s, int row, int col, bool global)
{
    const struct element e = element_at(s, row, col, global);
    if (e.missing || isnan(e.want))
        return e.missing && class_bad(e.sign) ? NAN : 0;
    return ratio_of(&e);
}

static int limited(int value, int count)
{
    return value < 0 ? 0 : value >= count ? count - 1 : value;
}

int shown_global(const struct session *s, const struct view_state *vs)
{
    const struct verdict *v = cursor_verdict(s, 0);
    if (vs->global || !v || !cursor_has_detail(s))
        return vs->global;
    const struct tile_detail *d = &s->tile.detail;
    const size_t n = (size_t)d->rows * (size_t)d->cols;
    if (v->count[CLASS_MISSING] < n || !d->want_global)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(d->want_local[i]))
            return 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(d->want_global[i]))
            return 1;
    return 0;
}

void tile_title(const struct session *s, bool with_row, const struct view_state *vs, char *out, size_t bytes)
{
    const struct cursor *cur = &s->at.cursor;
    char batch[16] = "", kv[16] = "", row[16] = "";
    if (shown_problem(s)->batch > 1)
        snprintf(batch, sizeof batch, "b%d,", cur->batch);
    if (channel_per_kv(cur->channel))
        snprintf(kv, sizeof kv, ",k%d", cur->kv_tile);
    if (with_row)
        snprintf(row, sizeof row, " row %d", cur->row);
    /* A list shows all four numbers of each element. */
    const bool listed = with_row || (cursor_has_detail(s) && s->tile.detail.cols == 1);
    snprintf(out, bytes, "%s[%sh%d,q%d%s]%s%s%s%s", session_label(s, cur->channel), batch, cur->head, cur->q_tile, kv,
             row, listed ? "" : " ", listed ? "" : shown_words[s->at.shown], shown_global(s, vs) ? ", global" : "");
}

bool values_under_way_draw(const struct session *s, struct canvas *c, struct rect area)
{
    double share, seconds;
    if (session_values_under_way(s, &share, &seconds))
        canvas_printf(c, area, 1, 3, STYLE_TEXT, "computing: %.0f%%  %.0f s  (x stops)", 100 * share, seconds);
    else if (s->tile.given_up)
        canvas_put_cut(c, area, 1, 3, STYLE_DIM, "stopped: move the cursor to start again");
    else
        return false;
    return true;
}

bool absent_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const char *label = session_label(s, s->at.cursor.channel);
    if (cursor_has_detail(s))
        return false;
    if (!s->run.trace)
        return true;
    if (!trace_has(s->run.trace, s->at.cursor.channel))
        canvas_printf(c, area, 1, 3, STYLE_DIM, "%s is not recorded by this kernel or scenario", label);
    else if (session_slot(s) < 0)
        canvas_printf(c, area, 1, 3, STYLE_DIM, "not recorded: h%d q%d is not in the capture selection",
                      s->at.cursor.head, s->at.cursor.q_tile);
    else if (!s->run.judgement || !judgement_slot_done(s->run.judgement, session_slot(s)) ||
             !values_under_way_draw(s, c, area))
        canvas_put(c, area, 1, 3, STYLE_DIM, "not judged yet");
    return true;
}

void counts_draw(const struct session *s, struct canvas *c, struct rect area, int row, const struct view_state *vs)
{
    const struct verdict *v = cursor_verdict(s, vs->global);
    int col = 0;
    if (!v)
        return;
    static const char *const names[CLASS_COUNT] = {
#define CLASS(id, name, utf8, ascii, style, meaning) [id] = (name),
#define STATUS(id, name, glyph, style, meaning)
#include "engine/oracle/statuses.def"
#undef STATUS
#undef CLASS
    };
    for (int i = 0; i < CLASS_COUNT; i++)
        if (i != CLASS_OK)
            col += 2 + canvas_printf(c, area, row, col, v->count[i] ? STYLE_BAD : STYLE_DIM, "%s %u", names[i],
                                     v->count[i]);
    if (v->unequal)
        canvas_printf(c, area, row, col, STYLE_WARNING, "%u not bit-equal", v->unequal);
}

void tile_list_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs)
{
    if (absent_draw(s, c, area))
        return;
    const struct tile_detail *d = &s->tile.detail;
    /* One value per row: the list runs down the rows; else along the cursor's row. */
    const int down = d->cols == 1, n = down ? d->rows : d->cols, visible = area.rows - 2;
    const int row = limited(s->at.cursor.row, d->rows), at = limited(down ? s->at.cursor.row : s->at.cursor.col, n);
    const int first = window_first(at, visible, n), global = shown_global(s, vs);
    canvas_printf(c, area, 0, 0, STYLE_DIM, "%4s %10s %10s %10s  %9s   %dx%d", down ? "r" : "c", "got", "want", "diff",
                  "err/bound", d->rows, d->cols);
    for (int i = 0; i < visible && first + i < n; i++) {
        const int index = first + i;
        const struct element e = element_at(s, down ? index : row, down ? 0 : index, global);
        char got[NUMBER_BYTES], want[NUMBER_BYTES], diff[NUMBER_BYTES], ratio[NUMBER_BYTES];
        const enum style style = sign_style(e.sign);
        hit_add(c, area, (struct rect){1 + i, 0, 1, 51}, down ? HIT_ELEMENT : HIT_COLUMN, down ? index : row,
                down ? 0 : index, 0);
        if (index == at)
            canvas_put(c, area, 1 + i, 0, STYLE_CURSOR, "▶");
        canvas_printf(c, area, 1 + i, 1, index == at ? STYLE_CURSOR : STYLE_DIM, "%3d", index);
        canvas_printf(c, area, 1 + i, 4, STYLE_TEXT, " %10s %10s %10s  %9s", got_text(got, &e, 9),
                      want_text(want, &e, 9), diff_text(diff, &e, 9), ratio_text(ratio, &e));
        canvas_put(c, area, 1 + i, 50, style, sign_glyph(e.sign));
    }
    counts_draw(s, c, area, area.rows - 1, vs);
}

#define CELL_COLS 9 /* a value of 7 or 8, its sign */

static void cell_draw(struct canvas *c, struct rect area, int row, int col, const struct element *e, enum shown shown,
                      int here)
{
    char text[NUMBER_BYTES];
    if (shown == SHOW_RATIO)
        ratio_text(text, e);
    else if (shown == SHOW_WANT)
        want_text(text, e, 7);
    else if (shown == SHOW_DIFF)
        diff_text(text, e, 7);
    else if (shown == SHOW_ULP)
        ulp_text(text, e, 7);
    else
        got_text(text, e, 7);
    const bool bad = (int)e->sign != CLASS_OK && (int)e->sign != STATUS_OWN;
    canvas_printf(c, area, row, col, here ? STYLE_CURSOR : bad ? sign_style(e->sign) : STYLE_TEXT, "%7s", text);
    canvas_put(c, area, row, col + 7, bad ? sign_style(e->sign) : STYLE_TEXT, bad ? sign_glyph(e->sign) : " ");
}

/* "64x64  v [captured] wanted difference err/bound": the shape, and which number is shown. */
void tile_shown_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const int row = area.rows - 1;
    int col = canvas_printf(c, area, row, 0, STYLE_DIM, "%dx%d   ", s->tile.detail.rows, s->tile.detail.cols);
    col += canvas_put(c, area, row, col, STYLE_KEY, "v");
    for (int i = 0; i < SHOW_COUNT; i++) {
        const bool here = i == (int)s->at.shown;
        col +=
            canvas_printf(c, area, row, col, here ? STYLE_STRONG : STYLE_DIM, here ? " [%s]" : " %s", shown_words[i]);
    }
}

struct tile_window tile_window(const struct session *s, struct rect area)
{
    const struct tile_detail *d = &s->tile.detail;
    struct tile_window w = {.label_cols = 5, .cell_cols = CELL_COLS, .rows = area.rows - 2};
    w.cols = (area.cols - w.label_cols) / w.cell_cols;
    if (w.rows > d->rows)
        w.rows = d->rows;
    if (w.cols > d->cols)
        w.cols = d->cols;
    w.first_row = window_first(limited(s->at.cursor.row, d->rows), w.rows, d->rows);
    w.first_col = window_first(limited(s->at.cursor.col, d->cols), w.cols, d->cols);
    return w;
}

void tile_matrix_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs)
{
    if (absent_draw(s, c, area))
        return;
    const struct tile_detail *d = &s->tile.detail;
    if (d->cols == 1) {
        tile_list_draw(s, c, area, vs);
        return;
    }
    const bool global = shown_global(s, vs), at_row = limited(s->at.cursor.row, d->rows),
               at_col = limited(s->at.cursor.col, d->cols);
    const struct tile_window w = tile_window(s, area);
    for (int i = 0; i < w.cols; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", w.first_col + i);
        canvas_printf(c, area, 0, w.label_cols + i * CELL_COLS, w.first_col + i == at_col ? STYLE_STRONG : STYLE_DIM,
                      "%7s", name);
    }
    hit_add(c, area, (struct rect){1, w.label_cols, w.rows, w.cols * CELL_COLS}, HIT_ELEMENT, w.first_row, w.first_col,
            CELL_COLS);
    for (int r = 0; r < w.rows; r++) {
        const int row = w.first_row + r;
        canvas_printf(c, area, 1 + r, 0, row == at_row ? STYLE_STRONG : STYLE_DIM, "r%d", row);
        for (int i = 0; i < w.cols; i++) {
            const struct element e = element_at(s, row, w.first_col + i, global);
            cell_draw(c, area, 1 + r, w.label_cols + i * CELL_COLS, &e, s->at.shown,
                      row == at_row && w.first_col + i == at_col);
        }
    }
    tile_shown_draw(s, c, area);
}

void formula_words(const struct session *s, const struct view_state *vs, char *out, size_t bytes)
{
    const enum asc_channel ch = s->at.cursor.channel;
    out[0] = '\0';
    if (!cursor_has_detail(s))
        return;
    if (channel_is_own(ch)) {
        snprintf(out, bytes, "%s: a value of the kernel's own, without a formula", session_label(s, ch));
        return;
    }
    snprintf(out, bytes, "%s: %s = %s", shown_global(s, vs) ? "global" : "local", session_label(s, ch),
             conventions_formula(&s->run.trace->conventions, ch));
}

void bound_words(const struct session *s, char *out, size_t bytes)
{
    const struct trace *t = s->run.trace;
    const struct verdict *v = cursor_verdict(s, 0);
    out[0] = '\0';
    if (channel_is_own(s->at.cursor.channel))
        return;
    if (v && v->exact && v->unequal == 0)
        snprintf(out, bytes, "0: every bit of %s is asked for", tensor_core_name((enum tensor_core)(v->exact - 1)));
    else if (cursor_has_detail(s))
        bound_formula(s->at.cursor.channel, &t->conventions, case_known_cores(t), t->problem.head_dim, t->plan.bc, out,
                      bytes);
}

int code_lines(const struct session *s, char out[CODE_LINES][CODE_LINE_BYTES])
{
    const struct tile_detail *d = &s->tile.detail;
    const int row = s->at.cursor.row, col = s->at.cursor.col;
    struct element_code code;
    if (!s->run.trace || !cursor_has_detail(s) || row >= d->rows || col >= d->cols ||
        !element_code(s->run.trace, session_place(s), row, col, d->want_local[row * d->cols + col], &code))
        return 0;
    element_code_words(&code, out);
    return CODE_LINES;
}

bool writer_words(const struct session *s, char *out, size_t bytes)
{
    struct trace_writer w;
    char words[WRITER_WORDS_BYTES];
    const struct place at = session_place(s);
    out[0] = '\0';
    if (!s->run.trace ||
        !trace_writer(s->run.trace, at.channel, at.slot, at.kv, s->at.cursor.row, s->at.cursor.col, &w))
        return false;
    trace_writer_words(&w, words);
    snprintf(out, bytes, "recorded by %s", words);
    return true;
}

const char *bound_rounds(enum tile_status sign, double off, double bound)
{
    return sign == CLASS_OK && fabs(off) > bound ? ", then rounded" : "";
}

void element_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs)
{
    if (!cursor_has_detail(s))
        return;
    const struct tile_detail *d = &s->tile.detail;
    const struct element e =
        element_at(s, limited(s->at.cursor.row, d->rows), limited(s->at.cursor.col, d->cols), shown_global(s, vs));
    char got[NUMBER_BYTES], want[NUMBER_BYTES], diff[NUMBER_BYTES], ratio[NUMBER_BYTES], bound[NUMBER_BYTES + 32] = "-";
    const struct verdict *v = cursor_verdict(s, vs->global);
    if (v && v->exact && e.bound == 0)
        snprintf(bound, sizeof bound, "0 (%s)", tensor_core_name((enum tensor_core)(v->exact - 1)));
    else if (!isnan(e.want) && !isnan(e.bound))
        snprintf(bound, sizeof bound, "%.2g%s%s", e.bound, v && v->likely ? " (likely)" : "",
                 bound_rounds(e.sign, e.got - e.want, e.bound));
    canvas_printf(c, area, 0, 0, STYLE_TEXT, "got %s   want %s   diff %s", got_text(got, &e, 12),
                  want_text(want, &e, 12), diff_text(diff, &e, 12));
    int col = canvas_printf(c, area, 1, 0, STYLE_TEXT, "bound %s   err/bound %s   ", bound, ratio_text(ratio, &e));
    col += canvas_put(c, area, 1, col, sign_style(e.sign), sign_glyph(e.sign));
    canvas_printf(c, area, 1, col, STYLE_DIM, " %s: %s", sign_word(e.sign), sign_meaning(e.sign));
    if (v) {
        char median[NUMBER_BYTES] = "-", spread[NUMBER_BYTES] = "-", mean[NUMBER_BYTES];
        if (!isnan(v->ratio_median)) {
            number_signed(median, (double)v->ratio_median, 8);
            number_signed(spread, (double)v->ratio_spread, 8);
        }
        canvas_printf(c, area, 2, 0, STYLE_TEXT, "got/want median %s  spread %s   signed mean %s", median, spread,
                      number_signed(mean, (double)v->mean_error, 9));
    }
    counts_draw(s, c, area, 3, vs);
}
