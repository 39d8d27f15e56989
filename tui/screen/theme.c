#include "tui/screen/theme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct look looks[STYLE_COUNT] = {
#define STYLE(id, fg, bg, attrs) [id] = {ANSI_##fg, ANSI_##bg, attrs},
#include "tui/screen/styles.def"
#undef STYLE
};

/* On a dark background, and on a light one: foregrounds of the 256-color table, for terminals that have it and
   whose background is known. Each has a contrast of at least 4.5 : 1 with #1c1c1c or #ffffff (WCAG 2.1, 1.4.3). Red and
   green differ in lightness as well, and every mark has a glyph of its own. Styles without a line keep the terminal's
   own foreground; attributes and backgrounds are those of styles.def. 0 stands for none: no style is black. */
static const short palette[STYLE_COUNT][2] = {
    [STYLE_DIM] = {245, 243},    [STYLE_OK] = {114, 28},   [STYLE_BAD] = {209, 160}, [STYLE_NONFINITE] = {213, 127},
    [STYLE_WARNING] = {221, 94}, [STYLE_RULE] = {110, 25}, [STYLE_KEY] = {80, 24},
};

static const char *const ids[STYLE_COUNT] = {
#define STYLE(id, fg, bg, attrs) #id,
#include "tui/screen/styles.def"
#undef STYLE
};

struct look theme_look(const struct theme *theme, enum style style, int colors)
{
    if ((unsigned)style >= STYLE_COUNT)
        style = STYLE_TEXT;
    struct look look = looks[style];
    if (theme && theme->has_own[style])
        look = theme->own[style];
    else if (theme && theme->background != BACKGROUND_UNKNOWN && colors >= 256 && palette[style][0]) {
        look.fg = palette[style][theme->background == BACKGROUND_LIGHT];
        look.attributes &= ~(unsigned)ATTR_DIM; /* the color is dim already */
    }
    /* A color that the terminal has not is better its own than a wrong one. */
    if (colors < 8 || look.fg >= colors)
        look.fg = ANSI_DEFAULT;
    if (colors < 8 || look.bg >= colors)
        look.bg = ANSI_DEFAULT;
    return look;
}

int theme_colors(int colors)
{
    const char *no_color = getenv("NO_COLOR");
    return no_color && *no_color ? 0 : colors;
}

enum background theme_background(void)
{
    const char *said = getenv("COLORFGBG"), *last = said ? strrchr(said, ';') : NULL;
    int color, end = 0;
    if (!last || sscanf(last + 1, "%2d%n", &color, &end) != 1 || last[1 + end] || color < 0 || color > 15)
        return BACKGROUND_UNKNOWN;
    /* White and the bright colors but bright black are light. */
    return color == ANSI_WHITE || color > 8 ? BACKGROUND_LIGHT : BACKGROUND_DARK;
}

enum background theme_background_of(const char *answer)
{
    static const double weight[] = {0.2126, 0.7152, 0.0722}; /* ITU-R BT.709 */
    const char *at = strchr(answer, ':');
    double light = 0;
    for (int i = 0; i < 3; i++) {
        const size_t digits = at ? strspn(at + 1, "0123456789abcdefABCDEF") : 0;
        if (digits < 1 || digits > 4)
            return BACKGROUND_UNKNOWN;
        light += weight[i] * (double)strtoul(at + 1, NULL, 16) / ((1 << 4 * digits) - 1);
        at = at[1 + digits] == '/' ? at + 1 + digits : NULL;
    }
    return light > 0.5 ? BACKGROUND_LIGHT : BACKGROUND_DARK;
}

unsigned theme_rgb(int color)
{
    static const unsigned ansi[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
                                      0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};
    static const unsigned level[6] = {0x00, 0x5f, 0x87, 0xaf, 0xd7, 0xff};
    if (color < 16)
        return ansi[color < 0 ? 0 : color];
    if (color >= 232) {
        const unsigned gray = 8u + 10u * (unsigned)((color > 255 ? 255 : color) - 232);
        return gray << 16 | gray << 8 | gray;
    }
    const int cube = color - 16;
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

/* A name of enum color or a number of the table; -2: neither. */
static int color_from(const char *word)
{
    static const char *const names[] = {"default", "black",   "red",  "green", "yellow",
                                        "blue",    "magenta", "cyan", "white"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(word, names[i]) == 0)
            return i - 1;
    int color, end = 0;
    if (sscanf(word, "%3d%n", &color, &end) != 1 || word[end] || color < 0 || color > 255)
        return -2;
    return color;
}

int theme_parse_look(const char *text, struct look *out, char *wrong, size_t bytes)
{
    static const char *const attributes[] = {"bold", "dim", "reverse", "underline"};
    char copy[96], *rest = NULL;
    int behind = 0; /* 1: after "on" */
    *out = (struct look){ANSI_DEFAULT, ANSI_DEFAULT, 0};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ,\t", &rest); word; word = strtok_r(NULL, " ,\t", &rest)) {
        unsigned attribute = 0;
        for (int i = 0; i < 4; i++)
            if (strcmp(word, attributes[i]) == 0)
                attribute = 1u << i;
        const int color = color_from(word);
        if (attribute) {
            out->attributes |= attribute;
        } else if (strcmp(word, "on") == 0) {
            behind = 1;
        } else if (color >= ANSI_DEFAULT) {
            *(behind ? &out->bg : &out->fg) = color;
        } else {
            snprintf(wrong, bytes, "%s", word);
            return -1;
        }
    }
    return 0;
}
