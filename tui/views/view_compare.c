/* float64, the f16 path and this run on the same inputs, kv tile by kv tile, and where the error of an output comes
   from. */
#include "engine/session/look.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_ROWS = 7 /* at least */, TABLE_HEAD = 3, WORST_MIN = 3 };

/* Element of O that the cursor stands for: the stages of a row have other columns than it. */
static void element_of(const struct session *s, const struct comparison *c, int *row, int *col)
{
    const bool is_output = s->at.cursor.channel == asc_o || s->at.cursor.channel == asc_u;
    *row = s->at.cursor.row < c->paths.rows ? s->at.cursor.row : c->paths.rows - 1;
    *col = is_output && s->at.cursor.col < c->paths.dim ? s->at.cursor.col : 0;
}

static void outputs_line(const struct comparison *c, char *out, size_t bytes)
{
    char text[4][LOOKS_NUMBER];
    const struct path_error *f16 = &c->paths.o[PATH_F16], *run = &c->paths.o[PATH_RUN];
    looks_number(text[0], path_rms(f16));
    looks_number(text[1], f16->n ? f16->largest : NAN);
    looks_number(text[2], path_rms(run));
    looks_number(text[3], run->n ? run->largest : NAN);
    size_t used = (size_t)snprintf(out, bytes, "O: f16 path rms %s, max %s; this run rms %s, max %s", text[0], text[1],
                                   text[2], text[3]);
    if (run->bad && used < bytes)
        used += (size_t)snprintf(out + used, bytes - used, ", %llu NaN or infinite", (unsigned long long)run->bad);
    if (!c->given_known && used < bytes)
        snprintf(out + used, bytes - used, "; given: the codes' own values; the unquantized values are unknown");
}

static void parts_line(const struct comparison *c, int row, int col, char *out, size_t bytes)
{
    const struct attribution *a = &c->attribution;
    const size_t i = (size_t)row * (size_t)a->dim + (size_t)col;
    size_t used = (size_t)snprintf(out, bytes, "%s", isfinite(a->o_run[i] - a->o_given[i]) ? "parts:" : "");
    if (!used)
        return;
    for (int p = 0; p < PLAYERS && used < bytes; p++)
        used += (size_t)snprintf(out + used, bytes - used, "  %s %+.3g", player_name((enum player)p), a->part[p][i]);
}

static void shares_words(const double share[PLAYERS], char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int p = 0; p < PLAYERS && used < bytes; p++) {
        char text[LOOKS_NUMBER] = "–";
        if (isfinite(share[p]))
            snprintf(text, sizeof text, "%.0f%%", share[p] * 100 + 0.0);
        used += (size_t)snprintf(out + used, bytes - used, "%s%s %s", p ? "  " : "", player_name((enum player)p),
                                 strcmp(text, "-0%") == 0 ? "0%" : text);
    }
}

/* The element of the q tile's output that is off by most; what is no number is the most. */
static void worst_element(const struct attribution *a, int *row, int *col)
{
    double most = -1;
    for (int i = 0; i < a->rows * a->dim; i++) {
        const double off = fabs(a->o_run[i] - a->o_given[i]), size = isnan(off) ? INFINITY : off;
        if (size > most) {
            most = size;
            *row = i / a->dim;
            *col = i % a->dim;
        }
    }
}

/* Returns the rows it takes. */
static int top_draw(const struct session *s, const struct comparison *c, struct canvas *canvas, struct rect area)
{
    const struct laboratory_state *x = session_looked(s);
    struct survey_row total;
    char line[256], words[224];
    struct text_flow f = {.canvas = canvas, .area = area};
    int row, col;
    element_of(s, c, &row, &col);
    outputs_line(c, line, sizeof line);
    flow_put(&f, c->paths.o[PATH_RUN].bad ? STYLE_NONFINITE : STYLE_TEXT, line);
    canvas->no_memory |= comparison_words(s->run.trace, c, row, col, line, sizeof line) != 0;
    flow_put(&f, STYLE_STRONG, line);
    if (!c->has_output)
        return f.line;
    parts_line(c, row, col, line, sizeof line);
    flow_put(&f, STYLE_TEXT, line);
    worst_element(&c->attribution, &row, &col);
    canvas->no_memory |= comparison_words(s->run.trace, c, row, col, words, sizeof words) != 0;
    snprintf(line, sizeof line, "worst: %s", words);
    flow_put(&f, STYLE_TEXT, line);
    shares_words(c->share, words, sizeof words);
    snprintf(line, sizeof line, "shares in this q tile:    %s", words);
    flow_put(&f, STYLE_TEXT, line);
    if (!x)
        return f.line;
    survey_total(x->survey, x->surveyed, &total);
    shares_words(total.share, words, sizeof words);
    const int padding = 10 - snprintf(NULL, 0, "%d%d", x->surveyed, x->slots);
    snprintf(line, sizeof line, "in %d of %d q tiles:%*s%s", x->surveyed, x->slots, padding, "", words);
    flow_put(&f, STYLE_DIM, line);
    if (!c->attribution.s_recorded || !c->attribution.p_recorded)
        flow_put(&f, STYLE_WARNING,
                 c->attribution.s_recorded ? "P is not recorded: computed from S in its declared type"
                                           : "S is not recorded: its rounding counts as part of P's");
    return f.line;
}

