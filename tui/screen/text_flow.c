#include "tui/screen/text_flow.h"

#include "engine/base/utf8.h"
#include <string.h>

/* How many bytes of text[0..length) fit into `cols` columns; breaks after the last blank where there is one. At least
   one character, so that a caller always gets on. */
static size_t fitting(const char *text, size_t length, int cols)
{
    size_t used = 0, blank = 0;
    int columns = 0;
    while (used < length) {
        uint32_t code;
        size_t bytes = utf8_decode(text + used, &code);
        if (bytes == 0 || bytes > length - used)
            break;
        columns += utf8_columns(text + used, bytes, code);
        if (columns > cols && code == ' ') /* it ends with a word: the blank falls away */
            return used + bytes;
        if (columns > cols)
            break;
        used += bytes;
        if (code == ' ')
            blank = used;
    }
    if (used >= length)
        return length;
    if (blank > used / 2)
        return blank;
    uint32_t code;
    return used ? used : utf8_decode(text, &code);
}

static void put_line(struct text_flow *f, enum style style, const char *text, size_t length, int indent)
{
    const int row = f->line++ - f->top;
    if (f->canvas && row >= 0 && row < f->area.rows)
        canvas_printf(f->canvas, f->area, row, indent, style, "%.*s", (int)length, text);
}

void flow_put(struct text_flow *f, enum style style, const char *text)
{
    do {
        size_t length = strcspn(text, "\n");
        int indent = 0;
        do {
            size_t n = fitting(text, length, f->area.cols - indent);
            put_line(f, style, text, n, indent);
            text += n;
            length -= n;
            indent = f->hang ? f->hang : 2;
        } while (length > 0);
        if (*text == '\n')
            text++;
        else
            break;
    } while (*text);
}

void flow_cut(struct text_flow *f, enum style style, const char *text)
{
    const int row = f->line++ - f->top;
    if (f->canvas && row >= 0 && row < f->area.rows)
        canvas_put_cut(f->canvas, f->area, row, 0, style, text);
}

int flow_fit(struct canvas *c, struct rect area, enum style style, const char *text, const char *where)
{
    size_t length = strlen(text);
    int row = 0;
    for (; row < area.rows && length > 0; row++) {
        const size_t n = fitting(text, length, area.cols);
        if (row + 1 < area.rows || n == length) {
            canvas_printf(c, area, row, 0, style, "%.*s", (int)n, text);
        } else {
            const int where_cols = text_columns(where);
            const struct rect rest = {area.row, area.col, area.rows, area.cols - where_cols - 1};
            canvas_put_cut(c, rest, row, 0, style, text);
            canvas_put(c, area, row, area.cols - where_cols, STYLE_KEY, where);
        }
        text += n;
        length -= n;
    }
    return row;
}
