#include "tui/notes.h"

#include "tui/screen/text_flow.h"
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

static int put_all(const struct notes *notes, struct text_flow *f)
{
    for (int i = 0; i < notes->n; i++)
        flow_put(f, STYLE_TEXT, notes->line[i]);
    return f->line;
}

void notes_draw(const struct notes *notes, struct canvas *c)
{
    struct text_flow count = {.area = {0, 0, 0, c->cols - 2}};
    const int lines = put_all(notes, &count), room = c->rows - 4, rows = lines < room ? lines : room;
    if (rows <= 0)
        return;
    const struct rect rule = {c->rows - 3 - rows, 0, 1, c->cols};
    canvas_fill(c, rule, STYLE_RULE, "─");
    canvas_fill(c, (struct rect){rule.row + 1, 0, rows, c->cols}, STYLE_TEXT, " ");
    struct text_flow f = {.canvas = c, .area = {rule.row + 1, 1, rows, c->cols - 2}};
    put_all(notes, &f);
}
