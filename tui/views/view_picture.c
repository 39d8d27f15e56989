/* A tile, a q tile over kv, or all tiles of a head as a picture, two lines of it to a line of the screen: a swizzle, a
   half rescaled tile, a stale stage are seen before a number is read. */
#include "engine/session/picture.h"

#include "engine/base/utf8.h"
#include "engine/trace/writers.h"
#include "tui/screen/number.h"
#include "tui/screen/scale.h"
#include "tui/views/panels.h"
#include "tui/views/sign.h"
#include "tui/views/view_text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* PAINT(id, words): what colors show, in the order of the key. The last two are known of a tile alone. */
#define PAINTS                                                                                                         \
    PAINT(PAINT_RATIO, "err/bound")                                                                                    \
    PAINT(PAINT_CLASS, "class")                                                                                        \
    PAINT(PAINT_DIFF, "difference")                                                                                    \
    PAINT(PAINT_QUOTIENT, "got/want")                                                                                  \
    PAINT(PAINT_GOT, "captured")                                                                                       \
    PAINT(PAINT_WARP, "recorded by warp")                                                                              \
    PAINT(PAINT_LANE, "recorded by lane")                                                                              \
    PAINT(PAINT_FROM_ROW, "from row")                                                                                  \
    PAINT(PAINT_FROM_COL, "from column")

enum paint {
#define PAINT(id, words) id,
    PAINTS
#undef PAINT
        PAINT_COUNT
};

static const char *const paint_words[PAINT_COUNT] = {
#define PAINT(id, words) words,
    PAINTS
#undef PAINT
};

enum { LABEL_COLS = 6, LARGEST_DOT = 8 };

/* How the picture lies on the screen. A dot is what has a color of its own. */
struct frame {
    struct rect area;   /* of the dots, on the canvas */
    int dots;           /* in a line of the screen, one below the other */
    int by_row, by_col; /* cells of the picture that share a dot */
    int rows, cols;     /* dots */
    int lines, columns; /* of the screen that a dot takes: lines * dots of them where it is larger than half a line */
};

