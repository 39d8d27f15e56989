#include "engine/base/units.h"

#include <stdio.h>

/* Three digits of a number from 1 to below 1000; what rounds up to 1000 is written without a point. */
static void three_digits(double value, const char *unit, char *text, size_t size)
{
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(text, size, "%.*f %s", decimals, value, unit);
}

void units_seconds(double seconds, char *text, size_t size)
{
    if (!(seconds > 0))
        snprintf(text, size, "%s", "");
    else if (seconds < 999.5e-6)
        three_digits(seconds * 1e6, "us", text, size);
    else if (seconds < 999.5e-3)
        three_digits(seconds * 1e3, "ms", text, size);
    else
        three_digits(seconds, "s", text, size);
}

void units_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(text, size, "%u B", (unsigned)bytes);
        return;
    }
    double value = (double)bytes / 1024;
    size_t i = 0;
    for (; value >= 1023.5 && i + 1 < sizeof units / sizeof *units; i++)
        value /= 1024;
    three_digits(value, units[i], text, size);
}
