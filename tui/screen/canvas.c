#include "tui/screen/canvas.h"

#include "engine/base/utf8.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int canvas_init(struct canvas *c, int cols, int rows, bool ascii)
{
    *c = (struct canvas){.ascii = ascii};
    if (cols < 1 || rows < 1)
        return -1;
    c->cells = malloc((size_t)cols * (size_t)rows * sizeof *c->cells);
    if (!c->cells)
        return -1;
    c->cols = cols;
    c->rows = rows;
    canvas_clear(c);
    return 0;
}

void canvas_free(struct canvas *c)
{
    if (c) {
        free(c->cells);
        *c = (struct canvas){0};
    }
}

void canvas_clear(struct canvas *c)
{
    for (size_t i = 0; i < (size_t)c->cols * (size_t)c->rows; i++)
        c->cells[i] = (struct cell){.code = ' ', .style = STYLE_TEXT};
}

enum { SIGMA = 0x03A3 };

static uint32_t fold(uint32_t code)
{
    if (code < 0x80)
        return code;
    switch (code) {
#define GLYPH(utf, ascii)                                                                                              \
    case utf:                                                                                                          \
        return ascii;
#include "tui/screen/glyphs.def"
#undef GLYPH
    default:
        return '?';
    }
}

/* The part of the area that lies on the canvas, as absolute bounds [top, bottom) and [left, right). */
struct bounds {
    int64_t top, bottom, left, right;
};

static struct bounds visible(const struct canvas *c, struct rect area)
{
    struct bounds b = {area.row, (int64_t)area.row + area.rows, area.col, (int64_t)area.col + area.cols};
    if (b.top < 0)
        b.top = 0;
    if (b.left < 0)
        b.left = 0;
    if (b.bottom > c->rows)
        b.bottom = c->rows;
    if (b.right > c->cols)
        b.right = c->cols;
    return b;
}

/* Overwriting one half of a wide character blanks the other: no half is ever left behind. */
static void set(struct canvas *c, int64_t row, int64_t col, uint32_t code, enum style style)
{
    struct cell *line = c->cells + row * c->cols;
    if (line[col].code == 0 && code != 0 && col > 0)
        line[col - 1].code = ' ';
    if (col + 1 < c->cols && line[col + 1].code == 0)
        line[col + 1].code = ' ';
    line[col] = (struct cell){.code = code, .style = (uint8_t)style};
}

/* One character from column x on; returns the column behind it. */
static int64_t put_character(struct canvas *c, const struct bounds *b, int64_t row, int64_t x, uint32_t code,
                             enum style style)
{
    const int width = utf8_width(code);
    if (c->ascii)
        code = fold(code);
    /* A wide one that an edge cuts in half is blanks. */
    const bool whole = width < 2 || c->ascii || (x >= b->left && x + 1 < b->right);
    const int64_t first = x;
    for (int i = 0; i < width; i++, x++)
        if (x >= b->left && x < b->right)
            set(c, row, x, !whole ? ' ' : width == 2 && !c->ascii && x > first ? 0 : code, style);
    return x;
}

static bool in_word(uint32_t code)
{
    return code < 0x80 && (isalnum((int)code) || strchr("+-.%/", (int)code));
}

/* A number that an edge cuts would be read as another one. */
static void mark_cut(struct canvas *c, const struct bounds *b, int64_t row, uint32_t last, const char *rest)
{
    const char *sign = c->ascii ? ".." : "…";
    const int cols = text_columns(sign);
    uint32_t next = ' ';
    if (utf8_decode(rest, &next) == 0 || !in_word(last) || !in_word(next) || b->right - b->left < cols + 1)
        return;
    int64_t x = b->right - cols;
    uint32_t code;
    for (size_t length; (length = utf8_decode(sign, &code)) > 0; sign += length)
        set(c, row, x++, code, STYLE_DIM);
}

static int put(struct canvas *c, struct rect area, int row, int col, enum style style, const char *utf8, bool marked)
{
    struct bounds b = visible(c, area);
    int64_t r = (int64_t)area.row + row, x = (int64_t)area.col + col;
    const int64_t start = x;
    int shown = r >= b.top && r < b.bottom && utf8;
    uint32_t code = 0;
    for (size_t length; shown && x < b.right && (length = utf8_decode(utf8, &code)) > 0; utf8 += length) {
        char name[UTF8_NAME_BYTES];
        size_t named = utf8_name(utf8, length, code, name);
        if (c->ascii && code == SIGMA) /* S is a stage */
            named = (size_t)snprintf(name, sizeof name, "sum");
        for (size_t i = 0; i < named && x < b.right; i++)
            x = put_character(c, &b, r, x, (unsigned char)name[i], style);
        if (!named)
            x = put_character(c, &b, r, x, code, style);
    }
    if (marked && shown && x == b.right && start < b.right)
        mark_cut(c, &b, r, code, utf8);
    return (int)(x - start);
}