/* Where each pair of numbers ends: the f16 path's, the run's. */
static const int ends[3][2] = {{16, 26}, {38, 48}, {60, 70}};
enum { PARTS_COL = 72, PART_COLS = 11 };

/* What the keys of each kv tile contribute to the element, by player; NULL: no memory or no output. */
static double *tile_parts(const struct session *s, const struct comparison *c, int row, int col)
{
    const int tiles = c->paths.kv_tiles, bc = s->run.trace->plan.bc;
    double *sum = c->has_output ? calloc((size_t)tiles * PLAYERS, sizeof *sum) : NULL;
    double *key = sum ? calloc((size_t)c->attribution.keys, sizeof *key) : NULL;
    if (!key) {
        free(sum);
        return NULL;
    }
    for (int p = 0; p < PLAYERS; p++) {
        attribution_keys(&c->attribution, (enum player)p, row, col, key);
        for (int j = 0; j < c->attribution.keys; j++)
            sum[j / bc * PLAYERS + p] += key[j];
    }
    free(key);
    return sum;
}

struct tile_rows {
    const struct session *s;
    const struct comparison *c;
    const double *parts; /* NULL: not known */
};

static void tile_row(const struct list *l, int kv, struct canvas *c, struct rect line)
{
    const struct tile_rows *rows = l->of;
    const struct path_tile *t = &rows->c->paths.tile[kv];
    const struct path_error *const errors[3] = {t->s, t->p, t->ul};
    const enum style style = kv != l->selected && !t->visited ? STYLE_DIM : list_style(l, kv);
    hit_add(c, line, (struct rect){0, 0, 1, line.cols}, HIT_KV, 0, kv, 0);
    canvas_printf(c, line, 0, 1, style, "k%d", kv);
    for (int i = 0; i < 3; i++)
        for (int path = 0; path < PATHS; path++) {
            if (errors[i][path].bad)
                canvas_put(c, line, 0, ends[i][path] - 3, STYLE_NONFINITE, "NaN");
            else
                looks_cell(c, line, 0, ends[i][path], style, path_rms(&errors[i][path]));
        }
    for (int p = 0; rows->parts && p < PLAYERS && PARTS_COL + (p + 1) * PART_COLS <= line.cols; p++)
        looks_cell(c, line, 0, PARTS_COL + (p + 1) * PART_COLS, style, rows->parts[kv * PLAYERS + p]);
}

static void table_draw(const struct session *s, const struct comparison *c, struct canvas *canvas, struct rect area)
{
    static const char *const stages[] = {"S", "P / Σ P", "U / l"};
    char right[64];
    int row, col;
    element_of(s, c, &row, &col);
    double *parts = tile_parts(s, c, row, col);
    canvas->no_memory |= c->has_output && !parts;
    snprintf(right, sizeof right, "rms error against float64");
    rule_draw(canvas, (struct rect){area.row, area.col - 1, 1, area.cols + 2}, "kv tiles", right);
    for (int i = 0; i < 3; i++) {
        canvas_put(canvas, area, 1, ends[i][1] - text_columns(stages[i]), STYLE_TEXT, stages[i]);
        canvas_put(canvas, area, 2, ends[i][0] - 3, STYLE_DIM, "f16");
        canvas_put(canvas, area, 2, ends[i][1] - 3, STYLE_DIM, "run");
    }
    if (parts && area.cols >= PARTS_COL + PART_COLS)
        canvas_printf(canvas, area, 1, PARTS_COL + 2, STYLE_TEXT, "parts of o[%d,%d] from these keys", row, col);
    for (int p = 0; parts && p < PLAYERS && PARTS_COL + (p + 1) * PART_COLS <= area.cols; p++) {
        const char *name = p == PLAYER_REST ? "S rest" : player_name((enum player)p);
        canvas_put(canvas, area, 2, PARTS_COL + (p + 1) * PART_COLS - text_columns(name), STYLE_DIM, name);
    }
    const struct tile_rows rows = {s, c, parts};
    const struct list list = {
        .of = &rows, .n = c->paths.kv_tiles, .selected = s->at.cursor.kv_tile, .kind = LIST_CURSOR, .row = tile_row};
    list_draw(&list, canvas, (struct rect){area.row + TABLE_HEAD, area.col, area.rows - TABLE_HEAD, area.cols});
    free(parts);
}

