#include "tui/screen/theme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct look looks[STYLE_COUNT] = {
#define STYLE(id, fg, bg, attrs) [id] = {COLOUR_##fg, COLOUR_##bg, attrs},
#include "tui/screen/styles.def"
#undef STYLE
};

/* 0 stands for none: no style is black. */
static const short palette[STYLE_COUNT][2] = {
#define LOOK(style, dark, light) [style] = {dark, light},
#include "tui/screen/palette.def"
#undef LOOK
};

static const char *const ids[STYLE_COUNT] = {
#define STYLE(id, fg, bg, attrs) #id,
#include "tui/screen/styles.def"
#undef STYLE
};

struct look theme_look(const struct theme *theme, enum style style, int colours)
{
    if ((unsigned)style >= STYLE_COUNT)
        style = STYLE_TEXT;
    struct look look = looks[style];
    if (theme && theme->has_own[style])
        look = theme->own[style];
    else if (theme && theme->background != BACKGROUND_UNKNOWN && colours >= 256 && palette[style][0]) {
        look.fg = palette[style][theme->background == BACKGROUND_LIGHT];
        look.attributes &= ~(unsigned)ATTR_DIM; /* the colour is dim already */
    }
    /* A colour that the terminal has not is better its own than a wrong one. */
    if (colours < 8 || look.fg >= colours)
        look.fg = COLOUR_DEFAULT;
    if (colours < 8 || look.bg >= colours)
        look.bg = COLOUR_DEFAULT;
    return look;
}

int theme_colours(int colours)
{
    const char *no_color = getenv("NO_COLOR");
    return no_color && *no_color ? 0 : colours;
}

enum background theme_background(void)
{
    const char *said = getenv("COLORFGBG"), *last = said ? strrchr(said, ';') : NULL;
    int colour, end = 0;
    if (!last || sscanf(last + 1, "%2d%n", &colour, &end) != 1 || last[1 + end] || colour < 0 || colour > 15)
        return BACKGROUND_UNKNOWN;
    /* White and the bright colours but bright black are light. */
    return colour == COLOUR_WHITE || colour > 8 ? BACKGROUND_LIGHT : BACKGROUND_DARK;
}

unsigned theme_rgb(int colour)
{
    static const unsigned ansi[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
                                      0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};
    static const unsigned level[6] = {0x00, 0x5f, 0x87, 0xaf, 0xd7, 0xff};
    if (colour < 16)
        return ansi[colour < 0 ? 0 : colour];
    if (colour >= 232) {
        const unsigned grey = 8u + 10u * (unsigned)((colour > 255 ? 255 : colour) - 232);
        return grey << 16 | grey << 8 | grey;
    }
    const int cube = colour - 16;
    return level[cube / 36] << 16 | level[cube / 6 % 6] << 8 | level[cube % 6];
}

const char *style_name(enum style style)
{
    static char names[STYLE_COUNT][24];
    char *name = names[style];
    if (!*name)
        for (size_t i = strlen("STYLE_"), n = 0; ids[style][i] && n + 1 < sizeof names[0]; i++, n++)
            name[n] = (char)(ids[style][i] | 0x20);
    return name;
}

int style_from_name(const char *name)
{
    for (int i = 0; i < STYLE_COUNT; i++)
        if (strcmp(style_name((enum style)i), name) == 0)
            return i;
    return -1;
}

/* A name of enum colour or a number of the table; -2: neither. */
static int colour_from(const char *word)
{
    static const char *const names[] = {"default", "black",   "red",  "green", "yellow",
                                        "blue",    "magenta", "cyan", "white"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(word, names[i]) == 0)
            return i - 1;
    int colour, end = 0;
    if (sscanf(word, "%3d%n", &colour, &end) != 1 || word[end] || colour < 0 || colour > 255)
        return -2;
    return colour;
}

int theme_parse_look(const char *text, struct look *out, char *wrong, size_t bytes)
{
    static const char *const attributes[] = {"bold", "dim", "reverse", "underline"};
    char copy[96], *rest = NULL;
    int behind = 0; /* 1: after "on" */
    *out = (struct look){COLOUR_DEFAULT, COLOUR_DEFAULT, 0};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ,\t", &rest); word; word = strtok_r(NULL, " ,\t", &rest)) {
        unsigned attribute = 0;
        for (int i = 0; i < 4; i++)
            if (strcmp(word, attributes[i]) == 0)
                attribute = 1u << i;
        const int colour = colour_from(word);
        if (attribute) {
            out->attributes |= attribute;
        } else if (strcmp(word, "on") == 0) {
            behind = 1;
        } else if (colour >= COLOUR_DEFAULT) {
            *(behind ? &out->bg : &out->fg) = colour;
        } else {
            snprintf(wrong, bytes, "%s", word);
            return -1;
        }
    }
    return 0;
}
