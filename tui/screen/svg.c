#include "tui/screen/svg.h"

#include "engine/base/utf8.h"
#include <stdlib.h>

/* A cell in px. A monospaced font of 14 px advances by 8.4; textLength holds it to that whatever the font is. */
#define CELL_W 8.4
#define CELL_H 17
#define BASELINE 13
#define MARGIN 8

enum { HALF_UPPER = 0x2580, HALF_LOWER = 0x2584 };

struct picture {
    FILE *out;
    const struct canvas *canvas;
    const struct theme *theme;
    unsigned paper, ink;
};

static struct look look_of(const struct picture *p, uint8_t style)
{
    return theme_look(p->theme, (enum style)style, 256);
}

static unsigned color_of(int color, unsigned by_default)
{
    return color == ANSI_DEFAULT ? by_default : theme_rgb(color);
}

/* What a style's characters, and what lies behind them. */
static void colors_of(const struct picture *p, uint8_t style, unsigned *ink, unsigned *paper)
{
    const struct look look = look_of(p, style);
    const unsigned fg = color_of(look.fg, p->ink), bg = color_of(look.bg, p->paper);
    *ink = look.attributes & ATTR_REVERSE ? bg : fg;
    *paper = look.attributes & ATTR_REVERSE ? fg : bg;
}

static void write_styles(const struct picture *p)
{
    unsigned char used[STYLE_COUNT] = {0};
    for (size_t i = 0; i < (size_t)p->canvas->cols * (size_t)p->canvas->rows; i++)
        used[p->canvas->cells[i].style] = 1;
    fputs("<style>text{font-family:'DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,monospace;font-size:14px;"
          "white-space:pre}\n",
          p->out);
    for (int s = 0; s < STYLE_COUNT; s++) {
        const struct look look = look_of(p, (uint8_t)s);
        unsigned ink, paper;
        if (!used[s])
            continue;
        colors_of(p, (uint8_t)s, &ink, &paper);
        fprintf(p->out, ".s%d{fill:#%06x%s%s%s}\n", s, ink, look.attributes & ATTR_BOLD ? ";font-weight:bold" : "",
                look.attributes & ATTR_DIM ? ";opacity:.6" : "",
                look.attributes & ATTR_UNDERLINE ? ";text-decoration:underline" : "");
    }
    fputs("</style>\n", p->out);
}

static void write_character(FILE *out, uint32_t code)
{
    char bytes[4];
    switch (code) {
    case 0: /* the right half of a wide character */
        break;
    case '<':
        fputs("&lt;", out);
        break;
    case '>':
        fputs("&gt;", out);
        break;
    case '&':
        fputs("&amp;", out);
        break;
    default:
        fwrite(bytes, 1, utf8_write(code, bytes), out);
    }
}

/* A cell in colors of its own is written by write_dots(). */
static bool is_colored(const struct cell *cell)
{
    return cell->ink || cell->paper;
}

static bool empty(const struct cell *cell)
{
    return cell->code == ' ' || is_colored(cell);
}

static bool blank(const struct cell *cell)
{
    return empty(cell) || cell->code == 0;
}

/* Cells [from, to) of one style. Blanks at the ends are left out; two and more inside part the text in two. */
static void write_text(const struct picture *p, int row, int from, int to)
{
    const struct cell *line = p->canvas->cells + (size_t)row * (size_t)p->canvas->cols;
    for (int begin = from, end; begin < to; begin = end) {
        while (begin < to && empty(&line[begin]))
            begin++;
        end = begin;
        for (int blanks = 0; end < to && blanks < 2 && !is_colored(&line[end]); end++)
            blanks = line[end].code == ' ' ? blanks + 1 : 0;
        int last = end;
        while (last > begin && empty(&line[last - 1]))
            last--;
        if (last == begin)
            continue;
        fprintf(p->out,
                "<text class=\"s%d\" x=\"%.1f\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\">",
                line[begin].style, MARGIN + begin * CELL_W, MARGIN + row * CELL_H + BASELINE, (last - begin) * CELL_W);
        for (int x = begin; x < last; x++)
            write_character(p->out, line[x].code);
        fputs("</text>\n", p->out);
    }
}