/* The n slots with the largest errors among those surveyed. Returns how many. */
static int worst_slots(const struct laboratory_state *x, int n, int *slots)
{
    int found = 0;
    for (int slot = 0; slot < x->surveyed; slot++) {
        const double rms = x->survey[slot].o[PATH_RUN].bad ? INFINITY : path_rms(&x->survey[slot].o[PATH_RUN]);
        int at = found < n ? found++ : n;
        for (; at > 0; at--) {
            const struct path_error *before = &x->survey[slots[at - 1]].o[PATH_RUN];
            if ((before->bad ? INFINITY : path_rms(before)) >= rms)
                break;
            if (at < n)
                slots[at] = slots[at - 1];
        }
        if (at < n)
            slots[at] = slot;
    }
    return found;
}

struct worst_rows {
    const struct session *s;
    const struct survey_row *survey;
    const int *slots;
};

static void worst_row(const struct list *l, int i, struct canvas *c, struct rect line)
{
    const struct worst_rows *rows = l->of;
    const struct survey_row *row = &rows->survey[rows->slots[i]];
    const int32_t *at = trace_slot_place(rows->s->run.trace, rows->slots[i]);
    char words[128];
    canvas_printf(c, line, 0, 0, STYLE_TEXT, "b%d h%d q%d", (int)at[0], (int)at[1], (int)at[2]);
    looks_cell(c, line, 0, 22, STYLE_TEXT, path_rms(&row->o[PATH_F16]));
    if (row->o[PATH_RUN].bad)
        canvas_put(c, line, 0, 29, STYLE_NONFINITE, "NaN");
    else
        looks_cell(c, line, 0, 32, STYLE_TEXT, path_rms(&row->o[PATH_RUN]));
    shares_words(row->share, words, sizeof words);
    canvas_put_cut(c, line, 0, 35, STYLE_TEXT, words);
}

static void worst_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const struct laboratory_state *x = session_looked(s);
    int slots[64];
    const struct worst_rows rows = {s, x->survey, slots};
    const struct list list = {.of = &rows,
                              .n = worst_slots(x, area.rows - 1 < 64 ? area.rows - 1 : 64, slots),
                              .kind = LIST_TABLE,
                              .row = worst_row};
    rule_draw(c, (struct rect){area.row, area.col - 1, 1, area.cols + 2}, "q tiles with the largest errors",
              "O: f16 path, this run; shares");
    list_draw(&list, c, (struct rect){area.row + 1, area.col, area.rows - 1, area.cols});
}

static void view_compare_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct rect area = view_body(c->cols, c->rows);
    const struct comparison *x = session_comparison(s);
    char title[96] = "compare", right[96];
    (void)vs;
    area.col = 1;
    area.cols -= 2;
    if (s->run.trace)
        snprintf(title, sizeof title, "compare b%d h%d q%d: float64, f16 path, this run", s->at.cursor.batch,
                 s->at.cursor.head, s->at.cursor.q_tile);
    looks_words(s, right, sizeof right);
    view_frame_draw(s, c, VIEW_COMPARE, title, right);
    if (!x || !s->run.trace) {
        struct text_flow f = {.canvas = c, .area = area};
        flow_put(&f, STYLE_DIM,
                 !s->run.trace         ? "No run yet."
                 : session_slot(s) < 0 ? "This q tile is not recorded."
                                       : "Computing the three paths of this q tile.");
        return;
    }
    const int used = top_draw(s, x, c, area), top = used > TOP_ROWS ? used : TOP_ROWS;
    const int left = area.rows - top, wanted = TABLE_HEAD + x->paths.kv_tiles, most = left - 1 - WORST_MIN;
    const int table = most <= TABLE_HEAD ? 0 : wanted < most ? wanted : most;
    if (table)
        table_draw(s, x, c, (struct rect){area.row + top, area.col, table, area.cols});
    if (left - table > 1)
        worst_draw(s, c, (struct rect){area.row + top + table, area.col, left - table, area.cols});
}

const struct view view_compare = {.draw = view_compare_draw, .looks = LABORATORY_COMPARISON | LABORATORY_SURVEY};
