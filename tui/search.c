#include "tui/search.h"

#include "engine/base/utf8.h"
#include <stdlib.h>
#include <string.h>

/* Lines drawn at a time: a log of 10,000 is a few pages. */
#define PAGE_LINES 2000
#define SEARCH_FRAME_ROWS 4 /* rows of a view that are not its body */

static uint32_t lower(uint32_t code)
{
    return code >= 'A' && code <= 'Z' ? code + 32 : code;
}

/* The text as code points; returns how many. exact: it has a capital. */
static int decode(const char *text, uint32_t *out, int most, int *exact)
{
    int n = 0;
    uint32_t code;
    *exact = 0;
    for (size_t length; n < most && (length = utf8_decode(text, &code)) > 0; text += length) {
        *exact |= lower(code) != code;
        out[n++] = code;
    }
    return n;
}

/* The column behind a match that begins at `col`, or 0. The right halves of wide characters are no characters. */
static int match_at(const struct cell *line, int cols, int col, const uint32_t *text, int n, int exact)
{
    int i = 0;
    for (; i < n && col < cols; col++) {
        if (line[col].code == 0)
            continue;
        const uint32_t code = exact ? line[col].code : lower(line[col].code);
        if (code != text[i++])
            return 0;
    }
    return i == n ? col : 0;
}

static bool row_matches(const struct canvas *c, int row, const uint32_t *text, int n, int exact)
{
    const struct cell *line = c->cells + (size_t)row * (size_t)c->cols;
    for (int col = 0; col < c->cols; col++)
        if (match_at(line, c->cols, col, text, n, exact))
            return true;
    return false;
}

/* matches[lines]: 1 where a line of the view holds the text. -1 without memory. */
static int find_lines(const struct search *search, enum view_id view, const struct session *s,
                      const struct view_state *vs, int cols, int lines, unsigned char *matches)
{
    uint32_t text[sizeof search->text];
    int exact;
    const int n = decode(search->text, text, sizeof text / sizeof *text, &exact);
    struct canvas c;
    const int rows = (lines < PAGE_LINES ? lines : PAGE_LINES) + SEARCH_FRAME_ROWS;
    const struct rect body = view_body(cols, rows);
    bool failed = false;
    if (canvas_init(&c, cols, rows, 0) != 0)
        return -1;
    for (int top = 0; n > 0 && top < lines; top += body.rows) {
        struct view_state at = *vs;
        at.top = view_clamp_top(view, s, vs, cols, rows, top);
        canvas_clear(&c);
        views[view]->draw(s, &c, &at);
        failed |= c.no_memory;
        for (int row = 0; row < body.rows && at.top + row < lines; row++)
            matches[at.top + row] |= (unsigned char)row_matches(&c, body.row + row, text, n, exact);
    }
    canvas_free(&c);
    return failed ? -1 : 0;
}

/* The by-th match behind `from` (before it, where by < 0), round and round; -1: there is none. */
static int go_through(const unsigned char *matches, int lines, int from, int by)
{
    int n = 0, found = -1;
    for (int line = 0; line < lines; line++)
        n += matches[line];
    for (int left = n > 0 ? (abs(by) - 1) % n + 1 : 0, i = 1; left > 0; i++) {
        found = (int)((((int64_t)from + (by < 0 ? -i : i)) % lines + lines) % lines);
        left -= matches[found];
    }
    return found;
}

int search_view(const struct search *search, enum view_id view, const struct session *s, const struct view_state *vs,
                int cols, int from, int by)
{
    const int lines = views[view]->lines ? views[view]->lines(s, vs, cols) : 0;
    unsigned char *matches = lines > 0 ? calloc((size_t)lines, 1) : NULL;
    int found = lines > 0 ? SEARCH_NO_MEMORY : -1;
    if (matches && find_lines(search, view, s, vs, cols, lines, matches) == 0)
        found = go_through(matches, lines, from, by);
    free(matches);
    return found;
}

void search_mark(const struct search *search, struct canvas *c, struct rect area)
{
    uint32_t text[sizeof search->text];
    int exact;
    const int n = search->active ? decode(search->text, text, sizeof text / sizeof *text, &exact) : 0;
    for (int row = area.row; n > 0 && row < area.row + area.rows && row < c->rows; row++) {
        struct cell *line = c->cells + (size_t)row * (size_t)c->cols;
        for (int col = 0; col < c->cols; col++) {
            const int end = match_at(line, c->cols, col, text, n, exact);
            for (int k = col; k < end; k++)
                line[k].style = STYLE_CURSOR;
        }
    }
}
