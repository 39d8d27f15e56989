/* A grid of cells that views draw into; the terminal, text and SVG outputs are made from it. No curses here. */
#ifndef SCREEN_CANVAS_H
#define SCREEN_CANVAS_H

#include "engine/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* STYLE(id, foreground, background, attributes) in styles.def: what a thing means, not how it looks. */
enum style {
#define STYLE(id, fg, bg, attrs) id,
#include "tui/screen/styles.def"
#undef STYLE
    STYLE_COUNT
};

struct cell {
    uint32_t code; /* Unicode; 0: the right half of the wide character before it (only users' text has any) */
    uint8_t style;
    uint32_t ink, paper; /* COLOR(0xRRGGBB); 0: the style's own. */
};

#define COLOR(rgb) (UINT32_C(1) << 24 | (rgb))
#define COLORS_ALL (1 << 24) /* what a terminal of true color has, and a picture */

struct rect {
    int row, col, rows, cols;
};

/* What a click on a cell means: areas that views note while they draw, with the two numbers that a place of such an
   area stands for. */
enum hit_kind {
    HIT_TILE,    /* q tile, kv tile (-1: the stage has none) */
    HIT_KV,      /* -, kv tile */
    HIT_HEAD,    /* -, batch and head as one sequence */
    HIT_STAGE,   /* -, channel */
    HIT_ELEMENT, /* row, column of the tile; the wheel goes over rows */
    HIT_COLUMN,  /* the same; the wheel goes over columns */
    HIT_CELL,    /* line and column of the area: the view says which place that is */
    HIT_ENTRY,   /* entry of a list, - */
    HIT_ACTION,  /* -, enum action */
    HIT_DIVIDER  /* the line between left and right */
};

struct hit {
    enum hit_kind kind;
    struct rect area;
    int first, second; /* at the area's first cell */
    int step;          /* columns for one of `second`; 0: it is the same everywhere */
};

#define HITS_MAX 256

struct hits {
    struct hit at[HITS_MAX];
    int n;
};

struct canvas {
    int cols, rows;
    struct cell *cells; /* owned, [rows][cols] */
    bool ascii;         /* drawn text is folded to ASCII (glyphs.def) */
    bool no_memory;     /* there was none to show all of it */
    int colors;         /* that cells may have besides their styles: 0, 256 or COLORS_ALL */
    bool light;         /* the background is */
    struct hits *hits;  /* borrowed: where drawing notes what a click means; NULL: nobody asks */
};

int canvas_init(struct canvas *c, int cols, int rows, bool ascii);
void canvas_free(struct canvas *c);
void canvas_clear(struct canvas *c);
/* Writes UTF-8 text at (row, col) of the rectangle, clipped to it: a word or number that its right edge cuts ends with
   a sign that it goes on. Returns the columns used. */
int canvas_put(struct canvas *c, struct rect area, int row, int col, enum style style, const char *utf8);
int canvas_printf(struct canvas *c, struct rect area, int row, int col, enum style style, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
void canvas_fill(struct canvas *c, struct rect area, enum style style, const char *glyph);
/* canvas_put(), but a text without room ends with a sign that it goes on. */
int canvas_put_cut(struct canvas *c, struct rect area, int row, int col, enum style style, const char *utf8);
/* The same of one character in colors of its own. */
void canvas_color(struct canvas *c, struct rect area, int row, int col, uint32_t ink, uint32_t paper, const char *utf8);
int text_columns(const char *utf8); /* columns a text takes */
/* Notes an area that lies at `where` of the panel; nothing where nobody asks (c->hits NULL). The first number counts
   the rows. */
void hit_add(struct canvas *c, struct rect panel, struct rect where, enum hit_kind kind, int first, int second,
             int step);

/* What the last one noted there is; 0: nothing. *first and *second are its numbers. */
bool hits_find(const struct hits *h, int row, int col, enum hit_kind *kind, int *first, int *second);

/* The canvas as text: a line per row, trailing spaces removed. */
int canvas_write_text(const struct canvas *c, FILE *out);

#endif
