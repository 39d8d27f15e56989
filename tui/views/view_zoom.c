/* Views that give one panel the whole screen: map, source. */
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"

#include <stdio.h>

void view_frame_draw(const struct session *s, struct canvas *c, enum view_id view, const char *title, const char *right)
{
    header_draw(s, c, (struct rect){0, 0, 1, c->cols});
    rule_draw(c, (struct rect){1, 0, 1, c->cols}, title, right);
    message_draw(s, c, (struct rect){c->rows - 2, 0, 1, c->cols});
    keys_draw(c, (struct rect){c->rows - 1, 0, 1, c->cols}, view);
}

/* Rows below the source for the words of the event that it stands at. */
static int note_rows(const struct session *s)
{
    return source_event_text(s)[0] ? 3 : 0;
}

void view_source_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    char right[96];
    struct rect body = view_body(c->cols, c->rows);
    const int note = note_rows(s);
    source_words(s, right, sizeof right);
    view_frame_draw(s, c, VIEW_SOURCE, s->trace && source_file(s) ? source_file(s) : "source", right);
    body.rows -= note;
    source_draw(s, c, body, vs->top + 1, 0);
    if (note)
        flow_fit(c, (struct rect){body.row + body.rows + 1, 1, note - 1, body.cols - 2}, STYLE_WARNING,
                 source_event_text(s), "L log");
}

int view_source_lines(const struct session *s, int cols)
{
    (void)cols;
    return source_count(s) + note_rows(s);
}

int view_source_start(const struct session *s, int cols, int rows)
{
    return source_window(s, view_body(cols, rows).rows - note_rows(s)) - 1;
}
