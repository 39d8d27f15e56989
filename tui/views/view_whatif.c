/* What the output would err by with other formats, row by row; Enter runs the kernel with one. */
#include "tui/views/looks.h"

#include "tui/screen/hits.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"
#include <math.h>
#include <stdio.h>

enum { TITLE_ROW = 4, FIRST_ROW = 5, BAR_COLS = 20 };

static int rows(const struct session *s)
{
    const struct laboratory_state *x = session_looked(s);
    return x && x->whatif ? x->whatif->n : 0;
}

static const struct whatif_choice *selected_choice(const struct session *s, const struct view_state *vs)
{
    const struct laboratory_state *x = session_looked(s);
    const int n = rows(s);
    if (!n)
        return NULL;
    return &x->whatif->row[list_selected(vs->selected, n)].choice;
}

/* Where the numbers end, by the width of the screen. */
static int words_cols(int cols)
{
    return cols >= 100 ? 50 : 46;
}

static void bar_draw(struct canvas *c, struct rect area, int row, int col, double share)
{
    const int n = isfinite(share) ? (int)lround(fmin(share, 1) * BAR_COLS) : 0;
    for (int i = 0; i < n; i++)
        canvas_put(c, area, row, col + i, STYLE_RULE, "█");
}

static void row_draw(const struct whatif *w, int i, int chosen, double most, struct canvas *c, struct rect area,
                     int row)
{
    const struct whatif_row *x = &w->row[i];
    const int words = words_cols(area.cols);
    char text[96];
    const enum style style = chosen ? STYLE_STRONG : STYLE_TEXT;
    whatif_words(&x->choice, text, sizeof text);
    hit_add(c, area, (struct rect){row, 0, 1, area.cols}, HIT_ENTRY, i, 0, 0);
    canvas_put(c, area, row, 0, STYLE_CURSOR, chosen ? "▶" : " ");
    canvas_put_cut(c, (struct rect){area.row, area.col, area.rows, words + 1}, row, 3, style, text);
    looks_cell(c, area, row, words + 9, style, path_rms(&x->o));
    looks_cell(c, area, row, words + 18, style, x->o.n ? x->o.largest : NAN);
    looks_cell(c, area, row, words + 27, style, path_rms(&x->o) / path_rms(&w->row[0].o));
    if (i == 0)
        canvas_put(c, area, row, 1, STYLE_STRONG, "◆");
    if (area.cols >= words + 32 + BAR_COLS)
        bar_draw(c, area, row, words + 32, path_rms(&x->o) / most);
    if (x->o.bad) /* in the place of the ratio, which is none */
        canvas_put(c, area, row, words + 29, STYLE_NONFINITE, "NaN");
}

static void lines_draw(const struct laboratory_state *x, struct canvas *c, struct rect area,
                       const struct view_state *vs)
{
    const struct whatif *w = x->whatif;
    const int words = words_cols(area.cols), visible = area.rows - FIRST_ROW;
    const int chosen = list_selected(vs->selected, w->n);
    char line[192], rms[LOOKS_NUMBER], largest[LOOKS_NUMBER], ratio[LOOKS_NUMBER];
    double most = 0;
    for (int i = 0; i < w->n; i++)
        most = fmax(most, path_rms(&w->row[i].o));
    looks_number(rms, path_rms(&w->measured));
    looks_number(largest, w->measured.n ? w->measured.largest : NAN);
    snprintf(line, sizeof line, "O against float64 on the unquantized inputs, in %d of %d q tiles; ◆ is this run",
             x->predicted, w->all);
    canvas_put_cut(c, area, 0, 0, STYLE_TEXT, line);
    /* Far from 1: something errs here that is no matter of formats. */
    looks_number(ratio, path_rms(&w->measured) / path_rms(&w->row[0].o));
    const size_t used = (size_t)snprintf(
        line, sizeof line, "measured in this run: rms %s, max %s, %s × the prediction of ◆", rms, largest, ratio);
    if (w->measured.bad && used < sizeof line)
        snprintf(line + used, sizeof line - used, ", %llu NaN or infinite", (unsigned long long)w->measured.bad);
    canvas_put_cut(c, area, 1, 0, STYLE_TEXT, line);
    canvas_put_cut(c, area, 2, 0, STYLE_DIM,
                   "Enter runs a row if the kernel accepts it; :whatif e5m2 rows:32 x0.5 adds one");
    canvas_put(c, area, TITLE_ROW, 3, STYLE_DIM, "formats");
    canvas_put(c, area, TITLE_ROW, words + 9 - 3, STYLE_DIM, "rms");
    canvas_put(c, area, TITLE_ROW, words + 18 - 3, STYLE_DIM, "max");
    canvas_put(c, area, TITLE_ROW, words + 27 - 5, STYLE_DIM, "× run");
    const int first = window_first(chosen, visible, w->n);
    for (int i = first; i < w->n && i < first + visible; i++)
        row_draw(w, i, i == chosen, most, c, area, FIRST_ROW + i - first);
}

static void view_whatif_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct rect area = view_body(c->cols, c->rows);
    const struct laboratory_state *x = session_looked(s);
    char right[96];
    area.col = 1;
    area.cols -= 2;
    looks_words(s, right, sizeof right);
    view_frame_draw(s, c, VIEW_WHATIF, "what if", right);
    struct text_flow f = {.canvas = c, .area = area};
    if (!x || !x->whatif)
        flow_put(&f, STYLE_DIM, s->trace ? "Reading the unquantized inputs." : "No run yet.");
    else if (!x->whatif->given_known)
        flow_put(&f, STYLE_DIM, "The unquantized values of this run are unknown: other formats cannot be predicted.");
    else
        lines_draw(x, c, area, vs);
}

/* Enter runs the kernel with the selected row's formats. */
static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    (void)times;
    if (a != ACTION_ZOOM || !rows(s))
        return (struct view_answer){0};
    return (struct view_answer){.does = ANSWER_TRIES, .choice = selected_choice(s, vs)};
}

const struct view view_whatif = {.draw = view_whatif_draw, .count = rows, .act = act, .looks = LABORATORY_WHATIF};
