/* Where the panels of the first screen lie: a pure function of the screen's size. */
#ifndef VIEWS_LAYOUT_H
#define VIEWS_LAYOUT_H

#include "tui/screen/canvas.h"
#include <stdbool.h>

#define SCREEN_MIN_COLS 60
#define SCREEN_MIN_ROWS 16

/* Panels never overlap and never leave the screen. A panel without room has rows 0. */
struct screen_layout {
    bool roomy; /* matrix, cursor panel and facts beside the strip; false: the compact screen */
    struct rect header, strip, facts, finding;
    struct rect map, state, tile, element, source, legend;
    struct rect top_rule, state_rule, element_rule, source_rule, divider, bottom_rule, keys;
};

/* split: the column between left and right, as near as both sides keep what they need; 0: by the screen's size.
   finding: rows that what is found takes; it gets two at least, and as many as leave the tile in sight.
   0, or -1 where the screen is smaller than SCREEN_MIN_COLS x SCREEN_MIN_ROWS; *out is then all zero. */
int screen_layout(int cols, int rows, int split, int finding, struct screen_layout *out);

#endif