static int divide_up(int a, int b)
{
    return (a + b - 1) / b;
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* Lines of the element below, with its rule, and of the legend: a tile of 64 rows is whole at 120x40. */
static int element_lines(struct rect body)
{
    return body.rows >= 40 ? 5 : 2;
}

static int legend_lines(struct rect body)
{
    return body.cols >= 118 ? 1 : 2;
}

static struct frame make_frame(const struct picture *p, struct rect body, bool ascii)
{
    struct frame f = {.dots = ascii ? 1 : 2};
    const int lines = body.rows - element_lines(body) - legend_lines(body) - 1, columns = body.cols - LABEL_COLS - 2;
    f.area = (struct rect){body.row + 1, body.col + LABEL_COLS, lines, columns};
    f.by_row = divide_up(p->rows, lines * f.dots);
    f.by_col = divide_up(p->cols, columns);
    f.rows = divide_up(p->rows, f.by_row);
    f.cols = divide_up(p->cols, f.by_col);
    f.lines = clamp(lines * f.dots / f.rows, 1, LARGEST_DOT);
    f.columns = clamp(columns / f.cols, 1, LARGEST_DOT);
    f.area.rows = divide_up(f.rows * f.lines, f.dots);
    f.area.cols = f.cols * f.columns;
    return f;
}

/* The worst element of a dot; NULL: there is none. */
static const struct picture_cell *dot_at(const struct picture *p, const struct frame *f, int row, int col)
{
    const struct picture_cell *worst = NULL;
    for (int r = row * f->by_row; r < (row + 1) * f->by_row && r < p->rows; r++)
        for (int c = col * f->by_col; c < (col + 1) * f->by_col && c < p->cols; c++) {
            const struct picture_cell *cell = &p->cells[(size_t)r * (size_t)p->cols + (size_t)c];
            worst = worst ? picture_worse(worst, cell) : cell;
        }
    return worst;
}

/* Of all that is finite in the picture. */
struct range {
    double low, high, diff;
};

static struct range find_range(const struct picture *p)
{
    struct range range = {INFINITY, -INFINITY, 0};
    for (size_t i = 0; i < (size_t)p->rows * (size_t)p->cols; i++) {
        const struct picture_cell *cell = &p->cells[i];
        const bool finite = isfinite(cell->got) && cell->status != STATUS_UNRECORDED && cell->status != STATUS_MASKED;
        range.low = finite ? fmin(range.low, cell->got) : range.low;
        range.high = finite ? fmax(range.high, cell->got) : range.high;
        if (finite && isfinite(cell->want))
            range.diff = fmax(range.diff, fabs((double)cell->got - cell->want));
    }
    if (!(range.low <= range.high))
        range.low = range.high = 0;
    return range;
}

/* What a dot looks like. */
struct tint {
    enum { TINT_NONE, TINT_SCALE, TINT_FIXED, TINT_SIGN } kind;
    enum scale scale;
    double t;
    uint32_t color;          /* TINT_FIXED, TINT_SIGN */
    const char *glyph;       /* TINT_SIGN: takes the whole character; TINT_FIXED without colors */
    enum tile_status status; /* TINT_SIGN */
};

static uint32_t gray(bool light, unsigned dark, unsigned bright)
{
    return COLOR(light ? bright : dark);
}

static struct tint sign_tint(enum tile_status status)
{
    static const uint32_t papers[CLASS_COUNT] = {[CLASS_NAN] = COLOR(0xb000b0),
                                                 [CLASS_INF] = COLOR(0xc02020),
                                                 [CLASS_MISSING] = COLOR(0x00706c),
                                                 [CLASS_EXTRA] = COLOR(0x6a4bd0)};
    return (struct tint){.kind = TINT_SIGN, .color = papers[status], .glyph = sign_glyph(status), .status = status};
}

static struct tint masked_tint(bool light)
{
    return (struct tint){.kind = TINT_FIXED, .color = gray(light, 0x3a3a3a, 0xc8c8c8), .glyph = "-"};
}

static struct tint on_scale(enum scale scale, double t)
{
    return (struct tint){.kind = TINT_SCALE, .scale = scale, .t = t};
}

static double class_place(enum tile_status status)
{
    return status == CLASS_OFF ? 1 : status == STATUS_UPSTREAM ? 0.55 : 0.1;
}

/* Three times the half or the double of what is wanted are the scale's ends. */
static double quotient_place(double quotient)
{
    return quotient > 0 ? log2(quotient) / 3 : -1;
}

static struct tint other_sign(bool light)
{
    return (struct tint){.kind = TINT_FIXED, .color = gray(light, 0x0aa5a0, 0x00807c), .glyph = "±"};
}

static struct tint unknown_origin(bool light)
{
    return (struct tint){.kind = TINT_FIXED, .color = gray(light, 0x3a3a3a, 0xc8c8c8), .glyph = "x"};
}

static double writer_place(const struct picture *p, int thread, enum paint paint)
{
    return paint == PAINT_LANE ? thread % 32 / 31.0 : p->warps > 1 ? thread / 32 / (p->warps - 1.0) : 0;
}

static struct tint quotient_tint(const struct picture_cell *cell, bool light)
{
    if (cell->want == 0)
        return on_scale(SCALE_SIGN, cell->got == 0 ? 0 : 1);
    const double quotient = (double)cell->got / cell->want;
    return quotient < 0 ? other_sign(light) : on_scale(SCALE_SIGN, quotient_place(quotient));
}

static struct tint tint_of(const struct picture *p, const struct picture_cell *cell, enum paint paint,
                           const struct range *range, bool light)
{
    if (!cell || cell->status == STATUS_UNRECORDED)
        return (struct tint){.kind = TINT_NONE};
    if (paint == PAINT_WARP || paint == PAINT_LANE)
        return cell->thread < 0 ? unknown_origin(light) : on_scale(SCALE_SIZE, writer_place(p, cell->thread, paint));
    if (picture_cell_is_special(cell))
        return sign_tint(cell->status);
    if (cell->status == STATUS_MASKED)
        return masked_tint(light);
    if (cell->status == STATUS_UNJUDGED && (paint != PAINT_GOT || !isfinite(cell->got)))
        return (struct tint){
            .kind = TINT_FIXED, .color = gray(light, 0x5c5c5c, 0xa0a0a0), .glyph = sign_glyph(STATUS_UNJUDGED)};
    switch (paint) {
    case PAINT_CLASS:
        return on_scale(SCALE_SIZE, class_place(cell->status));
    case PAINT_DIFF:
        return on_scale(SCALE_SIGN, range->diff > 0 ? ((double)cell->got - cell->want) / range->diff : 0);
    case PAINT_QUOTIENT:
        return quotient_tint(cell, light);
    case PAINT_GOT:
        return on_scale(SCALE_SIZE,
                        range->high > range->low ? (cell->got - range->low) / (range->high - range->low) : 0.5);
    case PAINT_FROM_ROW:
        return cell->from_row < 0 ? unknown_origin(light)
                                  : on_scale(SCALE_SIZE, p->tile_rows > 1 ? cell->from_row / (p->tile_rows - 1.0) : 0);
    case PAINT_FROM_COL:
        return cell->from_col < 0 ? unknown_origin(light)
                                  : on_scale(SCALE_SIZE, p->tile_cols > 1 ? cell->from_col / (p->tile_cols - 1.0) : 0);
    default:
        return on_scale(SCALE_SIZE, scale_of_ratio(cell->ratio));
    }
}

static uint32_t color_of(const struct tint *tint, bool light)
{
    return tint->kind == TINT_NONE    ? 0
           : tint->kind == TINT_SCALE ? scale_color(tint->scale, tint->t, light)
                                      : tint->color;
}

/* As many dots of a half of a braille character. */
static unsigned dots_of(const struct tint *tint, bool lower)
{
    static const uint8_t bits[2][4] = {{0x01, 0x10, 0x08, 0x02}, {0x04, 0x80, 0x20, 0x40}};
    const int n = tint->kind == TINT_SCALE ? scale_level(tint->t) : 0;
    unsigned set = 0;
    for (int i = 0; i < n; i++)
        set |= bits[lower][i];
    return set;
}

/* One character of two dots, or of one in ASCII: then lower is upper. */
static void character_draw(struct canvas *c, int row, int col, const struct tint *upper, const struct tint *lower)
{
    const struct rect all = {0, 0, c->rows, c->cols};
    const struct tint *sign = upper->kind == TINT_SIGN ? upper : lower->kind == TINT_SIGN ? lower : NULL;
    if (sign && c->colors) {
        canvas_color(c, all, row, col, COLOR(0xffffff), sign->color, sign->glyph);
    } else if (sign) {
        canvas_put(c, all, row, col, sign_style(sign->status), sign->glyph);
    } else if (c->colors) {
        const uint32_t ink = color_of(upper, c->light), paper = color_of(lower, c->light);
        if (ink || paper)
            canvas_color(c, all, row, col, ink ? ink : paper, ink ? paper : 0, ink ? "▀" : "▄");
    } else if (upper->kind == TINT_FIXED || lower->kind == TINT_FIXED) {
        const struct tint *fixed = upper->kind == TINT_FIXED ? upper : lower;
        const struct tint *other = fixed == upper ? lower : upper;
        if (other->kind == TINT_SCALE && scale_level(other->t) > 0)
            fixed = NULL; /* what is wrong shows */
        if (fixed)
            canvas_put(c, all, row, col, STYLE_DIM, fixed->glyph);
    }
    if (sign || c->colors)
        return;
    if (upper->kind != TINT_SCALE && lower->kind != TINT_SCALE)
        return;
    if (c->ascii) {
        static const char *const ramp[SCALE_LEVELS] = {".", ":", "+", "*", "#"};
        canvas_put(c, all, row, col, STYLE_TEXT, ramp[scale_level(upper->t)]);
        return;
    }
    char text[5] = {0};
    const unsigned code = 0x2800 | dots_of(upper, false) | dots_of(lower, true);
    utf8_write(code, text);
    if (code != 0x2800)
        canvas_put(c, all, row, col, STYLE_TEXT, text);
}

static void dots_draw(const struct picture *p, const struct frame *f, struct canvas *c, enum paint paint)
{
    const struct range range = find_range(p);
    for (int line = 0; line < f->area.rows; line++)
        for (int col = 0; col < f->cols; col++) {
            const int row = line * f->dots / f->lines, below = (line * f->dots + f->dots - 1) / f->lines;
            const struct tint upper = tint_of(p, dot_at(p, f, row, col), paint, &range, c->light);
            const struct tint lower = below == row      ? upper
                                      : below < f->rows ? tint_of(p, dot_at(p, f, below, col), paint, &range, c->light)
                                                        : (struct tint){.kind = TINT_NONE};
            for (int i = 0; i < f->columns; i++)
                character_draw(c, f->area.row + line, f->area.col + col * f->columns + i, &upper, &lower);
        }
}

/* Row and column of an element of the picture to those of the screen. */
static int line_of(const struct picture *p, const struct frame *f, int row)
{
    return row / p->by_row / f->by_row * f->lines / f->dots;
}

static int column_of(const struct picture *p, const struct frame *f, int col)
{
    return col / p->by_col / f->by_col * f->columns;
}

/* Numbers of rows and columns, or of tiles where there are several; the cursor's row and column between arrows. */
static void rulers_draw(const struct session *s, const struct picture *p, const struct frame *f, struct canvas *c)
{
    const struct rect all = {0, 0, c->rows, c->cols};
    const struct cursor *at = &s->at.cursor;
    const int top = f->area.row - 1, left = f->area.col - LABEL_COLS;
    const int by_col = p->kv_tiles > 1 ? p->tile_cols : 8, by_row = p->q_tiles > 1 ? p->tile_rows : 8;
    for (int col = 0, free_from = 0; col < p->kv_tiles * p->tile_cols; col += by_col) {
        const int x = column_of(p, f, col);
        char label[16];
        snprintf(label, sizeof label, p->kv_tiles > 1 ? "k%d" : "%d", p->kv_tiles > 1 ? col / by_col : col);
        if (x >= free_from && x + text_columns(label) <= f->area.cols)
            free_from = x + 1 + canvas_put(c, all, top, f->area.col + x, STYLE_DIM, label);
    }
    for (int row = 0, free_from = 0; row < p->q_tiles * p->tile_rows; row += by_row) {
        const int y = line_of(p, f, row);
        if (y >= free_from && y < f->area.rows)
            canvas_printf(c, all, f->area.row + y, left + 1, STYLE_DIM, p->q_tiles > 1 ? "q%d" : "%d",
                          p->q_tiles > 1 ? row / by_row : row);
        free_from = y >= free_from ? y + 1 : free_from;
    }
    const int kv = channel_per_kv(p->channel) ? at->kv_tile - p->first_kv : 0;
    const int y = line_of(p, f, (at->q_tile - p->first_q) * p->tile_rows + at->row);
    const int x = column_of(p, f, kv * p->tile_cols + at->col);
    canvas_put(c, all, top, f->area.col + x, STYLE_CURSOR, "▼");
    canvas_put(c, all, f->area.row + y, f->area.col - 1, STYLE_CURSOR, "▶");
    canvas_put(c, all, f->area.row + y, f->area.col + f->area.cols, STYLE_CURSOR, "◀");
}

/* "█ 0.01" */
static int stop_draw(struct canvas *c, struct rect area, int col, const struct tint *tint, const char *words)
{
    const int begin = col;
    if (col + 3 + text_columns(words) > area.cols)
        return 0;
    if (tint->kind == TINT_SCALE && !c->colors && scale_level(tint->t) == 0)
        canvas_put(c, area, 0, col, STYLE_DIM, c->ascii ? "." : "·"); /* a blank would not be seen */
    else
        character_draw(c, area.row, area.col + col, tint, tint);
    col += 2;
    col += canvas_put(c, area, 0, col, STYLE_DIM, words);
    return col + 2 - begin;
}

/* What the colors of a paint stand for: places on its scale, and what is none. */
/* Returns the columns used. */
static int scale_draw(const struct picture *p, struct canvas *c, struct rect area, enum paint paint)
{
    static const double ratios[] = {0.01, 1, 10, 1e3, 1e6};
    const struct range range = find_range(p);
    const int last = paint == PAINT_LANE       ? 31
                     : paint == PAINT_WARP     ? p->warps - 1
                     : paint == PAINT_FROM_ROW ? p->tile_rows - 1
                                               : p->tile_cols - 1;
    char words[NUMBER_BYTES + 4], number[NUMBER_BYTES];
    int col = canvas_put(c, area, 0, 0, STYLE_STRONG, paint_words[paint]) + 2;
    for (int i = 0; i < 5; i++) {
        const double t = i / 4.0;
        struct tint tint = on_scale(SCALE_SIZE, t);
        words[0] = '\0';
        switch (paint) {
        case PAINT_CLASS: {
            static const enum tile_status classes[] = {CLASS_OK, STATUS_UPSTREAM, CLASS_OFF};
            if (i < 3) {
                tint = on_scale(SCALE_SIZE, class_place(classes[i]));
                snprintf(words, sizeof words, "%s", sign_word(classes[i]));
            }
            break;
        }
        case PAINT_DIFF:
            tint = on_scale(SCALE_SIGN, 2 * t - 1);
            if (i % 2 == 0)
                snprintf(words, sizeof words, "%s", i == 2 ? "0" : number_signed(number, (2 * t - 1) * range.diff, 9));
            break;
        case PAINT_QUOTIENT:
            tint = on_scale(SCALE_SIGN, 2 * t - 1);
            if (i % 2 == 0)
                snprintf(words, sizeof words, "%s", i == 0 ? "≤1/8" : i == 2 ? "1" : "≥8");
            break;
        case PAINT_GOT:
            if (i % 2 == 0)
                snprintf(words, sizeof words, "%s", number_signed(number, range.low + t * (range.high - range.low), 9));
            break;
        case PAINT_WARP:
        case PAINT_LANE:
        case PAINT_FROM_ROW:
        case PAINT_FROM_COL:
            if (i % 2 == 0 && (last > 1 || i == 0 || i == 4) && (last > 0 || i == 0))
                snprintf(words, sizeof words, "%d", (int)(t * last));
            break;
        default:
            tint = on_scale(SCALE_SIZE, scale_of_ratio(ratios[i]));
            snprintf(words, sizeof words, "%s%s", i == 0 ? "≤" : i == 4 ? "≥" : "", number_ratio(number, ratios[i]));
            break;
        }
        if (words[0])
            col += stop_draw(c, area, col, &tint, words);
    }
    const struct tint other = other_sign(c->light), unknown = unknown_origin(c->light);
    if (paint == PAINT_QUOTIENT)
        col += stop_draw(c, area, col, &other, "other sign");
    else if (paint == PAINT_FROM_ROW || paint == PAINT_FROM_COL)
        col += stop_draw(c, area, col, &unknown, "of none, or several");
    else if (paint == PAINT_WARP || paint == PAINT_LANE)
        col += stop_draw(c, area, col, &unknown, "not known");
    else if (!c->colors && paint == PAINT_DIFF)
        col += canvas_put_cut(c, area, 0, col, STYLE_DIM, "size alone") + 2;
    return col;
}

static void legend_lines_draw(const struct picture *p, const struct frame *f, struct canvas *c, struct rect area,
                              enum paint paint)
{
    static const enum tile_status signs[] = {CLASS_NAN, CLASS_INF, CLASS_MISSING, CLASS_EXTRA};
    const int rows = p->by_row * f->by_row, cols = p->by_col * f->by_col;
    const struct rect last = {area.row + area.rows - 1, area.col, 1, area.cols};
    char words[48] = "";
    int col = scale_draw(p, c, (struct rect){area.row, area.col, 1, area.cols}, paint);
    col = area.rows > 1 ? 0 : col;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const struct tint tint = sign_tint(signs[i]);
        col += stop_draw(c, last, col, &tint, sign_word(signs[i]));
    }
    const struct tint masked = masked_tint(c->light);
    stop_draw(c, last, col, &masked, sign_word(STATUS_MASKED));
    if (rows * cols > 1)
        snprintf(words, sizeof words, " worst of %dx%d", rows, cols);
    text_right(c, last, 0, STYLE_DIM, words);
}

