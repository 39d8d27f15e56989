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

static void write_styles(const struct picture *p, const struct svg_frame *frames, int n)
{
    unsigned char used[STYLE_COUNT] = {0};
    for (int f = 0; f < n; f++)
        for (size_t i = 0; i < (size_t)p->canvas->cols * (size_t)p->canvas->rows; i++)
            used[frames[f].canvas->cells[i].style] = 1;
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

/* Cells of rows [first, end) that have colors of their own: a path for each color, and the characters that are no
   halves. */
static int write_dots(const struct picture *p, int first, int end)
{
    const struct canvas *c = p->canvas;
    struct run *runs = malloc(2 * (size_t)(end - first) * (size_t)c->cols * sizeof *runs);
    size_t n = 0;
    if (!runs)
        return -1;
    for (int row = first; row < end; row++)
        for (int lower = 0; lower < 2; lower++)
            n += find_runs(c, row, lower, runs + n);
    qsort(runs, n, sizeof *runs, by_color);
    /* Strokes as high as a dot, in dots: a letter and three numbers each. */
    if (n)
        fprintf(p->out, "<g transform=\"translate(%d %.2f) scale(%.1f %.1f)\" shape-rendering=\"crispEdges\">", MARGIN,
                MARGIN + CELL_H / 4.0, CELL_W, CELL_H / 2.0);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || runs[i].color != runs[i - 1].color)
            fprintf(p->out, "%s<path stroke=\"#%06x\" d=\"", i ? "\"/>\n" : "", runs[i].color & 0xffffff);
        fprintf(p->out, "M%d %dh%d", runs[i].col, 2 * runs[i].row + runs[i].lower, runs[i].cols);
    }
    if (n)
        fputs("\"/></g>\n", p->out);
    free(runs);
    for (int row = first; row < end; row++)
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

static bool same_row(const struct canvas *a, const struct canvas *b, int row)
{
    const struct cell *x = a->cells + (size_t)row * (size_t)a->cols, *y = b->cells + (size_t)row * (size_t)b->cols;
    for (int i = 0; i < a->cols; i++)
        if (x[i].code != y[i].code || x[i].style != y[i].style || x[i].ink != y[i].ink || x[i].paper != y[i].paper)
            return false;
    return true;
}

/* The frame behind the last one that has this row as frame `from` has it. */
static int row_ends(const struct svg_frame *frames, int n, int from, int row)
{
    int end = from + 1;
    while (end < n && same_row(frames[from].canvas, frames[end].canvas, row))
        end++;
    return end;
}

/* Rows that are shown from one frame to another; without an animation the first frame is seen. */
static void write_spans(const struct picture *p, const struct svg_frame *frames, int n)
{
    double total = 0, begins = 0;
    for (int i = 0; i < n; i++)
        total += frames[i].seconds;
    fputs("<style>\n", p->out);
    for (int from = 0; from < n; begins += frames[from++].seconds) {
        double ends = begins;
        for (int end = from + 1; end <= n; end++) {
            bool used = false;
            ends += frames[end - 1].seconds;
            for (int row = 0; row < p->canvas->rows && !used; row++) {
                const bool starts = from == 0 || !same_row(frames[from - 1].canvas, frames[from].canvas, row);
                used = starts && row_ends(frames, n, from, row) == end && !(from == 0 && end == n);
            }
            if (!used)
                continue;
            fprintf(p->out, ".f%d_%d{%sanimation:k%d_%d %.2fs step-end infinite}@keyframes k%d_%d{", from, end,
                    from ? "visibility:hidden;" : "", from, end, total, from, end);
            if (from)
                fprintf(p->out, "0%%{visibility:hidden}");
            fprintf(p->out, "%.3f%%{visibility:visible}", 100 * begins / total);
            if (end < n)
                fprintf(p->out, "%.3f%%{visibility:hidden}", 100 * ends / total);
            fputs("}\n", p->out);
        }
    }
    fputs("</style>\n", p->out);
}

/* Rows [first, end) of a frame, in a group if they come and go. */
static int write_rows(struct picture *p, const struct svg_frame *frames, int n, int from, int until, int first, int end)
{
    const bool moves = from > 0 || until < n;
    p->canvas = frames[from].canvas;
    if (moves)
        fprintf(p->out, "<g class=\"f%d_%d\">\n", from, until);
    for (int row = first; row < end; row++)
        write_row(p, row);
    const int failed = write_dots(p, first, end);
    if (moves)
        fputs("</g>\n", p->out);
    return failed;
}

/* Rows that are the same in neighboring frames are written once. */
static int write_frames(struct picture *p, const struct svg_frame *frames, int n)
{
    const int rows = p->canvas->rows;
    int failed = 0;
    write_spans(p, frames, n);
    for (int from = 0; from < n; from++)
        for (int row = 0, next; row < rows; row = next) {
            int until = -1; /* the frame that these rows, which begin in this one, end before; -1: they began earlier */
            for (next = row; next < rows; next++) {
                const bool starts = from == 0 || !same_row(frames[from - 1].canvas, frames[from].canvas, next);
                const int ends = starts ? row_ends(frames, n, from, next) : -1;
                if (next > row && ends != until)
                    break;
                until = ends;
            }
            if (until > 0)
                failed |= write_rows(p, frames, n, from, until, row, next);
        }
    return failed;
}

int canvas_write_movie(const struct svg_frame *frames, int n, const struct theme *theme, FILE *out)
{
    const struct canvas *c = frames[0].canvas;
    const bool light = theme && theme->background == BACKGROUND_LIGHT;
    struct theme shown = theme ? *theme : (struct theme){0};
    if (shown.background == BACKGROUND_UNKNOWN)
        shown.background = BACKGROUND_DARK;
    struct picture p = {out, c, &shown, light ? 0xffffff : 0x1c1c1c, light ? 0x1c1c1c : 0xd0d0d0};
    const double width = 2 * MARGIN + c->cols * CELL_W;
    const int height = 2 * MARGIN + c->rows * CELL_H;
    int failed = 0;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" viewBox=\"0 0 %.1f %d\">\n",
            width, height, width, height);
    write_styles(&p, frames, n);
    fprintf(out, "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"#%06x\"/>\n", p.paper);
    if (n > 1) {
        failed = write_frames(&p, frames, n);
    } else {
        for (int row = 0; row < c->rows; row++)
            write_row(&p, row);
        failed = write_dots(&p, 0, c->rows);
    }
    fputs("</svg>\n", out);
    return failed || ferror(out) ? -1 : 0;
}

int canvas_write_svg(const struct canvas *c, const struct theme *theme, FILE *out)
{
    return canvas_write_movie(&(struct svg_frame){.canvas = c, .seconds = 1}, 1, theme, out);
}
