/* How values fare as codes: the histogram of a tensor's codes, what was lost, and each group that shares a scale. */
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include "engine/session/look.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { AT_CURSOR = -1 };
enum { HEAD_ROWS = 3, TABLE_HEAD = 2 }; /* above the histogram; rule and titles of the table */

static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

static int tensors(const struct session *s)
{
    const struct laboratory_state *x = session_looked(s);
    return x && x->formats ? x->formats->n : 0;
}

/* Until one is chosen it is that of the cursor's stage, or what the stage is made of: Q up to alpha, then P, else V. */
static int selected(const struct session *s, const struct formats *f, const struct view_state *vs)
{
    if (vs->selected != AT_CURSOR)
        return list_selected(vs->selected, f->n);
    int found = s->at.cursor.channel < asc_p ? 0 : f->n - 1;
    for (int i = 0; i < f->n; i++)
        found = f->tensor[i].channel == s->at.cursor.channel ? i : found;
    return found;
}

static int begin(const struct session *s)
{
    (void)s;
    return AT_CURSOR;
}

static int histogram_rows(int body_rows)
{
    return body_rows >= 50 ? 10 : body_rows >= 30 ? 7 : 4;
}

/* ▶K e4m3   V e4m3 */
static void selector_draw(const struct formats *f, int at, struct canvas *c, struct rect area)
{
    int col = 0;
    for (int i = 0; i < f->n; i++) {
        char words[32];
        snprintf(words, sizeof words, "%s%s %s", i == at ? "▶" : " ", channel_label(f->tensor[i].channel),
                 dtype_name(f->tensor[i].type));
        col += canvas_put(c, area, 0, col, i == at ? STYLE_STRONG : STYLE_TEXT, words) + 3;
    }
    if (f->n > 1)
        canvas_put_cut(c, area, 0, col, STYLE_DIM, "h l choose");
}

static void counts_line(const struct format_counts *n, char *out, size_t bytes)
{
    const double all = n->elements ? (double)n->elements / 100 : 1;
    size_t used =
        (size_t)snprintf(out, bytes, "%llu codes  NaN %llu  subnormal %llu (%.2g%%)", (unsigned long long)n->elements,
                         (unsigned long long)n->nan, (unsigned long long)n->subnormal, (double)n->subnormal / all);
    if (n->known && used < bytes)
        snprintf(out + used, bytes - used, "  flushed %llu (%.2g%%)  saturated %llu", (unsigned long long)n->flushed,
                 (double)n->flushed / all, (unsigned long long)n->saturated);
}

static void facts_lines(const struct formats_tensor *t, struct canvas *c, struct rect area)
{
    const struct format_counts *n = &t->counts;
    char line[256];
    counts_line(n, line, sizeof line);
    canvas_put_cut(c, area, 1, 0, n->nan || n->saturated ? STYLE_BAD : STYLE_TEXT, line);
    if (n->known)
        snprintf(line, sizeof line, "round trip: max %.3g, rms %.3g, against the unquantized values", n->largest,
                 formats_rms(n));
    else
        snprintf(line, sizeof line, "the unquantized values are unknown: no round trip error");
    canvas_put_cut(c, area, 2, 0, STYLE_TEXT, line);
}

static int codes_of_type(enum dtype type)
{
    return type == DTYPE_E2M1 ? 16 : 256;
}

/* The i-th code by value: of s8 from -128 on, of floats the negative ones backwards, then from 0 on. */
static uint8_t code_at(enum dtype type, int i)
{
    const int n = codes_of_type(type);
    return (uint8_t)(type == DTYPE_U8 ? i : type == DTYPE_S8 ? i - 128 : i < n / 2 ? n - 1 - i : i - n / 2);
}

static double logarithm(uint64_t n)
{
    return log2(1 + (double)n);
}

