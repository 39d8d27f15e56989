#include "tui/views/layout.h"

#define ROOMY_COLS 118 /* the facts beside the strip begin at column 94 and take 24 */
#define ROOMY_ROWS 36
#define LEFT_MIN_ROOMY 24   /* heads with their numbers, curves with their values */
#define LEFT_MIN_COMPACT 15 /* "row 999 over kv" */
#define RIGHT_MIN_COLS 57   /* the list of elements, with the tile's shape */
#define WHOLE_COLS 80       /* narrower screens have no map, */
#define WHOLE_ROWS 24       /* lower ones neither source nor row state */
#define STRIP_COLS_COMPACT 80
#define STRIP_COLS_ROOMY 94

static int between(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static struct rect rect(int row, int col, int rows, int cols)
{
    return (struct rect){row, col, rows, cols};
}

/* What is left of the compact screen on a smaller one: the map where it is wide enough, the tile, and the source where
   it is high enough. */
static void small_layout(int cols, int rows, int split, struct screen_layout *out)
{
    const int top = out->top_rule.row + 1, body = rows - 2 - top;
    const int left = cols < WHOLE_COLS ? 0
                     : split > 0       ? between(split, LEFT_MIN_COMPACT, cols - RIGHT_MIN_COLS)
                                       : between(cols * 3 / 16, LEFT_MIN_COMPACT, 40);
    const int right = left ? left + 1 : 0, source_rows = rows < WHOLE_ROWS ? 0 : (body - 1) / 3;
    if (left) {
        out->map = rect(top, 0, body, left);
        out->divider = rect(top, left, body, 1);
    }
    out->tile = rect(top, right, source_rows ? body - 1 - source_rows : body, cols - right);
    if (source_rows) {
        out->source_rule = rect(top + out->tile.rows, right, 1, cols - right);
        out->source = rect(top + out->tile.rows + 1, right, source_rows, cols - right);
    }
}

int screen_layout(int cols, int rows, int split, int finding, struct screen_layout *out)
{
    *out = (struct screen_layout){0};
    if (cols < SCREEN_MIN_COLS || rows < SCREEN_MIN_ROWS)
        return -1;
    const bool roomy = cols >= ROOMY_COLS && rows >= ROOMY_ROWS;
    const bool whole = cols >= WHOLE_COLS && rows >= WHOLE_ROWS;
    const int finding_rows = between(finding, 2, whole ? 6 : 4);
    out->roomy = roomy;
    out->header = rect(0, 0, 1, cols);
    out->strip = rect(1, 0, 3, roomy ? STRIP_COLS_ROOMY : between(cols, 0, STRIP_COLS_COMPACT));
    if (roomy)
        out->facts = rect(1, STRIP_COLS_ROOMY, 3, cols - STRIP_COLS_ROOMY);
    out->finding = rect(4, 0, finding_rows, cols);
    out->top_rule = rect(4 + finding_rows, 0, 1, cols);
    out->bottom_rule = rect(rows - 2, 0, 1, cols);
    out->keys = rect(rows - 1, 0, 1, cols);

    if (!whole) {
        small_layout(cols, rows, split, out);
        return 0;
    }
    /* The body: map over row state on the left, tile over source on the right. */
    const int top = out->top_rule.row + 1, end = rows - 2, body = end - top;
    const int least = roomy ? LEFT_MIN_ROOMY : LEFT_MIN_COMPACT;
    const int left = split > 0 ? between(split, least, cols - RIGHT_MIN_COLS)
                     : roomy   ? between(cols / 5, least, 72)
                               : between(cols * 3 / 16, least, 40);
    const int right = left + 1, right_cols = cols - right;
    out->divider = rect(top, left, body, 1);
    int upper; /* rows above the element or source rule */
    if (roomy)
        upper = 14 + (rows - 40) * 3 / 5;
    else
        upper = 8 + (body - 15) / 2;
    const int state_rows = roomy ? 6 : 4;
    /* The left rule is level with the right one where the map stays whole; else the map takes what the state leaves. */
    const int map_rows = roomy ? upper : body - 1 - state_rows;
    out->map = rect(top, 0, map_rows, left);
    out->state_rule = rect(top + map_rows, 0, 1, left);
    out->state = rect(top + map_rows + 1, 0, body - map_rows - 1, left);

    out->tile = rect(top, right, upper, right_cols);
    int row = top + upper;
    if (roomy) {
        out->element_rule = rect(row, right, 1, right_cols);
        out->element = rect(row + 1, right, 4, right_cols);
        row += 5;
    }
    out->source_rule = rect(row, right, 1, right_cols);
    out->source = rect(row + 1, right, end - 1 - (row + 1), right_cols);
    out->legend = rect(end - 1, right, 1, right_cols);
    return 0;
}
