/* The kernel's text around an event, or around the probe of the cursor's stage. */
#include "tui/views/panels.h"

#include "engine/verdict/reports.h"
#include "tui/screen/text_flow.h"
#include "tui/views/sign.h"
#include "tui/views/view_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PROBE_COLS = 9 }; /* "LSE part " */

/* The event that the source stands at: one in a text that there is. */
static const struct trace_event *standing_event(const struct session *s)
{
    const struct trace_event *e = s->at.event || session_at_report(s) ? session_event(s) : NULL;
    return e && e->line > 0 && trace_source(s->run.trace, event_call(e).file) ? e : NULL;
}

int source_line(const struct session *s)
{
    const struct trace_event *e = standing_event(s);
    const struct trace_site *site = session_site(s);
    return e ? event_call(e).line : site ? site->line : 0;
}

const char *source_file(const struct session *s)
{
    const struct trace_event *e = standing_event(s);
    const struct trace_site *site = session_site(s);
    const char *file = e              ? event_call(e).file
                       : site         ? site->file
                       : s->run.trace ? s->run.trace->info.source_name
                                      : s->subject.scenario.kernel;
    return *file ? file : NULL;
}

/* What is shown; NULL: it is not known. */
static const char *shown_text(const struct session *s)
{
    const char *file = source_file(s);
    return s->run.trace && file ? trace_source(s->run.trace, file) : NULL;
}

void source_words(const struct session *s, char *out, size_t bytes)
{
    const struct trace_event *e = standing_event(s);
    out[0] = '\0';
    if (e) {
        const struct event_place at = event_call(e), other = event_other_call(e);
        if (other.line > 0 && other.line != at.line && strcmp(at.file, other.file) == 0)
            snprintf(out, bytes, "%s, lines %d and %d", event_name(e->kind), at.line, other.line);
        else
            snprintf(out, bytes, "%s, line %d", event_name(e->kind), at.line);
    } else if (session_site(s)) {
        snprintf(out, bytes, "probe of %s", session_label(s, s->at.cursor.channel));
    }
}

int source_count(const struct session *s)
{
    const char *text = shown_text(s);
    int lines = 0;
    while (text && *text) {
        lines++;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return lines;
}

int source_window(const struct session *s, int rows)
{
    const int line = source_line(s) > 0 ? source_line(s) : 1;
    /* More above the line than below: what made the value stands there. */
    int first = line - rows + 1 + rows / 6;
    if (first + rows > source_count(s) + 1)
        first = source_count(s) + 1 - rows;
    return first > 1 ? first : 1;
}

/* One line of text, tabs widened to multiples of 4. */
static void expand(const char *text, size_t length, char *out, size_t bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used + 5 < bytes; i++) {
        if (text[i] == '\t')
            do
                out[used++] = ' ';
            while (used % 4);
        else if (text[i] != '\r')
            out[used++] = text[i];
    }
    out[used] = '\0';
}

/* Blanks that every line of the window begins with, directives apart: a narrow panel does not spend columns on them. */
static size_t common_indent(const char *text, int first, int rows)
{
    size_t least = SIZE_MAX;
    for (int line = 1; *text && line < first + rows; line++) {
        const size_t length = strcspn(text, "\n");
        char shown[2048];
        expand(text, length, shown, sizeof shown);
        const size_t indent = strspn(shown, " ");
        if (line >= first && shown[indent] && shown[0] != '#' && indent < least)
            least = indent;
        text += length;
        text += *text == '\n';
    }
    return least == SIZE_MAX ? 0 : least;
}

static bool is_there(const char *file, int line, const struct trace_stack *stack, const char *shown, int shown_line)
{
    int there = line == shown_line && strcmp(file, shown) == 0;
    for (int i = 0; i < stack->n && !there; i++)
        there = stack->at[i].line == shown_line && strcmp(stack->at[i].file, shown) == 0;
    return there;
}

/* 1: something was reported at this line, or called from there, or it is the other side of that. */
static bool line_reported(const struct trace *t, const char *file, int line)
{
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *e = &t->info.events[i];
        if (event_is_mistake(e->kind) && (is_there(e->file, e->line, &e->stack, file, line) ||
                                          is_there(e->other_file, e->other_line, &e->other_stack, file, line)))
            return true;
    }
    return false;
}

const char *source_event_text(const struct session *s)
{
    const struct trace_event *e = standing_event(s);
    return e ? e->text : "";
}

