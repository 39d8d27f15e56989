/* The last two lines of every view: what the last command said, and the keys. */
#include "tui/panels.h"

#include "tui/actions.h"
#include <string.h>

static const struct {
    enum view_id view;
    enum action action;
    const char *text;
} hints[] = {
#define HINT(view, action, text) {view, action, text},
#include "tui/hints.def"
#undef HINT
};

/* "n/N bad": keys before the last blank, what they do after it. */
static int hint_draw(struct canvas *c, struct rect area, int col, const char *hint)
{
    const char *what = strrchr(hint, ' ');
    int used = canvas_printf(c, area, 0, col, STYLE_KEY, "%.*s", what ? (int)(what - hint) : 0, hint);
    return used + canvas_put(c, area, 0, col + used, STYLE_TEXT, what ? what : hint);
}

/* A line in the making; hints that have no room are left out, the help has them all. */
struct key_line {
    struct canvas *canvas;
    struct rect area;
    int col, full;
};

static void add(struct key_line *line, const char *hint)
{
    if (!hint[0] || hint[0] == '!' || line->full)
        return;
    line->full = line->col + text_columns(hint) > line->area.cols;
    if (!line->full)
        line->col += hint_draw(line->canvas, line->area, line->col, hint) + 2;
}

void keys_draw(struct canvas *c, struct rect area, enum view_id view)
{
    int last = area.cols, own = 0;
    for (int a = ACTION_COUNT; a-- > 0;) {
        const char *hint = action_text(a)->hint;
        if (hint[0] != '!')
            continue;
        last -= text_columns(hint + 1);
        hint_draw(c, area, last, hint + 1);
        last -= 2;
    }
    struct key_line line = {c, {area.row, area.col, 1, last}, 0, 0};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (hints[i].view != view)
            continue;
        own = 1;
        add(&line, hints[i].text[0] ? hints[i].text : action_text(hints[i].action)->hint);
    }
    for (int a = 0; a < ACTION_COUNT && !own; a++)
        add(&line, action_text(a)->hint);
}

const char *message_words(const struct session *s, char *room, size_t bytes, enum style *style)
{
    const int sense = change_sense(&s->change);
    *style = STYLE_WARNING;
    if (s->message[0])
        return s->message;
    change_words(&s->change, room, bytes);
    *style = sense > 0 ? STYLE_BAD : sense < 0 ? STYLE_OK : STYLE_DIM;
    return room;
}

void message_draw(const struct session *s, struct canvas *c, struct rect area)
{
    char words[256];
    enum style style;
    const char *text = message_words(s, words, sizeof words, &style);
    rule_draw(c, area, NULL, NULL);
    if (!text[0])
        return;
    const struct rect room = {area.row, area.col, 1, area.cols - 2};
    canvas_put(c, area, 0, 1, STYLE_RULE, " ");
    const int used = canvas_put_cut(c, room, 0, 2, style, text);
    canvas_put(c, area, 0, 2 + used, STYLE_RULE, " ");
}
