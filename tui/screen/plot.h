/* Curves over evenly spaced steps, of braille dots, two columns and four rows of them in a cell. */
#ifndef SCREEN_PLOT_H
#define SCREEN_PLOT_H

#include "tui/screen/canvas.h"
#include <stdbool.h>

struct plot_series {
    const double *y; /* [n]; NaN: a gap. Infinities stand at the edge of the area. */
    int n;
    enum style style;
    bool dotted; /* every other pair of dots, so that curves are told apart without colors */
};

/* Smallest and largest finite value of all series; 0, and *low = *high = 0: there is none. A curve shows its run, not
   rounding: the range is at least a thousandth of the largest magnitude. */
bool plot_range(const struct plot_series *series, int n_series, double *low, double *high);

/* Draws all series in one scale; the first one lies above the others. In ASCII a cell holds one point: `*`, dotted
   ones `.`. */
void plot_draw(struct canvas *c, struct rect area, const struct plot_series *series, int n_series, double low,
               double high);

/* The dot column of step i of n in so many columns of cells; the cell is that divided by 2. */
int plot_column(int cols, int n, int i);

#endif