/* Finds the picture; *made: it is the caller's. NULL: there is none (yet). */
static const struct picture *find_picture(const struct session *s, const struct view_state *vs, struct picture *made)
{
    *made = (struct picture){.cells = NULL};
    if (vs->scope == PICTURE_TILE)
        return picture_of_tile(s, shown_global(s, vs), made) == 0 ? made : NULL;
    return s->tile.picture.cells && (int)s->tile.picture.scope == vs->scope ? &s->tile.picture : NULL;
}

static enum paint shown_paint(const struct view_state *vs)
{
    const bool tile_only = vs->paint == PAINT_FROM_ROW || vs->paint == PAINT_FROM_COL;
    return tile_only && vs->scope != PICTURE_TILE ? PAINT_RATIO : (enum paint)vs->paint;
}

static void title_words(const struct session *s, const struct view_state *vs, char *out, size_t bytes)
{
    const struct cursor *at = &s->at.cursor;
    char batch[16] = "", q[16] = "", kv[16] = "";
    if (shown_problem(s)->batch > 1)
        snprintf(batch, sizeof batch, "b%d,", at->batch);
    if (vs->scope != PICTURE_HEAD)
        snprintf(q, sizeof q, ",q%d", at->q_tile);
    if (vs->scope == PICTURE_TILE && channel_per_kv(at->channel))
        snprintf(kv, sizeof kv, ",k%d", at->kv_tile);
    snprintf(out, bytes, "%s[%sh%d%s%s] %s%s%s", channel_label(at->channel), batch, at->head, q, kv,
             vs->scope == PICTURE_HEAD                                    ? "all tiles, "
             : vs->scope == PICTURE_Q_TILE && channel_per_kv(at->channel) ? "all kv, "
                                                                          : "",
             paint_words[shown_paint(vs)], vs->global ? ", global" : "");
}

