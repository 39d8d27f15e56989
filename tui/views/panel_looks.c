/* What the views of the laboratory have in common: what each asks for, and how far that is. */
#include "tui/views/looks.h"

#include "tui/views/panels.h"
#include <math.h>
#include <stdio.h>

void looks_words(const struct session *s, char *out, size_t bytes)
{
    const struct laboratory_state *x = session_looked(s);
    out[0] = '\0';
    if (!s->trace)
        snprintf(out, bytes, "no run yet");
    else if (!x)
        snprintf(out, bytes, "…");
    else if (x->failed)
        snprintf(out, bytes, "out of memory");
    else if (x->stopped && x->total)
        snprintf(out, bytes, "stopped at %d of %d: x goes on", x->done, x->total);
    else if (x->total)
        snprintf(out, bytes, "%d of %d, x stops", x->done, x->total);
}

const char *looks_number(char out[LOOKS_NUMBER], double value)
{
    if (isnan(value))
        snprintf(out, LOOKS_NUMBER, "–");
    else if (isinf(value))
        snprintf(out, LOOKS_NUMBER, "%s∞", value < 0 ? "−" : "");
    else
        snprintf(out, LOOKS_NUMBER, "%.3g", value);
    return out;
}

void looks_cell(struct canvas *c, struct rect area, int row, int end, enum style style, double value)
{
    char text[LOOKS_NUMBER];
    looks_number(text, value);
    canvas_put(c, area, row, end - text_columns(text), style, text);
}
