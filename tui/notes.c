#include "tui/notes.h"

#include <stdarg.h>
#include <stdio.h>

void notes_add(struct notes *notes, const char *format, ...)
{
    va_list args;
    if (notes->n == NOTES_MAX)
        return;
    va_start(args, format);
    vsnprintf(notes->line[notes->n++], sizeof notes->line[0], format, args);
    va_end(args);
}

void notes_draw(const struct notes *notes, struct canvas *c)
{
    const int room = c->rows - 4, rows = notes->n < room ? notes->n : room;
    if (rows <= 0)
        return;
    for (int i = 0; i <= rows; i++) {
        const struct rect line = {c->rows - 3 - rows + i, 0, 1, c->cols};
        canvas_fill(c, line, i ? STYLE_TEXT : STYLE_RULE, i ? " " : "─");
        if (i)
            canvas_put_cut(c, line, 0, 1, STYLE_TEXT, notes->line[i - 1]);
    }
}
