/* A canvas as a picture. */
#ifndef SCREEN_SVG_H
#define SCREEN_SVG_H

#include "tui/screen/canvas.h"
#include "tui/screen/theme.h"

/* Writes an SVG document in the theme's 256 colors, on the theme's background (unknown: dark). 0, or -1 where writing
   fails. */
int canvas_write_svg(const struct canvas *c, const struct theme *theme, FILE *out);

#endif