/* Of a line with probes: the stage that is worst off and what its verdict is; returns the columns that takes. */
static int probe_draw(const struct session *s, struct canvas *c, struct rect area, int row, int col, const char *file,
                      int line)
{
    const struct trace_info *info = &s->run.trace->info;
    const char *mark = "", *label = "";
    enum style style = STYLE_DIM;
    int worst = -1;
    for (size_t i = 0; i < info->n_sites; i++) {
        const struct trace_site *site = &info->sites[i];
        if (site->line != line || strcmp(site->file, file) != 0)
            continue;
        const struct stage_summary *stage = s->run.judgement ? &s->run.judgement->summary.stage[site->channel] : NULL;
        const bool upstream = stage && stage->local != STAGE_BAD && stage->global == STAGE_BAD;
        const int rank = !stage ? 0 : stage->local == STAGE_BAD ? 3 : upstream ? 2 : stage->local == STAGE_OK ? 0 : 1;
        if (rank <= worst)
            continue;
        worst = rank;
        label = session_label(s, site->channel);
        mark = upstream ? sign_glyph(STATUS_UPSTREAM) : stage_status_text(stage ? stage->local : STAGE_UNKNOWN, &style);
        style = upstream ? sign_style(STATUS_UPSTREAM) : style;
    }
    const int used = canvas_put(c, area, row, col, STYLE_STRONG, label);
    canvas_put(c, area, row, col + used + (used > 0), style, mark);
    return PROBE_COLS;
}

void source_draw(const struct session *s, struct canvas *c, struct rect area, int first, bool dedent)
{
    const char *text = shown_text(s), *file = source_file(s);
    if (!text || !*text) {
        const bool is_source = s->run.trace && file && strcmp(file, s->run.trace->info.source_name) == 0;
        canvas_put(c, area, 0, 1, STYLE_DIM,
                   !s->run.trace        ? ""
                   : is_source || !file ? "the source of this run is not known"
                                        : "this run does not hold the text of that file");
        return;
    }
    const int marked = source_line(s), count = source_count(s);
    const size_t indent = dedent ? common_indent(text, first, area.rows) : 0;
    const int digits = count >= 10000 ? 6 : count >= 1000 ? 4 : 3;
    for (int line = 1; *text && line < first + area.rows; line++) {
        const size_t length = strcspn(text, "\n");
        if (line >= first) {
            char shown[2048];
            const int here = line == marked, row = line - first;
            expand(text, length, shown, sizeof shown);
            const size_t own = strspn(shown, " ");
            if (here)
                canvas_put(c, area, row, 0, STYLE_CURSOR, "◆");
            else if (line_reported(s->run.trace, file, line))
                canvas_put(c, area, row, 0, STYLE_WARNING, "!");
            canvas_printf(c, area, row, 1, here ? STYLE_STRONG : STYLE_DIM, "%*d", digits, line);
            const int gutter = dedent ? 0 : probe_draw(s, c, area, row, digits + 3, file, line);
            canvas_put_cut(c, area, row, digits + 3 + gutter, here ? STYLE_STRONG : STYLE_TEXT,
                           shown + (own < indent ? own : indent));
        }
        text += length;
        text += *text == '\n';
    }
}

/* ---- the view: the text on the whole screen ---- */

/* Rows below the source for the words of the event that it stands at. */
static int note_rows(const struct session *s)
{
    return source_event_text(s)[0] ? 3 : 0;
}

static void view_source_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    char right[96];
    struct rect body = view_body(c->cols, c->rows);
    const int note = note_rows(s);
    source_words(s, right, sizeof right);
    view_frame_draw(s, c, VIEW_SOURCE, s->run.trace && source_file(s) ? source_file(s) : "source", right);
    body.rows -= note;
    source_draw(s, c, body, vs->top + 1, 0);
    if (note)
        flow_fit(c, (struct rect){body.row + body.rows + 1, 1, note - 1, body.cols - 2}, STYLE_WARNING,
                 source_event_text(s), "L log");
}

static int view_source_lines(const struct session *s, const struct view_state *vs, int cols)
{
    (void)vs;
    (void)cols;
    return source_count(s) + note_rows(s);
}

static int view_source_start(const struct session *s, int cols, int rows)
{
    return source_window(s, view_body(cols, rows).rows - note_rows(s)) - 1;
}

const struct view view_source = {
    .draw = view_source_draw, .lines = view_source_lines, .start = view_source_start, .anchor = source_line};
