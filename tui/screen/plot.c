#include "tui/screen/plot.h"

#include "engine/base/utf8.h"
#include <math.h>
#include <stdlib.h>

bool plot_range(const struct plot_series *series, int n_series, double *low, double *high)
{
    int known = 0;
    *low = INFINITY;
    *high = -INFINITY;
    for (int k = 0; k < n_series; k++) {
        for (int i = 0; i < series[k].n; i++) {
            const double y = series[k].y[i];
            if (!isfinite(y))
                continue;
            known = 1;
            *low = fmin(*low, y);
            *high = fmax(*high, y);
        }
    }
    if (!known) {
        *low = *high = 0;
        return false;
    }
    const double least = 1e-3 * fmax(fabs(*low), fabs(*high)), middle = *low / 2 + *high / 2;
    if (*high - *low < least) {
        *low = middle - least / 2;
        *high = middle + least / 2;
    }
    return true;
}

int plot_column(int cols, int n, int i)
{
    return n > 1 ? (int)((double)i * (2 * cols - 1) / (n - 1) + 0.5) : 0;
}

static int dot_row(int dots, double y, double low, double high)
{
    const double share = high > low ? (y / 2 - low / 2) / (high / 2 - low / 2) : 0.5; /* halves do not overflow */
    const double row = (1 - share) * (dots - 1) + 0.5;
    return row < 0 ? 0 : row >= dots ? dots - 1 : (int)row;
}

/* Sets the dot at (row, col), counted from the area's upper left one. */
static void set_dot(struct canvas *c, struct rect area, int row, int col, const struct plot_series *series)
{
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int y = area.row + row / 4, x = area.col + col / 2;
    char text[5] = {0};
    if (row < 0 || col < 0 || row / 4 >= area.rows || col / 2 >= area.cols || y < 0 || x < 0 || y >= c->rows ||
        x >= c->cols)
        return;
    if (c->ascii) {
        canvas_put(c, area, row / 4, col / 2, series->style, series->dotted ? "." : "*");
        return;
    }
    const uint32_t there = c->cells[(ptrdiff_t)y * c->cols + x].code;
    const uint32_t code = (there >= 0x2800 && there <= 0x28FF ? there : 0x2800) | bits[row % 4][col % 2];
    utf8_write(code, text);
    canvas_put(c, area, row / 4, col / 2, series->style, text);
}

static void draw_line(struct canvas *c, struct rect area, const struct plot_series *series, int from_row, int from_col,
                      int to_row, int to_col)
{
    const int wide = to_col - from_col, high = to_row - from_row, steps = wide > abs(high) ? wide : abs(high);
    for (int i = 0; i <= steps; i++) {
        const int col = from_col + (steps ? (int)lround((double)wide * i / steps) : 0);
        const int row = from_row + (steps ? (int)lround((double)high * i / steps) : 0);
        if (!series->dotted || (col + row) / 2 % 2 == 0)
            set_dot(c, area, row, col, series);
    }
}

static void series_draw(struct canvas *c, struct rect area, const struct plot_series *series, double low, double high)
{
    const int dots = 4 * area.rows;
    int last_row = 0;
    int last_col = -1;
    for (int i = 0; i < series->n; i++) {
        const int col = plot_column(area.cols, series->n, i);
        if (isnan(series->y[i])) {
            last_col = -1;
            continue;
        }
        const int row = dot_row(dots, series->y[i], low, high);
        draw_line(c, area, series, last_col < 0 ? row : last_row, last_col < 0 ? col : last_col, row, col);
        set_dot(c, area, row, col, series); /* a point shows whatever its place in the dots */
        last_row = row;
        last_col = col;
    }
}

void plot_draw(struct canvas *c, struct rect area, const struct plot_series *series, int n_series, double low,
               double high)
{
    if (area.rows < 1 || area.cols < 1)
        return;
    for (int k = n_series - 1; k >= 0; k--)
        series_draw(c, area, &series[k], low, high);
}
