/* What the element under the cursor was made from: the steps of its formula, captured beside the reference's, and the
   largest terms of its sum. */
#include "tui/views/view_text.h"

#include "engine/trace/conventions.h"
#include "engine/trace/writers.h"
#include "tui/screen/number.h"
#include "tui/views/panels.h"
#include "tui/views/sign.h"
#include <math.h>
#include <stdio.h>

enum { NAME_COLS = 22, VALUE_COLS = 16 };

/* A share of the sum of magnitudes, "12%". */
static const char *share_text(char out[NUMBER_BYTES], double part, double all)
{
    const double percent = 100 * fabs(part) / all;
    if (!(all > 0) || !isfinite(percent))
        snprintf(out, NUMBER_BYTES, "-");
    else if (percent < 0.95 && percent > 0)
        snprintf(out, NUMBER_BYTES, "<1%%");
    else
        snprintf(out, NUMBER_BYTES, "%.0f%%", percent);
    return out;
}

static enum style value_style(double value, enum style usual)
{
    return isfinite(value) || value == -INFINITY ? usual : STYLE_NONFINITE;
}

static void value_draw(struct canvas *c, struct rect area, int row, int col, double value, int known, enum style usual)
{
    char text[NUMBER_BYTES];
    canvas_printf(c, area, row, col, known ? value_style(value, usual) : STYLE_DIM, "%*s", VALUE_COLS,
                  known ? number_signed(text, value, 13) : "-");
}

static void line_draw(struct canvas *c, struct rect area, int row, const struct derivation_step *step, enum style style)
{
    canvas_put(c, area, row, 1, style, step->name);
    value_draw(c, area, row, NAME_COLS, step->got, step->got_known, step->expected ? STYLE_DIM : style);
    value_draw(c, area, row, NAME_COLS + VALUE_COLS, step->want, step->want_known, style);
    canvas_put_cut(c, area, row, NAME_COLS + 2 * VALUE_COLS + 2, STYLE_DIM,
                   step->expected ? "not recorded, expected" : step->formula);
}

/* The element beside what its operands come to. */
static void result_draw(const struct session *s, struct canvas *c, struct rect area, int row)
{
    const struct derivation *d = &s->tile.operands;
    struct derivation_step line = {.got = d->want_local,
                                   .want = d->want_global,
                                   .got_known = !isnan(d->want_local),
                                   .want_known = !isnan(d->want_global)};
    snprintf(line.name, sizeof line.name, "%s should be", channel_label(d->channel));
    snprintf(line.formula, sizeof line.formula, "in float64");
    line_draw(c, area, row, &line, STYLE_STRONG);
    line = (struct derivation_step){.got = d->got, .got_known = d->recorded};
    snprintf(line.name, sizeof line.name, "%s is", channel_label(d->channel));
    line_draw(c, area, row + 1, &line, STYLE_STRONG);
    const int from = NAME_COLS + VALUE_COLS + 2;
    if (!cursor_has_detail(s) || d->row >= s->tile.detail.rows || d->col >= s->tile.detail.cols)
        return;
    const enum tile_status sign = sign_of_element(&s->tile.detail, d->row, d->col);
    const size_t i = (size_t)d->row * (size_t)s->tile.detail.cols + (size_t)d->col;
    int col =
        from + canvas_printf(c, area, row + 1, from, sign_style(sign), "%s %s", sign_glyph(sign), sign_word(sign));
    const double bound = s->tile.detail.bound_local[i], off = d->got == d->want_local ? 0 : d->got - d->want_local;
    if (!isnan(bound) && !isnan(d->want_local) && !isnan(d->got))
        canvas_printf(c, area, row + 1, col + 2, STYLE_DIM, "off by %+.2g, bound %.2g%s", off, bound,
                      bound_rounds(sign, off, bound));
}

