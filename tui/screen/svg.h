/* A canvas as a picture. */
#ifndef SCREEN_SVG_H
#define SCREEN_SVG_H

#include "tui/screen/canvas.h"
#include "tui/screen/theme.h"

/* Writes an SVG document in the theme's 256 colors, on the theme's background (unknown: dark). 0, or -1 where writing
   fails. */
int canvas_write_svg(const struct canvas *c, const struct theme *theme, FILE *out);

/* Canvases of one size, one after the other and again from the first, each for its time: an SVG document whose CSS
   moves it, without scripts. What does not move by CSS shows the first. n: at least 1. */
struct svg_frame {
    const struct canvas *canvas;
    double seconds;
};
int canvas_write_movie(const struct svg_frame *frames, int n, const struct theme *theme, FILE *out);

#endif
