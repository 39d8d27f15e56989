/* Where NaN and infinity begin: roots by stage and head, the kept ones in order, and of the one at the cursor the
   operands, the row's state up to it, and how far it came. */
#include "engine/verdict/onset.h"

#include "engine/verdict/case.h"
#include "tui/screen/number.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct run_onset *onset_shown(const struct session *s)
{
    return s->run.judgement && s->run.judgement->complete && !s->run.isolation.trace ? s->run.judgement->onset : NULL;
}

/* The root at the cursor, or the first one. */
static const struct run_root *root_shown(const struct session *s, const struct run_onset *o)
{
    const int at = session_root(s);
    const struct run_root *first = run_onset_first(o);
    return at >= 0 ? &o->first[at] : first ? first : &o->first[0];
}

static void nothing_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const char *why = s->run.isolation.trace ? "NaN origin is not computed for isolated runs"
                      : !s->run.judgement || !s->run.judgement->complete ? "unknown until the whole run is judged"
                                                                         : "no unexpected NaN or infinity";
    canvas_put(c, area, 1, 1, STYLE_DIM, why);
}

/* Counts by stage, a line for each head around the cursor's. Returns the lines used. */
static int counts_by_head_draw(const struct session *s, struct canvas *c, struct rect area, const struct run_onset *o)
{
    enum { HEAD_COLS = 8, COUNT_COLS = 6 };
    const int heads = s->run.trace->problem.heads, at = s->at.cursor.batch * heads + s->at.cursor.head;
    const int lines = o->heads < area.rows - 1 ? o->heads : area.rows - 1;
    const int first = window_first(at, lines, o->heads);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        canvas_printf(c, area, 0, HEAD_COLS + ch * COUNT_COLS, o->of_stage[ch] ? STYLE_STRONG : STYLE_DIM, "%*s%s",
                      COUNT_COLS - 1 - text_columns(channel_label(ch)), "", channel_label(ch));
    for (int i = 0; i < lines; i++) {
        const int head = first + i;
        char name[32];
        snprintf(name, sizeof name, s->run.trace->problem.batch > 1 ? "b%d h%d" : "%.0dh%d", head / heads,
                 head % heads);
        canvas_put(c, area, 1 + i, 1, head == at ? STYLE_CURSOR : STYLE_TEXT, name);
        for (int ch = 0; ch < ASC_CHANNELS; ch++) {
            const unsigned long long n = o->of_heads[(ptrdiff_t)head * ASC_CHANNELS + ch];
            char count[24] = "·";
            if (n)
                snprintf(count, sizeof count, n < 100000 ? "%llu" : "%lluk", n < 100000 ? n : n / 1000);
            const int col = HEAD_COLS + (ch + 1) * COUNT_COLS - 1 - text_columns(count);
            canvas_put(c, area, 1 + i, col, n ? STYLE_NONFINITE : STYLE_DIM, count);
        }
    }
    return lines + 1;
}

struct roots {
    const struct session *s;
    const struct run_onset *o;
};

static void root_row(const struct list *l, int i, struct canvas *c, struct rect line)
{
    const struct roots *roots = l->of;
    const struct run_root *r = &roots->o->first[i];
    char place[ONSET_WORDS_BYTES], text[64], reached[32] = "-";
    onset_place_words(roots->s->run.trace, r, place);
    if (r->root.reached)
        snprintf(reached, sizeof reached, "%llu", (unsigned long long)r->root.reached);
    snprintf(text, sizeof text, "%.60s", place);
    canvas_put_cut(c, (struct rect){line.row, line.col, 1, 31}, 0, 2, list_style(l, i), text);
    canvas_printf(c, line, 0, 32, STYLE_NONFINITE, "%-4s", onset_value_word(r->root.value));
    canvas_printf(c, line, 0, 37, STYLE_TEXT, "x %-4d %-18s O %s", r->root.members, origin_name(r->root.origin),
                  reached);
}

static const char *number_or_word(char out[NUMBER_BYTES], double x)
{
    if (isfinite(x))
        return number_signed(out, x, 10);
    snprintf(out, NUMBER_BYTES, "%s", onset_value_word(x));
    return out;
}

