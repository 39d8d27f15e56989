#include "tui/screen/band.h"

#include "tui/screen/number.h"
#include <math.h>
#include <stdio.h>

enum { NAME_COLS = 6 };

static void range_of(const struct band *b, int step, double *low, double *high)
{
    for (int r = 0; r < b->rows; r++) {
        const double x = b->value(b->ctx, step, r);
        if (!isfinite(x))
            continue;
        *low = !(x >= *low) ? x : *low;
        *high = !(x <= *high) ? x : *high;
    }
}

static int holds_unreal(const struct band *b, int step)
{
    for (int r = 0; r < b->rows; r++)
        if (b->value(b->ctx, step, r) == INFINITY)
            return 1;
    return 0;
}

/* The largest is what an engineer looks at: there a NaN of any row shows, as an infinity does. */
static int holds_nan(const struct band *b, int step, int line)
{
    if (!b->is_nan || line == 2)
        return 0;
    for (int r = 0; r < b->rows && line == 0; r++)
        if (b->is_nan(b->ctx, step, r))
            return 1;
    return line == 1 && b->is_nan(b->ctx, step, b->row);
}

static const char *level(double x, double low, double high)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    /* What differs by less than a thousandth is level. */
    const double span = fmax(high - low, 1e-3 * fmax(fabs(low), fabs(high)));
    const int i = span > 0 ? (int)((x - low) / span * 7 + 0.5) : 0;
    return levels[i < 0 ? 0 : i > 7 ? 7 : i];
}

int band_draw(const struct band *b, struct canvas *c, struct rect area, int first, int steps, int at)
{
    static const char *const names[] = {"most", "row", "least"};
    double low = NAN, high = b->least_high;
    char number[NUMBER_BYTES];
    for (int step = 0; step < b->steps; step++)
        range_of(b, step, &low, &high);
    canvas_put(c, area, 0, 1, STYLE_STRONG, b->label);
    for (int line = 0; line < 3; line++) {
        canvas_put(c, area, line, BAND_LABEL_COLS - NAME_COLS, STYLE_DIM, names[line]);
        for (int i = 0; i < steps && first + i < b->steps; i++) {
            const int step = first + i;
            double least = NAN, most = NAN;
            range_of(b, step, &least, &most);
            const double x = line == 0 ? most : line == 2 ? least : b->value(b->ctx, step, b->row);
            const enum style style = step == at ? STYLE_STRONG : STYLE_TEXT;
            const int col = BAND_LABEL_COLS + i;
            if (holds_nan(b, step, line))
                canvas_put(c, area, line, col, STYLE_NONFINITE, "N");
            else if (line == 0 && holds_unreal(b, step))
                canvas_put(c, area, line, col, STYLE_NONFINITE, "∞");
            else if (isfinite(x))
                canvas_put(c, area, line, col, style, level(x, low, high));
            else if (!isnan(x))
                canvas_put(c, area, line, col, x > 0 ? STYLE_NONFINITE : STYLE_DIM, x > 0 ? "∞" : "-");
        }
    }
    if (isfinite(high))
        canvas_put(c, area, 0, area.cols - BAND_SCALE_COLS + 1, STYLE_DIM, number_signed(number, high, 9));
    if (isfinite(low))
        canvas_put(c, area, 2, area.cols - BAND_SCALE_COLS + 1, STYLE_DIM, number_signed(number, low, 9));
    return 3;
}