/* Returns the rows used. */
static int steps_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const struct derivation *d = &s->tile.operands;
    int row = 0;
    canvas_printf(c, area, row, NAME_COLS, STYLE_DIM, "%*s%*s", VALUE_COLS, "captured", VALUE_COLS, "reference");
    row++;
    for (int i = 0; i < d->n_steps; i++)
        line_draw(c, area, row++, &d->step[i], STYLE_TEXT);
    result_draw(s, c, area, row);
    row += 2;
    char lines[CODE_LINES][CODE_LINE_BYTES];
    const int n = code_lines(s, lines);
    for (int i = 0; i < n; i++)
        canvas_put_cut(c, area, row++, 1, STYLE_TEXT, lines[i]);
    char writer[WRITER_WORDS_BYTES + 16];
    if (writer_words(s, writer, sizeof writer))
        canvas_put_cut(c, area, row++, 1, STYLE_DIM, writer);
    if (d->note[0])
        canvas_put(c, area, row++, 1, STYLE_WARNING, d->note);
    return row;
}

/* Columns of the table of terms: factors and product as captured, share, and by the reference what there is room for.
 */
struct term_columns {
    int width;       /* of one block */
    int wanted_both; /* 1: the wanted factors as well */
};

enum { INDEX_COLS = 6, TERM_COLS = 11, SHARE_COLS = 6 };

static struct term_columns term_columns(const struct derivation *d, int cols)
{
    const int products = d->n_factors == 2, captured = INDEX_COLS + (products ? 3 : 1) * TERM_COLS;
    const int share = d->channel == asc_m ? 0 : SHARE_COLS;
    const int full = captured + share + (products ? 3 : 1) * TERM_COLS + 3;
    return full <= cols ? (struct term_columns){full, products}
                        : (struct term_columns){captured + share + TERM_COLS + 3, 0};
}

static void term_head_draw(const struct derivation *d, const struct term_columns *t, struct canvas *c, struct rect area)
{
    const bool products = d->n_factors == 2;
    char product[16], wanted[24];
    snprintf(product, sizeof product, "%s·%s", d->factor[0], products ? d->factor[1] : "");
    int col = canvas_printf(c, area, 0, 0, STYLE_DIM, "%*s", INDEX_COLS - 1, d->index) + 1;
    for (int i = 0; i < d->n_factors; i++, col += TERM_COLS)
        canvas_printf(c, area, 0, col, STYLE_DIM, "%*s", TERM_COLS - 1, d->factor[i]);
    if (products) {
        canvas_put(c, area, 0, col + TERM_COLS - 1 - text_columns(product), STYLE_DIM, product);
        col += TERM_COLS;
    }
    if (d->channel != asc_m) {
        canvas_printf(c, area, 0, col, STYLE_DIM, "%*s", SHARE_COLS - 1, "share");
        col += SHARE_COLS;
    }
    for (int i = 0; i < d->n_factors && t->wanted_both; i++, col += TERM_COLS) {
        snprintf(wanted, sizeof wanted, "%s ref", d->factor[i]);
        canvas_put(c, area, 0, col + TERM_COLS - 1 - text_columns(wanted), STYLE_DIM, wanted);
    }
    snprintf(wanted, sizeof wanted, "%s ref", products ? product : d->factor[0]);
    canvas_put(c, area, 0, col + TERM_COLS - 1 - text_columns(wanted), STYLE_DIM, wanted);
}

static int number_draw(struct canvas *c, struct rect area, int row, int col, double value, enum style usual)
{
    char text[NUMBER_BYTES];
    canvas_printf(c, area, row, col, value_style(value, usual), "%*s", TERM_COLS - 1,
                  number_signed(text, value, TERM_COLS - 2));
    return col + TERM_COLS;
}

static void term_draw(const struct derivation *d, const struct term_columns *t, struct canvas *c, struct rect area,
                      int row, const struct derivation_term *term)
{
    char share[NUMBER_BYTES];
    int col = canvas_printf(c, area, row, 0, STYLE_DIM, "%*d", INDEX_COLS - 1, term->at) + 1;
    for (int i = 0; i < d->n_factors; i++)
        col = number_draw(c, area, row, col, term->got[i], STYLE_TEXT);
    if (d->n_factors == 2)
        col = number_draw(c, area, row, col, term->term_got, STYLE_STRONG);
    if (d->channel != asc_m) {
        canvas_printf(c, area, row, col, STYLE_DIM, "%*s", SHARE_COLS - 1,
                      share_text(share, term->term_got, d->size_got));
        col += SHARE_COLS;
    }
    for (int i = 0; i < d->n_factors && t->wanted_both; i++)
        col = number_draw(c, area, row, col, term->want[i], STYLE_TEXT);
    number_draw(c, area, row, col, term->term_want, STYLE_TEXT);
}

