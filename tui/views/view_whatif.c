/* What the output would err by with other formats, row by row; Enter runs the kernel with one. */
#include "engine/session/look.h"
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

static void bar_draw(struct canvas *c, struct rect line, int col, double share)
{
    const int n = isfinite(share) ? (int)lround(fmin(share, 1) * BAR_COLS) : 0;
    for (int i = 0; i < n; i++)
        canvas_put(c, line, 0, col + i, STYLE_RULE, "█");
}

/* The largest error of all rows. */
static double most_of(const struct whatif *w)
{
    double most = 0;
    for (int i = 0; i < w->n; i++)
        most = fmax(most, path_rms(&w->row[i].o));
    return most;
}

static void choice_row(const struct list *l, int i, struct canvas *c, struct rect line)
{
    const struct whatif *w = l->of;
    const struct whatif_row *x = &w->row[i];
    const int words = words_cols(line.cols);
    const enum style style = list_style(l, i);
    char text[96];
    whatif_words(&x->choice, text, sizeof text);
    canvas_put_cut(c, (struct rect){line.row, line.col, 1, words + 1}, 0, 3, style, text);
    looks_cell(c, line, 0, words + 9, style, path_rms(&x->o));
    looks_cell(c, line, 0, words + 18, style, x->o.n ? x->o.largest : NAN);
    looks_cell(c, line, 0, words + 27, style, path_rms(&x->o) / path_rms(&w->row[0].o));
    if (i == 0)
        list_mark(c, line);
    if (line.cols >= words + 32 + BAR_COLS)
        bar_draw(c, line, words + 32, path_rms(&x->o) / most_of(w));
    if (x->o.bad) /* in the place of the ratio, which is none */
        canvas_put(c, line, 0, words + 29, STYLE_NONFINITE, "NaN");
}

static void errors_draw(const struct laboratory_state *x, struct canvas *c, struct rect area)
{
    const struct whatif *w = x->whatif;
    char line[192], rms[LOOKS_NUMBER], largest[LOOKS_NUMBER], ratio[LOOKS_NUMBER];
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
}

static void lines_draw(const struct laboratory_state *x, struct canvas *c, struct rect area,
                       const struct view_state *vs)
{
    const struct whatif *w = x->whatif;
    const int words = words_cols(area.cols);
    const struct list list = {.of = w, .n = w->n, .selected = list_selected(vs->selected, w->n), .row = choice_row};
    errors_draw(x, c, area);
    canvas_put(c, area, TITLE_ROW, 3, STYLE_DIM, "formats");
    canvas_put(c, area, TITLE_ROW, words + 9 - 3, STYLE_DIM, "rms");
    canvas_put(c, area, TITLE_ROW, words + 18 - 3, STYLE_DIM, "max");
    canvas_put(c, area, TITLE_ROW, words + 27 - 5, STYLE_DIM, "× run");
    list_draw(&list, c, (struct rect){area.row + FIRST_ROW, area.col, area.rows - FIRST_ROW, area.cols});
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
        flow_put(&f, STYLE_DIM, s->run.trace ? "Reading the unquantized inputs." : "No run yet.");
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
