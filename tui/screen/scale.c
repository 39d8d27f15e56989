#include "tui/screen/scale.h"

#include "tui/screen/canvas.h"
#include "tui/screen/theme.h"
#include <math.h>

/* cividis: J. R. Nuñez, C. R. Anderton, R. S. Renslow, "Optimizing colormaps with consideration for color vision
   deficiency", PLoS ONE 13(7), 2018, at ten places. */
static const unsigned size_colors[] = {0x00224e, 0x123570, 0x3b496c, 0x575d6d, 0x707173,
                                       0x8a8678, 0xa59c74, 0xc3b369, 0xe1cc55, 0xfee838};
/* From the negative end on, on a dark background and on a light one. Blue and orange are what both kinds of red-green
   blindness tell apart. */
static const unsigned sign_colors[2][5] = {{0x9ecbff, 0x3f74b8, 0x2a2a2a, 0xb0681a, 0xffc66b},
                                           {0x08306b, 0x5a8fc9, 0xf0f0f0, 0xd08a3a, 0x7f3300}};

/* t from 0 to 1. */
static unsigned between(const unsigned *colors, int n, double t)
{
    const double at = t * (n - 1);
    const int i = at < n - 2 ? (int)at : n - 2;
    unsigned color = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        const double a = colors[i] >> shift & 0xff, b = colors[i + 1] >> shift & 0xff;
        color |= (unsigned)lround(a + (b - a) * (at - i)) << shift;
    }
    return color;
}

static double limited(double t, double low)
{
    return t > low ? (t < 1 ? t : 1) : low;
}

enum { STEPS = 63 }; /* of a scale, or of one side of it: more are not told apart, and pictures would be larger */

uint32_t scale_color(enum scale scale, double t, bool light)
{
    if (scale == SCALE_SIGN)
        return COLOR(between(sign_colors[light], 5, (round(limited(t, -1) * STEPS) / STEPS + 1) / 2));
    t = round(limited(t, 0) * STEPS) / STEPS;
    return COLOR(between(size_colors, 10, light ? 1 - t : t));
}

int scale_level(double t)
{
    const int level = (int)(fabs(t) * SCALE_LEVELS);
    return level < SCALE_LEVELS ? level : SCALE_LEVELS - 1;
}

double scale_of_ratio(double ratio)
{
    enum { LEAST = -2, MOST = 6 };
    const double low = 0.3, high = 0.5; /* of 1, and of what is just above it */
    const double place = ratio > 0 ? log10(ratio) : LEAST;
    if (ratio <= 1)
        return place > LEAST ? low * (place - LEAST) / -LEAST : 0;
    return place < MOST ? high + (1 - high) * place / MOST : 1;
}

int scale_nearest(uint32_t color)
{
    int nearest = 16, least = 1 << 30;
    for (int i = 16; i < 256; i++) {
        const unsigned rgb = theme_rgb(i);
        int distance = 0;
        for (int shift = 0; shift <= 16; shift += 8) {
            const int by = (int)(rgb >> shift & 0xff) - (int)(color >> shift & 0xff);
            distance += by * by;
        }
        if (distance < least) {
            least = distance;
            nearest = i;
        }
    }
    return nearest;
}