/* The terms that there is no room for, as one. */
static void rest_draw(const struct derivation *d, struct canvas *c, struct rect area, int row, int shown)
{
    char got[NUMBER_BYTES], want[NUMBER_BYTES];
    double sum = 0;
    double wanted = 0;
    for (int i = shown; i < d->n_terms; i++) {
        sum += d->terms[i].term_got;
        wanted += d->terms[i].term_want;
    }
    if (d->channel == asc_m)
        canvas_printf(c, area, row, 1, STYLE_DIM, "%d smaller ones", d->n_terms - shown);
    else
        canvas_printf(c, area, row, 1, STYLE_DIM, "%d smaller ones: %s in total, ref %s", d->n_terms - shown,
                      number_signed(got, sum, 9), number_signed(want, wanted, 9));
}

static void terms_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const struct derivation *d = &s->tile.operands;
    const struct term_columns t = term_columns(d, area.cols - 1);
    const char *what = d->n_factors == 2     ? "products"
                       : d->channel == asc_m ? "scores of the row"
                                             : "weights of the row";
    char title[64], size[NUMBER_BYTES], right[48] = "";
    int blocks = (area.cols - 1) / t.width;
    int rows = area.rows - 2;
    snprintf(title, sizeof title, "%d %s, the largest first", d->n_terms, what);
    if (d->channel != asc_m)
        snprintf(right, sizeof right, "sum of magnitudes %s", number_signed(size, d->size_got, 9) + (d->size_got > 0));
    rule_draw(c, (struct rect){area.row, area.col, 1, area.cols}, title, right);
    if (rows < 1)
        return;
    if (blocks > 1 && d->n_terms <= rows)
        blocks = 1;
    const bool all = blocks * rows >= d->n_terms;
    if (!all)
        rows--; /* for the rest */
    for (int b = 0; b < blocks && b * rows < d->n_terms; b++) {
        const struct rect block = {area.row + 1, area.col + b * t.width, area.rows - 1, t.width};
        term_head_draw(d, &t, c, block);
        for (int i = 0; i < rows && b * rows + i < d->n_terms; i++)
            term_draw(d, &t, c, block, 1 + i, &d->terms[b * rows + i]);
    }
    if (!all)
        rest_draw(d, c, area, area.rows - 1, blocks * rows);
}

static void nothing_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const struct derivation *d = &s->tile.operands;
    if (!s->run.trace)
        return;
    if (absent_draw(s, c, area) || (!s->tile.operands_made && values_under_way_draw(s, c, area)))
        return;
    canvas_put_cut(c, area, 1, 3, STYLE_DIM,
                   d->derived == DERIVED_UNVISITED ? "the kernel did not reach this tile: nothing was computed"
                   : d->derived == DERIVED_MASKED  ? "the row sees no key of this tile: nothing was computed"
                                                   : "the operands of this element are unknown");
}

static void view_operands_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    const struct derivation *d = &s->tile.operands;
    const struct rect body = view_body(c->cols, c->rows);
    char tile[96], title[144], right[128];
    (void)vs;
    place_words(s, session_place(s), tile, sizeof tile);
    snprintf(title, sizeof title, "operands of %s r%d c%d", tile, s->at.cursor.row, s->at.cursor.col);
    snprintf(right, sizeof right, "%s = %s", session_label(s, s->at.cursor.channel),
             s->run.trace ? conventions_formula(&s->run.trace->conventions, s->at.cursor.channel)
                          : channel_formula(s->at.cursor.channel));
    view_frame_draw(s, c, VIEW_OPERANDS, title, right);
    if (!s->run.trace || d->derived != DERIVED_YES || d->channel != s->at.cursor.channel) {
        nothing_draw(s, c, body);
        return;
    }
    const int used = steps_draw(s, c, body);
    if (d->n_terms > 0 && used + 3 <= body.rows)
        terms_draw(s, c, (struct rect){body.row + used, body.col, body.rows - used, body.cols});
}

const struct view view_operands = {.draw = view_operands_draw, .act = act_on_element};
