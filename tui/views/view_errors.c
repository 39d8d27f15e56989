/* What kept a run from coming about: the compiler's messages, errors first, as a list that the editor is opened from.
 */
#include "tui/views/panels.h"

#include "engine/session/error_lines.h"
#include "tui/views/view_text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lines of the session's error; *out is the caller's. 0: there is none, -1: no memory. */
static int list(const struct session *s, struct error_line **out)
{
    const int failed = session_failed_to_show(s);
    *out = failed ? malloc(sizeof **out * ERROR_LINES_MAX) : NULL;
    return *out ? error_lines(&s->job.err, *out) : failed ? -1 : 0;
}

static int count(const struct session *s)
{
    struct error_line *lines;
    const int n = list(s, &lines);
    free(lines);
    return n > 0 ? n : 0;
}

static int place(const struct session *s, const struct view_state *vs, char *file, size_t bytes)
{
    struct error_line *lines;
    const int n = list(s, &lines);
    const struct error_line *l = n > 0 ? &lines[list_selected(vs->selected, n)] : NULL;
    const int line = l ? l->line : 0;
    snprintf(file, bytes, "%s", l ? l->file : "");
    free(lines);
    return line;
}

static enum style style_of(enum error_line_kind kind)
{
    switch (kind) {
    case ERROR_LINE_ERROR:
        return STYLE_BAD;
    case ERROR_LINE_WARNING:
        return STYLE_WARNING;
    case ERROR_LINE_NOTE:
        return STYLE_STRONG;
    case ERROR_LINE_OTHER:
        break;
    }
    return STYLE_TEXT;
}

/* A line for each but the selected one, which has as many as it takes. */
static void line_text(const struct list *l, int i, struct text_flow *f)
{
    const struct error_line *line = (const struct error_line *)l->of + i;
    char text[1100];
    snprintf(text, sizeof text, "%.*s", (int)(line->length < sizeof text ? line->length : sizeof text - 1), line->text);
    if (i == l->selected)
        flow_put(f, style_of(line->kind), text);
    else
        flow_cut(f, style_of(line->kind), text);
}

static void view_errors_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct error_line *lines;
    const int n = list(s, &lines);
    const struct list shown = {.of = lines,
                               .n = n,
                               .selected = list_selected(vs->selected, n),
                               .empty = "the last build had no errors",
                               .text = line_text};
    char title[600], right[64] = "", name[64];
    snprintf(title, sizeof title, "errors");
    if (n > 0) {
        error_title(s, name, sizeof name);
        snprintf(title, sizeof title, "%s%s%s", name, s->job.err.where[0] ? ": " : "", s->job.err.where);
    }
    if (n > 0 && s->run.trace)
        snprintf(right, sizeof right, "Esc: run %d", s->run.number);
    view_frame_draw(s, c, VIEW_ERRORS, title, right[0] ? right : NULL);
    c->no_memory |= n < 0;
    if (n >= 0)
        list_draw(&shown, c, view_body(c->cols, c->rows));
    free(lines);
}

static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    (void)s;
    (void)vs;
    if (a != ACTION_ZOOM)
        return (struct view_answer){0};
    return (struct view_answer){.does = ANSWER_MEANS, .action = ACTION_EDIT, .times = times};
}

const struct view view_errors = {.draw = view_errors_draw, .count = count, .place = place, .act = act};
