/* Colors of numbers, for pictures. Lightness alone orders them, so that who does not tell red from green reads them
   too; the small end is near the background. */
#ifndef SCREEN_SCALE_H
#define SCREEN_SCALE_H

#include <stdbool.h>
#include <stdint.h>

enum scale {
    SCALE_SIZE, /* 0 to 1 */
    SCALE_SIGN  /* -1 to 1: blue, the background, orange */
};

enum { SCALE_LEVELS = 5 }; /* what dots have in place of colors: 0 to 4 of them */

/* A color of a cell (canvas.h); t is limited to the scale's ends. */
uint32_t scale_color(enum scale scale, double t, bool light);
int scale_level(double t); /* of |t|: as many dots */
/* Where error/bound stands on SCALE_SIZE: a step for each factor of ten from 0.01 to 1e6, and a gap at 1, where it
   begins to be wrong. */
double scale_of_ratio(double ratio);
/* The one of xterm's 256 colors nearest to a color. */
int scale_nearest(uint32_t color);

#endif
