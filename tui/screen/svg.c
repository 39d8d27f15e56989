#include "tui/screen/svg.h"

#include "engine/base/utf8.h"

/* A cell in px. A monospaced font of 14 px advances by 8.4; textLength holds it to that whatever the font is. */
#define CELL_W 8.4
#define CELL_H 17
#define BASELINE 13
#define MARGIN 8

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

static bool blank(const struct cell *cell)
{
    return cell->code == ' ' || cell->code == 0;
}

/* Cells [from, to) of one style. Blanks at the ends are left out; two and more inside part the text in two. */
static void write_text(const struct picture *p, int row, int from, int to)
{
    const struct cell *line = p->canvas->cells + (size_t)row * (size_t)p->canvas->cols;
    for (int begin = from, end; begin < to; begin = end) {
        while (begin < to && line[begin].code == ' ')
            begin++;
        end = begin;
        for (int blanks = 0; end < to && blanks < 2; end++)
            blanks = line[end].code == ' ' ? blanks + 1 : 0;
        int last = end;
        while (last > begin && line[last - 1].code == ' ')
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
    fputs("</svg>\n", out);
    return ferror(out) ? -1 : 0;
}