/* "m before -inf  m -inf", then the products. */
static void operands_words(const struct onset_root *r, char *out, size_t bytes)
{
    size_t used = 0;
    char number[NUMBER_BYTES], other[NUMBER_BYTES];
    out[0] = '\0';
    for (int o = 0; o < OPERAND_COUNT && used < bytes; o++)
        if (r->known & 1u << o)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s %s", used ? "   " : "",
                                     onset_operand_label((enum onset_operand)o), number_or_word(number, r->operand[o]));
    for (int i = 0; i < r->n_products && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s[%d] %s × %s",
                                 i          ? "   "
                                 : used > 0 ? "\nproducts "
                                            : "products ",
                                 r->product[i].index, number_or_word(number, r->product[i].a),
                                 number_or_word(other, r->product[i].b));
    if (!used)
        snprintf(out, bytes, "its operands are not recorded");
}

static const char *captured(const struct session *s, enum asc_channel ch, int slot, int kv, int row,
                            char out[NUMBER_BYTES])
{
    const struct tile tile = trace_tile(s->run.trace, ch, slot, kv);
    const size_t i = (size_t)row * (size_t)tile.cols;
    if (!tile.data || row >= tile.valid_rows || dtype_is_unwritten(tile.dtype, tile.data, i))
        return "-";
    double x = dtype_load(tile.dtype, tile.data, i);
    for (int lane = 1; ch == asc_l && lane < tile.valid_cols; lane++)
        x += dtype_load(tile.dtype, tile.data, i + (size_t)lane);
    return number_or_word(out, x);
}

/* m, alpha and l of the root's row after the steps up to the root's, the last ones where there is no room for all. */
static void row_draw(const struct session *s, struct canvas *c, struct rect area, const struct run_root *r)
{
    const bool by_keys = r->root.channel == asc_k || r->root.channel == asc_v;
    int *order = calloc((size_t)s->run.trace->layout.kv_tiles, sizeof *order);
    int n = order && !by_keys ? visiting_order(s->run.trace, r->slot, order) : 0;
    c->no_memory |= !order || n < 0;
    for (int i = 0; i < n && channel_per_kv(r->root.channel); i++)
        if (order[i] == r->root.kv)
            n = i + 1;
    const int lines = area.rows - 1 < n ? area.rows - 1 : n;
    if (lines > 0)
        canvas_printf(c, area, 0, 1, STYLE_DIM, "row %-5d %12s %12s %12s", r->root.row, "m", "alpha", "l");
    for (int i = 0; i < lines; i++) {
        const int kv = order[n - lines + i];
        char m[NUMBER_BYTES], alpha[NUMBER_BYTES], l[NUMBER_BYTES];
        canvas_printf(c, area, 1 + i, 1, i == lines - 1 ? STYLE_STRONG : STYLE_TEXT, "  k%-6d %12s %12s %12s", kv,
                      captured(s, asc_m, r->slot, kv, r->root.row, m),
                      captured(s, asc_alpha, r->slot, kv, r->root.row, alpha),
                      captured(s, asc_l, r->slot, kv, r->root.row, l));
    }
    free(order);
}

/* The rows of q and k behind a score, as much of them as there is room for, where enough is left for the row's state.
   Returns the lines used. */
static int factors_draw(const struct session *s, struct canvas *c, struct rect area, const struct run_root *r)
{
    enum { LABEL_COLS = 8, VALUE_COLS = 11, LEAST_ROWS = 6 };
    static const enum asc_channel factors[] = {asc_q, asc_k};
    double *values = calloc((size_t)s->run.trace->problem.head_dim, sizeof *values);
    int line = 0;
    c->no_memory |= !values;
    for (size_t i = 0; i < 2 && values && area.rows >= LEAST_ROWS; i++) {
        const int n = onset_factors(s->run.trace, r, factors[i], values), room = (area.cols - LABEL_COLS) / VALUE_COLS;
        if (n == 0)
            break;
        canvas_printf(c, area, line, 1, STYLE_DIM, "%s[%d]", channel_name(factors[i]),
                      factors[i] == asc_q ? r->root.row : r->root.col);
        for (int d = 0; d < n && d < room; d++) {
            char number[NUMBER_BYTES];
            const bool last = d == room - 1 && n > room;
            canvas_printf(c, area, line, LABEL_COLS + d * VALUE_COLS,
                          isfinite(values[d]) ? STYLE_TEXT : STYLE_NONFINITE, "%10s",
                          last ? "…" : number_or_word(number, values[d]));
        }
        line++;
    }
    free(values);
    return line;
}