/* Columns of several codes each, or several of one, logarithmic: a count of one is seen beside a million. */
static void histogram_draw(const struct formats_tensor *t, struct canvas *c, struct rect area)
{
    const int per = area.cols >= 256 ? 1 : area.cols >= 128 ? 2 : 4, cols = 256 / per, rows = area.rows - 1;
    const int n = codes_of_type(t->type), wide = n < cols ? cols / n : 1;
    uint64_t most = 1, sum[256] = {0};
    for (int i = 0; i < n; i++)
        for (int col = i * cols / n; col < i * cols / n + wide; col++) {
            sum[col] += t->counts.code[code_at(t->type, i)];
            most = sum[col] > most ? sum[col] : most;
        }
    for (int col = 0; col < cols; col++) {
        /* One code at least is an eighth of a row high. */
        const int eighths = sum[col] ? 1 + (int)floor(logarithm(sum[col]) / logarithm(most) * (rows * 8 - 1)) : 0;
        const bool odd = !isfinite(values_code(t->type, code_at(t->type, col * n / cols)));
        for (int row = 0; row < rows; row++) {
            const int left = eighths - (rows - 1 - row) * 8;
            canvas_put(c, area, row, col, odd ? STYLE_NONFINITE : STYLE_TEXT,
                       bars[left <= 0   ? 0
                            : left >= 8 ? 8
                                        : left]);
        }
    }
    if (area.cols > cols + 12) {
        canvas_printf(c, area, 0, cols + 2, STYLE_DIM, "%llu", (unsigned long long)most);
        canvas_put(c, area, 1, cols + 2, STYLE_DIM, "codes, log");
    }
    /* Values under the axis: the ends, the middle, and half way. */
    static const int marks[] = {0, 64, 128, 192, 255};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char text[LOOKS_NUMBER];
        int code = marks[i] * n / 256;
        while (!isfinite(values_code(t->type, code_at(t->type, code))))
            code += code < n / 2 ? 1 : -1;
        looks_number(text, values_code(t->type, code_at(t->type, code)));
        const int width = text_columns(text);
        int col = marks[i] / per - (i == 0 ? 0 : i == 4 ? width - 1 : width / 2);
        canvas_put(c, area, rows, col < 0 ? 0 : col, STYLE_DIM, text);
    }
}

/* Where each column of the table ends. */
enum {
    END_AMAX = 26,
    END_SCALE = 36,
    END_HEADROOM = 44,
    END_BEST = 53,
    END_RMS = 62,
    END_BEST_RMS = 71,
    END_LOST = 78
};

static void group_words(const struct formats_group *g, char *out, size_t bytes)
{
    const int last = g->first + g->rows - 1;
    size_t used;
    if (g->rows == 1)
        used = (size_t)snprintf(out, bytes, "b%d h%d %d", g->batch, g->head, g->first);
    else
        used = (size_t)snprintf(out, bytes, "b%d h%d %d–%d", g->batch, g->head, g->first, last);
    if (g->parts > 1 && used < bytes)
        snprintf(out + used, bytes - used, " d%d", g->first_col);
}

static void group_draw(const struct formats_group *g, struct canvas *c, struct rect line)
{
    char words[48], bits[LOOKS_NUMBER];
    const enum style style = g->nan || g->saturated ? STYLE_BAD : STYLE_TEXT;
    group_words(g, words, sizeof words);
    canvas_put_cut(c, (struct rect){line.row, line.col, 1, END_AMAX - 8}, 0, 0, style, words);
    looks_cell(c, line, 0, END_AMAX, style, g->amax);
    looks_cell(c, line, 0, END_SCALE, style, g->scale);
    /* amax / limit is rounded: a group that just fits is no warning. */
    const double headroom = fabs(g->headroom) < 0.005 ? 0 : g->headroom;
    if (isfinite(headroom))
        snprintf(bits, sizeof bits, "%+.2f", headroom);
    else
        looks_number(bits, headroom);
    canvas_put(c, line, 0, END_HEADROOM - text_columns(bits), headroom < 0 ? STYLE_WARNING : style, bits);
    if (isnan(g->best_scale))
        looks_number(bits, g->best_scale);
    else
        snprintf(bits, sizeof bits, "×%.3g", g->best_scale / g->scale);
    canvas_put(c, line, 0, END_BEST - text_columns(bits), style, bits);
    looks_cell(c, line, 0, END_RMS, style, g->rms);
    looks_cell(c, line, 0, END_BEST_RMS, style, g->best_rms);
    looks_cell(c, line, 0, END_LOST, style, (double)(g->nan + g->saturated + g->flushed));
    if (line.cols >= 100)
        looks_cell(c, line, 0, END_LOST + 10, style, g->value_rms > 0 ? g->rms / g->value_rms * 100 : g->value_rms);
    if (line.cols >= 115)
        looks_cell(c, line, 0, END_LOST + 22, style, g->best_scale);
}

/* Rows of all heads are listed apart also where one scale is the whole tensor's. */
static bool one_scale(const struct formats_tensor *t)
{
    for (int i = 1; i < t->n_groups; i++)
        if (t->groups[i].scale != t->groups[0].scale)
            return false;
    return t->n_groups > 1;
}