int canvas_put(struct canvas *c, struct rect area, int row, int col, enum style style, const char *utf8)
{
    return put(c, area, row, col, style, utf8, true);
}

int canvas_printf(struct canvas *c, struct rect area, int row, int col, enum style style, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return canvas_put(c, area, row, col, style, text);
}

int canvas_put_cut(struct canvas *c, struct rect area, int row, int col, enum style style, const char *utf8)
{
    const char *sign = c->ascii ? ".." : "…";
    const int room = area.cols - col, sign_cols = c->ascii ? 2 : 1;
    if (text_columns(utf8) <= room || room < sign_cols)
        return canvas_put(c, area, row, col, style, utf8);
    const struct rect head = {area.row, area.col, area.rows, area.cols - sign_cols};
    put(c, head, row, col, style, utf8, false);
    put(c, area, row, area.cols - sign_cols, STYLE_DIM, sign, false);
    return room;
}

void canvas_fill(struct canvas *c, struct rect area, enum style style, const char *glyph)
{
    struct bounds b = visible(c, area);
    uint32_t code = ' ';
    utf8_decode(glyph, &code);
    if (code < 0x20 || utf8_width(code) != 1)
        code = ' ';
    if (c->ascii)
        code = fold(code);
    for (int64_t r = b.top; r < b.bottom; r++)
        for (int64_t x = b.left; x < b.right; x++)
            set(c, r, x, code, style);
}

void canvas_color(struct canvas *c, struct rect area, int row, int col, uint32_t ink, uint32_t paper, const char *utf8)
{
    const struct bounds b = visible(c, area);
    const int64_t r = (int64_t)area.row + row, x = (int64_t)area.col + col;
    canvas_put(c, area, row, col, STYLE_TEXT, utf8);
    if (r >= b.top && r < b.bottom && x >= b.left && x < b.right) {
        struct cell *cell = &c->cells[r * c->cols + x];
        cell->ink = ink;
        cell->paper = paper;
    }
}

int text_columns(const char *utf8)
{
    int columns = 0;
    uint32_t code;
    for (size_t length; (length = utf8_decode(utf8, &code)) > 0; utf8 += length)
        columns += utf8_columns(utf8, length, code);
    return columns;
}

int canvas_write_text(const struct canvas *c, FILE *out)
{
    for (int r = 0; r < c->rows; r++) {
        const struct cell *line = c->cells + (size_t)r * (size_t)c->cols;
        int end = c->cols;
        while (end > 0 && line[end - 1].code == ' ')
            end--;
        for (int x = 0; x < end; x++) {
            char bytes[4] = {0};
            const size_t n = line[x].code != 0 ? utf8_write(line[x].code, bytes) : 0;
            fwrite(bytes, 1, n, out);
        }
        fputc('\n', out);
    }
    return ferror(out) ? -1 : 0;
}

void hit_add(struct canvas *c, struct rect panel, struct rect where, enum hit_kind kind, int first, int second,
             int step)
{
    struct hits *h = c->hits;
    /* Clipped to the panel, as all that is drawn. */
    if (where.rows > panel.rows - where.row)
        where.rows = panel.rows - where.row;
    if (where.cols > panel.cols - where.col)
        where.cols = panel.cols - where.col;
    if (!h || h->n == HITS_MAX || where.rows < 1 || where.cols < 1)
        return;
    where.row += panel.row;
    where.col += panel.col;
    h->at[h->n++] = (struct hit){kind, where, first, second, step};
}

bool hits_find(const struct hits *h, int row, int col, enum hit_kind *kind, int *first, int *second)
{
    for (int i = h->n; i-- > 0;) {
        const struct hit *hit = &h->at[i];
        const int down = row - hit->area.row, right = col - hit->area.col;
        if (down < 0 || right < 0 || down >= hit->area.rows || right >= hit->area.cols)
            continue;
        *kind = hit->kind;
        *first = hit->first + down;
        *second = hit->second + (hit->step ? right / hit->step : 0);
        return true;
    }
    return false;
}