static void root_draw(const struct session *s, struct canvas *c, struct rect area, const struct run_root *r)
{
    char words[512], line[768], reason[ONSET_WORDS_BYTES];
    onset_reason_words(s->run.judgement, s->run.trace, &r->root, reason);
    struct text_flow f = {.canvas = c, .area = {area.row, area.col + 1, area.rows, area.cols - 2}};
    snprintf(line, sizeof line, "%s%s%s%s", r->root.origin == ORIGIN_UNKNOWN ? "" : origin_formula(r->root.origin),
             r->root.origin == ORIGIN_UNKNOWN ? "" : ": ", reason, r->root.from_input ? " (no probe recorded it)" : "");
    flow_put(&f, STYLE_NONFINITE, line);
    operands_words(&r->root, words, sizeof words);
    flow_put(&f, STYLE_TEXT, words);
    onset_keys_words(&r->root, words);
    if (words[0])
        flow_put(&f, STYLE_STRONG, words);
    onset_path_words(&r->root, words);
    if (r->root.origin == ORIGIN_MASKED)
        snprintf(line, sizeof line, "this is a masking error, not a NaN: see the mask view (&)");
    else if (r->root.reached)
        snprintf(line, sizeof line, "chain %s; O in %d row%s, from [%d, %d] on", words, r->root.reached_rows,
                 r->root.reached_rows == 1 ? "" : "s", r->root.reached_row, r->root.reached_col);
    else
        snprintf(line, sizeof line, "chain %s; it does not reach O: a later stage dropped it", words);
    flow_put(&f, STYLE_TEXT, line);
    f.line += factors_draw(s, c, (struct rect){area.row + f.line, area.col, area.rows - f.line, area.cols}, r);
    if (f.line < area.rows - 1)
        row_draw(s, c, (struct rect){area.row + f.line, area.col, area.rows - f.line, area.cols}, r);
}

static void view_onset_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    const struct run_onset *o = onset_shown(s);
    struct rect body = view_body(c->cols, c->rows);
    char title[96] = "where NaN and infinity begin", right[64] = "";
    (void)vs;
    if (!o || !o->n) {
        view_frame_draw(s, c, VIEW_ONSET, title, right);
        nothing_draw(s, c, body);
        return;
    }
    const struct run_root *shown = root_shown(s, o);
    if (run_onset_first(o))
        snprintf(title, sizeof title, "NaN and infinity begin in %llu elements; %llu of O",
                 (unsigned long long)o->roots, (unsigned long long)o->outputs);
    else
        snprintf(title, sizeof title, "no NaN begins; %llu scores are wrongly masked", (unsigned long long)o->roots);
    snprintf(right, sizeof right, "%d of %d kept", (int)(shown - o->first) + 1, o->n);
    view_frame_draw(s, c, VIEW_ONSET, title, right);
    const int most = body.rows / 4;
    const int heads = counts_by_head_draw(s, c, (struct rect){body.row, body.col, most, body.cols}, o);
    rule_draw(c, (struct rect){body.row + heads, 0, 1, c->cols}, "roots", "elements, origin, elements of O reached");
    const int rows = o->n < most ? o->n : most, top = body.row + heads + 1;
    const struct roots roots = {s, o};
    const struct list list = {
        .of = &roots, .n = o->n, .selected = (int)(shown - o->first), .kind = LIST_CURSOR, .row = root_row};
    list_draw(&list, c, (struct rect){top, body.col + 1, rows, body.cols - 1});
    char place[ONSET_WORDS_BYTES];
    onset_place_words(s->run.trace, shown, place);
    rule_draw(c, (struct rect){top + rows, 0, 1, c->cols}, place, onset_value_word(shown->root.value));
    const int used = heads + 1 + rows + 1;
    root_draw(s, c, (struct rect){body.row + used, body.col, body.rows - used, body.cols}, shown);
}

static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    (void)s;
    (void)vs;
    (void)times;
    return a == ACTION_ZOOM ? (struct view_answer){.does = ANSWER_OPENS, .view = VIEW_TILE} : (struct view_answer){0};
}

const struct view view_onset = {.draw = view_onset_draw, .act = act};
