/* A quantity of many rows over steps: the largest, one row's own and the smallest, as three lines of blocks. */
#ifndef SCREEN_BAND_H
#define SCREEN_BAND_H

#include "tui/screen/canvas.h"

/* Columns to the left of the steps, and those that the scale takes to their right. */
enum { BAND_LABEL_COLS = 16, BAND_SCALE_COLS = 11 };

struct band {
    const char *label;
    int rows, steps, row;                                /* row: whose own line is between the two */
    double (*value)(const void *ctx, int step, int row); /* NaN: none */
    const void *ctx;
    double least_high; /* the scale reaches to this at least; NaN: to the largest value */
    int (*is_nan)(const void *ctx, int step, int row); /* 1: there is a value, and it is NaN; NULL: never */
};

/* Three lines; columns of the area behind the label are steps `first` on, `at` the one that is marked. Returns 3. */
int band_draw(const struct band *b, struct canvas *c, struct rect area, int first, int steps, int at);

#endif