static void write_row(const struct picture *p, int row)
{
    const struct cell *line = p->canvas->cells + (size_t)row * (size_t)p->canvas->cols;
    for (int from = 0, to; from < p->canvas->cols; from = to) {
        unsigned ink, paper;
        int empty = 1;
        for (to = from; to < p->canvas->cols && line[to].style == line[from].style; to++)
            empty &= blank(&line[to]);
        colors_of(p, line[from].style, &ink, &paper);
        if (paper != p->paper)
            fprintf(p->out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#%06x\"/>\n",
                    MARGIN + from * CELL_W, MARGIN + row * CELL_H, (to - from) * CELL_W, CELL_H, paper);
        if (!empty)
            write_text(p, row, from, to);
    }
}

/* Halves of cells of one color beside each other. */
struct run {
    uint32_t color;
    int row, col, cols;
    bool lower; /* half of the cells */
};

static int by_color(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return x->color != y->color ? (x->color > y->color) - (x->color < y->color) : (x > y) - (x < y);
}

static uint32_t half_color(const struct cell *cell, bool lower)
{
    return cell->code == HALF_UPPER && !lower ? cell->ink : cell->code == HALF_LOWER && lower ? cell->ink : cell->paper;
}

/* Runs of one half of a row; returns how many. */
static size_t find_runs(const struct canvas *c, int row, bool lower, struct run *out)
{
    const struct cell *line = c->cells + (size_t)row * (size_t)c->cols;
    size_t n = 0;
    for (int from = 0, to; from < c->cols; from = to) {
        const uint32_t color = half_color(&line[from], lower);
        for (to = from + 1; to < c->cols && half_color(&line[to], lower) == color; to++)
            continue;
        if (color)
            out[n++] = (struct run){color, row, from, to - from, lower};
    }
    return n;
}

/* All cells that have colors of their own: a path for each color, and the characters that are no halves. */
static int write_dots(const struct picture *p)
{
    const struct canvas *c = p->canvas;
    struct run *runs = malloc(2 * (size_t)c->rows * (size_t)c->cols * sizeof *runs);
    size_t n = 0;
    if (!runs)
        return -1;
    for (int row = 0; row < c->rows; row++)
        for (int lower = 0; lower < 2; lower++)
            n += find_runs(c, row, lower, runs + n);
    qsort(runs, n, sizeof *runs, by_color);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || runs[i].color != runs[i - 1].color)
            fprintf(p->out, "%s<path shape-rendering=\"crispEdges\" fill=\"#%06x\" d=\"", i ? "\"/>\n" : "",
                    runs[i].color & 0xffffff);
        fprintf(p->out, "M%.1f %.1fh%.1fv%.1fh-%.1fz", MARGIN + runs[i].col * CELL_W,
                MARGIN + runs[i].row * CELL_H + (runs[i].lower ? CELL_H / 2.0 : 0), runs[i].cols * CELL_W, CELL_H / 2.0,
                runs[i].cols * CELL_W);
    }
    if (n)
        fputs("\"/>\n", p->out);
    free(runs);
    for (int row = 0; row < c->rows; row++)
        for (int col = 0; col < c->cols; col++) {
            const struct cell *cell = &c->cells[(size_t)row * (size_t)c->cols + (size_t)col];
            if (!is_colored(cell) || cell->code == ' ' || cell->code == HALF_UPPER || cell->code == HALF_LOWER)
                continue;
            fprintf(p->out, "<text fill=\"#%06x\" x=\"%.1f\" y=\"%d\">", (cell->ink ? cell->ink : p->ink) & 0xffffff,
                    MARGIN + col * CELL_W, MARGIN + row * CELL_H + BASELINE);
            write_character(p->out, cell->code);
            fputs("</text>\n", p->out);
        }
    return 0;
}

int canvas_write_svg(const struct canvas *c, const struct theme *theme, FILE *out)
{
    const bool light = theme && theme->background == BACKGROUND_LIGHT;
    struct theme shown = theme ? *theme : (struct theme){0};
    if (shown.background == BACKGROUND_UNKNOWN)
        shown.background = BACKGROUND_DARK;
    const struct picture p = {out, c, &shown, light ? 0xffffff : 0x1c1c1c, light ? 0x1c1c1c : 0xd0d0d0};
    const double width = 2 * MARGIN + c->cols * CELL_W;
    const int height = 2 * MARGIN + c->rows * CELL_H;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" viewBox=\"0 0 %.1f %d\">\n",
            width, height, width, height);
    write_styles(&p);
    fprintf(out, "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"#%06x\"/>\n", p.paper);
    for (int row = 0; row < c->rows; row++)
        write_row(&p, row);
    const int failed = write_dots(&p);
    fputs("</svg>\n", out);
    return failed || ferror(out) ? -1 : 0;
}
