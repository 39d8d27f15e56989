/* Every element of the cursor's tile, and beside and below them how wrong each row and each column is at worst. */
#include "tui/views/panels.h"
#include "tui/views/view_text.h"

#include "engine/trace/writers.h"
#include "tui/screen/number.h"
#include <math.h>
#include <stdio.h>

enum {
    RULER_COLS = 8,
    CURSOR_ROWS = 5,
    LOW_ROWS = 20 /* lower screens keep the line of who recorded it for the tile */
};

/* Error/bound as a height: up to 0.01, 0.1, 1, which pass, then a step for each factor of ten. */
static const char *ruler_glyph(double ratio)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double most = 0.01;
    for (int i = 0; i < 7; i++, most *= 10)
        if (ratio <= most * (1 + 1e-12))
            return levels[i];
    return levels[7];
}

static enum style ruler_style(double ratio)
{
    return ratio <= 1 ? STYLE_OK : STYLE_BAD;
}

static double row_worst(const struct session *s, int row, bool global)
{
    double worst = 0;
    for (int col = 0; col < s->tile.detail.cols; col++)
        worst = error_larger(worst, tile_ratio(s, row, col, global));
    return worst;
}

static double col_worst(const struct session *s, int col, bool global)
{
    double worst = 0;
    for (int row = 0; row < s->tile.detail.rows; row++)
        worst = error_larger(worst, tile_ratio(s, row, col, global));
    return worst;
}

static void mark_draw(struct canvas *c, struct rect area, int row, int col, double ratio)
{
    char text[NUMBER_BYTES];
    canvas_put(c, area, row, col, ruler_style(ratio), ruler_glyph(ratio));
    canvas_put(c, area, row, col + 2, STYLE_DIM, number_ratio(text, ratio));
}

/* Of the whole row or column, not only of what is visible of it. */
static void rulers_draw(const struct session *s, struct canvas *c, struct rect matrix, bool global)
{
    const struct tile_window w = tile_window(s, matrix);
    const int right = matrix.col + w.label_cols + w.cols * w.cell_cols + 1, below = matrix.row + 1 + w.rows;
    const struct rect all = {0, 0, c->rows, c->cols};
    canvas_put(c, all, matrix.row, right, STYLE_DIM, "worst");
    for (int r = 0; r < w.rows; r++)
        mark_draw(c, all, matrix.row + 1 + r, right, row_worst(s, w.first_row + r, global));
    canvas_put(c, all, below, matrix.col, STYLE_DIM, "worst");
    for (int i = 0; i < w.cols; i++)
        mark_draw(c, all, below, matrix.col + w.label_cols + i * w.cell_cols + 1,
                  col_worst(s, w.first_col + i, global));
}

static void matrix_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs)
{
    if (!cursor_has_detail(s) || s->tile.detail.cols == 1 || area.rows < 6) {
        tile_matrix_draw(s, c, area, vs);
        return;
    }
    const struct rect matrix = {area.row, area.col, area.rows - 1, area.cols - RULER_COLS};
    const struct rect words = {area.row + area.rows - 1, area.col, 1, area.cols};
    struct rect body = matrix;
    /* The matrix ends with the line of what is shown; the ruler comes between. */
    tile_matrix_draw(s, c, body, vs);
    canvas_fill(c, (struct rect){matrix.row + matrix.rows - 1, area.col, 1, area.cols}, STYLE_TEXT, " ");
    rulers_draw(s, c, matrix, shown_global(s, vs));
    tile_shown_draw(s, c, words);
    if (area.cols >= 66)
        text_right(c, words, 0, STYLE_DIM,
                   area.cols < 100 ? "worst: ▃ ≤1, step ×10 " : "worst: err/bound, ▃ ≤1, each step ×10 ");
}

static void view_tile_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    char title[96], right[96], words[192], line[2 * CODE_LINE_BYTES + 8], codes[CODE_LINES][CODE_LINE_BYTES];
    struct rect body = view_body(c->cols, c->rows);
    tile_title(s, 0, vs, title, sizeof title);
    snprintf(right, sizeof right, "r%d c%d", s->at.cursor.row, s->at.cursor.col);
    view_frame_draw(s, c, VIEW_TILE, title, right);
    char writer[WRITER_WORDS_BYTES + 16];
    const bool known = writer_words(s, writer, sizeof writer) && body.rows >= LOW_ROWS;
    const int rows = CURSOR_ROWS + known;
    const struct rect element = {body.row + body.rows - rows, 1, rows, body.cols - 2};
    formula_words(s, vs, right, sizeof right);
    rule_draw(c, (struct rect){element.row - 1, 0, 1, c->cols}, "cursor", right);
    element_draw(s, c, element, vs);
    bound_words(s, words, sizeof words);
    if (code_lines(s, codes) > 0)
        snprintf(line, sizeof line, "%s; %s", codes[0], codes[1]);
    else
        snprintf(line, sizeof line, "%s%s", words[0] ? "local bound: " : "", words);
    canvas_put_cut(c, element, 4, 0, STYLE_DIM, line);
    if (known)
        canvas_put_cut(c, element, 5, 0, STYLE_DIM, writer);
    body.rows -= rows + 1;
    matrix_draw(s, c, body, vs);
}

const struct view view_tile = {.draw = view_tile_draw, .act = act_on_element};
