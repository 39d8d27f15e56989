/* What each style looks like on a terminal of so many colors. Where the background is not known only the eight ANSI
   colors are used: they follow the user's own palette, light or dark. Without colors attributes remain, and the
   glyphs say everything anyway. */
#ifndef SCREEN_THEME_H
#define SCREEN_THEME_H

#include "tui/screen/canvas.h"

enum color {
    ANSI_DEFAULT = -1, /* the terminal's own */
    ANSI_BLACK,        /* ANSI order from here on, then the 256-color table */
    ANSI_RED,
    ANSI_GREEN,
    ANSI_YELLOW,
    ANSI_BLUE,
    ANSI_MAGENTA,
    ANSI_CYAN,
    ANSI_WHITE
};

enum attribute { ATTR_BOLD = 1, ATTR_DIM = 2, ATTR_REVERSE = 4, ATTR_UNDERLINE = 8 };

enum background { BACKGROUND_UNKNOWN, BACKGROUND_DARK, BACKGROUND_LIGHT };

struct look {
    int fg, bg;          /* of the 256-color table, whose first eight are enum color; or ANSI_DEFAULT */
    unsigned attributes; /* set of enum attribute */
};

/* What the user wants a style to look like, whatever the background. */
struct theme {
    enum background background;
    struct look own[STYLE_COUNT];
    unsigned char has_own[STYLE_COUNT];
};

/* colors: how many the terminal has; fewer than 8 counts as none. theme NULL: unknown background, nothing own. */
struct look theme_look(const struct theme *theme, enum style style, int colors);
/* 0 where the environment asks for none (NO_COLOR set and not empty, see no-color.org), else `colors`. */
int theme_colors(int colors);
/* The terminal's own word: COLORFGBG ("15;0": foreground, background of the ANSI colors), else unknown. */
enum background theme_background(void);
/* What it answers when it is asked for its background (OSC 11): "rgb:1c1c/1c1c/1c1c", one to four digits each. */
enum background theme_background_of(const char *answer);
/* 0xRRGGBB of a color of xterm's 256-color table. */
unsigned theme_rgb(int color);

const char *style_name(enum style style); /* "bad"; the name in the configuration file */
int style_from_name(const char *name);    /* enum style, or -1 */
/* "red bold", "208 on 17 underline"; 0, or -1 with the word that is none. */
int theme_parse_look(const char *text, struct look *out, char *wrong, size_t bytes);

#endif
