#include "tui/theme.h"

#include <stdlib.h>

static const struct look looks[STYLE_COUNT] = {
#define STYLE(id, fg, bg, attrs) [id] = {COLOUR_##fg, COLOUR_##bg, attrs},
#include "tui/styles.def"
#undef STYLE
};

struct look theme_look(enum style style, int colours)
{
    struct look look = (unsigned)style < STYLE_COUNT ? looks[style] : looks[STYLE_TEXT];
    if (colours < 8)
        look.fg = look.bg = COLOUR_DEFAULT;
    return look;
}

int theme_colours(int colours)
{
    const char *no_color = getenv("NO_COLOR");
    return no_color && *no_color ? 0 : colours;
}
