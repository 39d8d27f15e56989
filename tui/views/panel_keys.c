/* The last two lines of every view: what the last command said, and the keys; and the frame of which they
   are a part. */
#include "tui/views/panels.h"

#include "engine/session/look.h"
#include "engine/verdict/again.h"
#include "tui/keys/actions.h"
#include "tui/views/view_text.h"
#include <stdio.h>
#include <string.h>

static const struct {
    enum view_id view;
    enum action action;
    const char *text;
} hints[] = {
#define HINT(view, action, text) {view, action, text},
#include "tui/keys/hints.def"
#undef HINT
};

#define HINT_BYTES 64

/* "n/N bad": keys before the last blank, what they do after it. Where the user has chosen other keys, the action's
   first. */
static const char *hint_words(const char *hint, enum action action, char out[HINT_BYTES])
{
    const char *what = strrchr(hint, ' '), *keys = action_text(action)->keys;
    hint += *hint == '!';
    if (!what || !action_rebound(action))
        snprintf(out, HINT_BYTES, "%s", hint);
    else if (*keys)
        snprintf(out, HINT_BYTES, "%.*s%s", (int)strcspn(keys, " "), keys, what);
    else
        out[0] = '\0';
    return out;
}

static int hint_draw(struct canvas *c, struct rect area, int col, const char *hint, enum action action)
{
    const char *what = strrchr(hint, ' ');
    int used = canvas_printf(c, area, 0, col, STYLE_KEY, "%.*s", what ? (int)(what - hint) : 0, hint);
    used += canvas_put(c, area, 0, col + used, STYLE_TEXT, what ? what : hint);
    if (what && !memchr(hint, ' ', (size_t)(what - hint))) /* several keys are several actions */
        hit_add(c, area, (struct rect){0, col, 1, used}, HIT_ACTION, 0, (int)action, 0);
    return used;
}

/* A line in the making; hints that have no room are left out, the help has them all. */
struct key_line {
    struct canvas *canvas;
    struct rect area;
    int col, full;
};

static void add(struct key_line *line, const char *hint, enum action action)
{
    char words[HINT_BYTES];
    if (!hint[0] || hint[0] == '!' || line->full || !hint_words(hint, action, words)[0])
        return;
    line->full = line->col + text_columns(words) > line->area.cols;
    if (!line->full)
        line->col += hint_draw(line->canvas, line->area, line->col, words, action) + 2;
}

const char *view_about(enum view_id view, const char **title)
{
    static const struct {
        const char *title, *about;
    } words[VIEW_COUNT] = {
#define VIEW(id, name, title, ops, about) {title, about},
#include "tui/views/views.def"
#undef VIEW
    };
    *title = words[view].title;
    return words[view].about;
}

/* One hint more; a line ends before one that has no room in it. */
static void put_words(const char *words, int cols, char *out, size_t bytes, int *col)
{
    const size_t used = strlen(out);
    const int wide = text_columns(words);
    const bool fits = *col == 0 || *col + 2 + wide <= cols;
    snprintf(out + used, bytes - used, "%s%s", *col == 0 ? "" : fits ? "  " : "\n", words);
    *col = fits && *col ? *col + 2 + wide : wide;
}

void keys_words(enum view_id view, int cols, char *out, size_t bytes)
{
    char words[HINT_BYTES];
    bool own = false;
    int col = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        const char *hint = hints[i].text[0] ? hints[i].text : action_text(hints[i].action)->hint;
        own |= hints[i].view == view;
        if (hints[i].view == view && hint_words(hint, hints[i].action, words)[0])
            put_words(words, cols, out, bytes, &col);
    }
    for (int a = 0; a < ACTION_COUNT && !own; a++) {
        const char *hint = action_text(a)->hint;
        if (hint[0] && hint[0] != '!' && hint_words(hint, a, words)[0])
            put_words(words, cols, out, bytes, &col);
    }
}

void keys_draw(struct canvas *c, struct rect area, enum view_id view)
{
    int last = area.cols, own = 0;
    for (int a = ACTION_COUNT; a-- > 0;) {
        const char *hint = action_text(a)->hint;
        char words[HINT_BYTES];
        if (a == ACTION_QUIT && view != VIEW_OVERVIEW)
            hint = "!q back";
        if (hint[0] != '!' || !hint_words(hint, a, words)[0])
            continue;
        last -= text_columns(words);
        hint_draw(c, area, last, words, a);
        last -= 2;
    }
    struct key_line line = {c, {area.row, area.col, 1, last}, 0, 0};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (hints[i].view != view)
            continue;
        own = 1;
        add(&line, hints[i].text[0] ? hints[i].text : action_text(hints[i].action)->hint, hints[i].action);
    }
    for (int a = 0; a < ACTION_COUNT && !own; a++)
        add(&line, action_text(a)->hint, a);
}

const char *message_words(const struct session *s, char *room, size_t bytes, enum style *style)
{
    const int sense = change_sense(&s->run.change);
    *style = STYLE_WARNING;
    if (s->message[0])
        return s->message;
    if (session_retry_words(s)[0] && findings_open(s->run.judgement)) {
        snprintf(room, bytes, "no known cause: %s  (x stops)", session_retry_words(s));
        return room;
    }
    change_words(&s->run.change, room, bytes);
    *style = sense > 0 ? STYLE_BAD : sense < 0 ? STYLE_OK : STYLE_DIM;
    if (!room[0] && s->run.judgement && s->run.judgement->asked_again && findings_open(s->run.judgement)) {
        *style = STYLE_WARNING;
        snprintf(room, bytes, "no cause by rules%s; next: i isolate, d operands",
                 s->run.trace->info.backend == BACKEND_CPU ? ", checks, other orders" : "");
    }
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

void view_frame_draw(const struct session *s, struct canvas *c, enum view_id view, const char *title, const char *right)
{
    header_draw(s, c, (struct rect){0, 0, 1, c->cols});
    rule_draw(c, (struct rect){1, 0, 1, c->cols}, title, right);
    message_draw(s, c, (struct rect){c->rows - 2, 0, 1, c->cols});
    keys_draw(c, (struct rect){c->rows - 1, 0, 1, c->cols}, view);
}