static void element_part_draw(const struct session *s, struct canvas *c, struct rect body, const struct view_state *vs)
{
    const int lines = element_lines(body);
    struct rect area = {body.row + body.rows - lines, 1, lines, body.cols - 2};
    if (lines > 2) {
        char right[96];
        formula_words(s, vs, right, sizeof right);
        rule_draw(c, (struct rect){area.row, 0, 1, c->cols}, "cursor", right);
        area.row++;
        area.rows--;
    }
    element_draw(s, c, area, vs);
}

static void view_picture_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    char title[96], right[48];
    const struct rect body = view_body(c->cols, c->rows);
    struct picture made;
    title_words(s, vs, title, sizeof title);
    snprintf(right, sizeof right, "r%d c%d", s->at.cursor.row, s->at.cursor.col);
    const struct picture *p = find_picture(s, vs, &made);
    if (p && p->n_made < p->n_there)
        snprintf(right, sizeof right, "%d of %d q tiles", p->n_made, p->n_there);
    view_frame_draw(s, c, VIEW_PICTURE, title, right);
    if (!p) {
        const struct rect area = {body.row, 0, body.rows, body.cols};
        if (!absent_draw(s, c, area) && !values_under_way_draw(s, c, area))
            canvas_put(c, area, 1, 3, STYLE_DIM, "nothing is recorded and judged here");
        return;
    }
    const struct frame f = make_frame(p, body, c->ascii);
    dots_draw(p, &f, c, shown_paint(vs));
    rulers_draw(s, p, &f, c);
    const struct rect all = {0, 0, c->rows, c->cols};
    hit_add(c, all, f.area, HIT_CELL, 0, 0, 1);
    legend_lines_draw(p, &f, c,
                      (struct rect){body.row + body.rows - element_lines(body) - legend_lines(body), 1,
                                    legend_lines(body), body.cols - 2},
                      shown_paint(vs));
    element_part_draw(s, c, body, vs);
    picture_free(&made);
}