static void table_draw(const struct formats_tensor *t, struct canvas *c, struct rect area, int top)
{
    static const struct {
        const char *title;
        int end;
    } titles[] = {{"amax", END_AMAX},   {"scale", END_SCALE},      {"bits", END_HEADROOM}, {"best", END_BEST},
                  {"rms err", END_RMS}, {"at best", END_BEST_RMS}, {"lost", END_LOST}};
    char title[64], right[64];
    const bool one = one_scale(t);
    snprintf(title, sizeof title, "%d %s%s%s, worst first", t->n_groups,
             !one                  ? "group"
             : t->channel == asc_p ? "q tile"
                                   : "head",
             t->n_groups == 1 ? "" : "s", one ? ", one scale" : "");
    snprintf(right, sizeof right, "bits of headroom; lost: NaN, saturated, flushed");
    rule_draw(c, (struct rect){area.row, area.col - 1, 1, area.cols + 2}, title, right);
    canvas_put(c, area, 1, 0, STYLE_DIM, one ? "rows" : "group");
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        canvas_put(c, area, 1, titles[i].end - text_columns(titles[i].title), STYLE_DIM, titles[i].title);
    if (area.cols >= 100)
        canvas_put(c, area, 1, END_LOST + 10 - 7, STYLE_DIM, "error %");
    if (area.cols >= 115)
        canvas_put(c, area, 1, END_LOST + 22 - 10, STYLE_DIM, "best scale");
    const int visible = area.rows - TABLE_HEAD;
    int first = top > t->n_groups - visible ? t->n_groups - visible : top;
    first = first > 0 ? first : 0;
    for (int i = 0; i < visible && first + i < t->n_groups; i++)
        group_draw(&t->groups[t->order[first + i]], c,
                   (struct rect){area.row + TABLE_HEAD + i, area.col, 1, area.cols});
}

static void nothing_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const struct laboratory_state *x = session_looked(s);
    struct text_flow f = {.canvas = c, .area = area};
    if (x && x->formats)
        flow_put(&f, STYLE_DIM,
                 "Nothing is quantized in this run: Q, K and V are not codes, the launch does not quantize, and P is "
                 "not rounded to FP8. X predicts what other formats would cost.");
    else
        flow_put(&f, STYLE_DIM, s->run.trace ? "Counting codes." : "No run yet.");
}

static void view_formats_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct rect area = view_body(c->cols, c->rows);
    const struct laboratory_state *x = session_looked(s);
    char title[64] = "formats", right[96];
    area.col = 1;
    area.cols -= 2;
    looks_words(s, right, sizeof right);
    const bool there = x && x->formats && x->formats->n > 0;
    if (there && !right[0])
        snprintf(right, sizeof right, "%s",
                 formats_source_words(x->formats->tensor[selected(s, x->formats, vs)].source));
    view_frame_draw(s, c, VIEW_FORMATS, title, right);
    if (!there) {
        nothing_draw(s, c, area);
        return;
    }
    const struct formats_tensor *t = &x->formats->tensor[selected(s, x->formats, vs)];
    const int histogram = histogram_rows(area.rows) + 1, above = HEAD_ROWS + histogram;
    selector_draw(x->formats, selected(s, x->formats, vs), c, area);
    facts_lines(t, c, area);
    histogram_draw(t, c, (struct rect){area.row + HEAD_ROWS, area.col, histogram, area.cols});
    table_draw(t, c, (struct rect){area.row + above, area.col, area.rows - above, area.cols}, vs->top);
}

/* The longest table, and what stands above it. */
static int view_formats_lines(const struct session *s, const struct view_state *vs, int cols)
{
    (void)vs;
    const struct laboratory_state *x = session_looked(s);
    int most = 0;
    (void)cols;
    for (int i = 0; x && x->formats && i < x->formats->n; i++)
        most = x->formats->tensor[i].n_groups > most ? x->formats->tensor[i].n_groups : most;
    return most + HEAD_ROWS + TABLE_HEAD + histogram_rows(50) + 1;
}

/* h and l choose a tensor. */
static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    if (a != ACTION_KV_NEXT && a != ACTION_KV_PREV)
        return (struct view_answer){0};
    const int n = tensors(s), at = n ? selected(s, session_looked(s)->formats, vs) : 0;
    vs->selected = list_selected(at + (a == ACTION_KV_NEXT ? times : -times), n);
    vs->top = 0;
    return (struct view_answer){.does = ANSWER_DID};
}

const struct view view_formats = {
    .draw = view_formats_draw, .lines = view_formats_lines, .begin = begin, .act = act, .looks = LABORATORY_FORMATS};
