/* What each style looks like on a terminal of so many colours. Only the eight ANSI colours are used: they follow the
   user's own palette, light or dark. Without colours attributes remain, and the glyphs say everything anyway. */
#ifndef TUI_THEME_H
#define TUI_THEME_H

#include "tui/canvas.h"

enum colour {
    COLOUR_DEFAULT = -1, /* the terminal's own */
    COLOUR_BLACK,        /* ANSI order from here on */
    COLOUR_RED,
    COLOUR_GREEN,
    COLOUR_YELLOW,
    COLOUR_BLUE,
    COLOUR_MAGENTA,
    COLOUR_CYAN,
    COLOUR_WHITE
};

enum attribute { ATTR_BOLD = 1, ATTR_DIM = 2, ATTR_REVERSE = 4, ATTR_UNDERLINE = 8 };

struct look {
    enum colour fg, bg;
    unsigned attributes; /* set of enum attribute */
};

/* colours: how many the terminal has; fewer than 8 counts as none. */
struct look theme_look(enum style style, int colours);
/* 0 where the environment asks for none (NO_COLOR set and not empty, see no-color.org), else `colours`. */
int theme_colours(int colours);

#endif
