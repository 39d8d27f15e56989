#include "tui/screen/number.h"

#include <math.h>
#include <stdio.h>

const char *number_signed(char out[NUMBER_BYTES], double value, int width)
{
    if (isnan(value) || isinf(value)) {
        snprintf(out, NUMBER_BYTES, "%s", isnan(value) ? "nan" : value > 0 ? "+inf" : "-inf");
        return out;
    }
    const double magnitude = fabs(value);
    if (magnitude == 0) {
        snprintf(out, NUMBER_BYTES, "0");
        return out;
    }
    /* Sign, digits before the point, point, decimals. */
    const int digits = magnitude < 1 ? 1 : (int)floor(log10(magnitude)) + 1;
    int decimals = width - 2 - digits;
    if (decimals > 12)
        decimals = 12;
    if (decimals >= 1 && magnitude >= pow(10, 1 - decimals)) {
        int used = snprintf(out, NUMBER_BYTES, "%+.*f", decimals, value);
        if (used > width) /* rounded up to one digit more: 9.99... */
            snprintf(out, NUMBER_BYTES, "%+.*f", decimals - 1, value);
        return out;
    }
    /* Sign, digit, point, decimals, e, sign, two or three digits. */
    const int exponent_digits = magnitude >= 1e100 || magnitude < 1e-99 ? 3 : 2;
    decimals = width - 5 - exponent_digits;
    decimals = decimals < 0 ? 0 : decimals < 12 ? decimals : 12;
    int used = snprintf(out, NUMBER_BYTES, "%+.*e", decimals, value);
    if (used > width && decimals > 0) /* rounded up to 1e+100 */
        snprintf(out, NUMBER_BYTES, "%+.*e", decimals > 1 ? decimals - 1 : 0, value);
    return out;
}

const char *number_ratio(char out[NUMBER_BYTES], double value)
{
    if (isnan(value))
        snprintf(out, NUMBER_BYTES, "nan");
    else if (isinf(value))
        snprintf(out, NUMBER_BYTES, "inf");
    else if (value == 0)
        snprintf(out, NUMBER_BYTES, "0");
    else if (value < 0.005)
        snprintf(out, NUMBER_BYTES, "<.01");
    else if (value < 9.995)
        snprintf(out, NUMBER_BYTES, "%.2f", value);
    else if (value < 999.5)
        snprintf(out, NUMBER_BYTES, "%.0f", value);
    else {
        int exponent = (int)floor(log10(value));
        double mantissa = value / pow(10, exponent);
        if (mantissa >= 9.95) {
            mantissa = 1;
            exponent++;
        }
        snprintf(out, NUMBER_BYTES, "%.1fe%d", mantissa, exponent);
    }
    return out;
}