/* To the worst element under a click. */
static bool click(const struct session *s, const struct view_state *vs, struct canvas *c, int line, int column,
                  struct cursor *to)
{
    struct picture made;
    const struct picture *p = find_picture(s, vs, &made);
    if (!p)
        return false;
    const struct frame f = make_frame(p, view_body(c->cols, pins_view_rows(s, c->rows)), c->ascii);
    const struct picture_cell *upper = dot_at(p, &f, line * f.dots / f.lines, column / f.columns);
    const int below = (line * f.dots + f.dots - 1) / f.lines;
    const struct picture_cell *lower = below < f.rows ? dot_at(p, &f, below, column / f.columns) : upper;
    const struct picture_cell *at = upper && lower ? picture_worse(upper, lower) : upper;
    const bool found = at && at->status != STATUS_UNRECORDED;
    if (found) {
        to->q_tile = p->first_q + at->row / p->tile_rows;
        to->row = at->row % p->tile_rows;
        to->col = at->col % p->tile_cols;
        if (channel_per_kv(p->channel))
            to->kv_tile = p->first_kv + at->col / p->tile_cols;
    }
    picture_free(&made);
    return found;
}

static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    const struct view_answer did = {.does = ANSWER_DID};
    switch (a) {
    case ACTION_CYCLE_SHOWN:
        vs->paint = (shown_paint(vs) + 1) % (vs->scope == PICTURE_TILE ? PAINT_COUNT : PAINT_FROM_ROW);
        if (vs->paint == PAINT_WARP && !(s->run.trace && trace_keeps_writers(s->run.trace)))
            vs->paint = vs->scope == PICTURE_TILE ? PAINT_FROM_ROW : PAINT_RATIO;
        return did;
    case ACTION_PICTURE:
        vs->scope = (vs->scope + 1) % PICTURE_SCOPES;
        return did;
    case ACTION_ZOOM:
        if (vs->scope == PICTURE_TILE)
            return (struct view_answer){.does = ANSWER_OPENS, .view = VIEW_TILE};
        vs->scope = PICTURE_TILE;
        return did;
    default:
        /* Over several tiles steps are those of tiles, as in the map. */
        return vs->scope == PICTURE_TILE ? act_on_element(s, vs, a, times) : (struct view_answer){0};
    }
}

const struct view view_picture = {.draw = view_picture_draw, .act = act, .click = click, .picture = true};
