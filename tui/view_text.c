/* Views of running text: the log, the help; and the error that takes the place of panels. */
#include "tui/view_text.h"

#include "tui/actions.h"
#include "tui/panels.h"
#include "tui/text_flow.h"
#include <stdio.h>
#include <string.h>

static enum style error_line_style(const char *line, size_t length)
{
    static const char *const loud[] = {"error", "assert", "warning"};
    for (size_t i = 0; i < sizeof loud / sizeof *loud; i++)
        if (memmem(line, length, loud[i], strlen(loud[i])))
            return i == 2 ? STYLE_WARNING : STYLE_BAD;
    return STYLE_TEXT;
}

static void error_flow(const struct session *s, struct text_flow *f)
{
    char line[1024];
    if (s->err.code == ERR_NONE)
        return;
    snprintf(line, sizeof line, "%s error%s%s", err_name(s->err.code), s->err.where[0] ? ": " : "", s->err.where);
    flow_put(f, STYLE_BAD, line);
    flow_put(f, STYLE_TEXT, "");
    for (const char *text = s->err.message; *text;) {
        const size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        flow_put(f, error_line_style(text, length), line);
        text += length;
        text += *text == '\n';
    }
}

void error_draw(const struct session *s, struct canvas *c, struct rect area)
{
    struct text_flow f = {.canvas = c, .area = {area.row, area.col + 1, area.rows - 1, area.cols - 2}};
    error_flow(s, &f);
    if (f.line > f.area.rows)
        canvas_printf(c, area, area.rows - 1, 1, STYLE_KEY, "%d more lines: press 5", f.line - f.area.rows);
    else
        canvas_put(c, area, area.rows - 1, 1, STYLE_DIM,
                   s->has_scenario ? "r tries again, 5 shows the log" : "5 shows the log");
}

static void log_flow(const struct session *s, struct text_flow *f)
{
    if (s->phase == PHASE_FAILED) {
        error_flow(s, f);
        flow_put(f, STYLE_TEXT, "");
    }
    if (s->trace) {
        const struct trace_info *info = &s->trace->info;
        char line[1024];
        if (info->status_text[0])
            flow_put(f, STYLE_WARNING, info->status_text);
        for (size_t i = 0; i < info->n_events; i++) {
            const struct trace_event *e = &info->events[i];
            if (e->line > 0)
                snprintf(line, sizeof line, "%s:%d: %s: %s", e->file, e->line, e->kind, e->text);
            else
                snprintf(line, sizeof line, "%s: %s", e->kind, e->text);
            flow_put(f, STYLE_WARNING, line);
        }
    }
    for (size_t i = 0; i < s->n_log; i++)
        flow_put(f, error_line_style(s->log[i], strlen(s->log[i])), s->log[i]);
    if (f->line == 0)
        flow_put(f, STYLE_DIM, "neither compiler nor kernel said anything");
}

static void help_flow(struct text_flow *f)
{
    char line[256];
    for (int a = 0; a < ACTION_COUNT; a++) {
        const struct action_text *text = action_text(a);
        snprintf(line, sizeof line, "%-16s %s", text->keys, text->help);
        flow_put(f, STYLE_TEXT, line);
    }
    flow_put(f, STYLE_TEXT, "");
    flow_put(f, STYLE_STRONG, "stages");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        /* Padding by columns, not by bytes: α takes two bytes. */
        const char *label = channel_label(ch);
        snprintf(line, sizeof line, "%s%*s %s: %s", label, 5 - text_columns(label), "", channel_meaning(ch),
                 channel_formula(ch));
        flow_put(f, STYLE_TEXT, line);
    }
    flow_put(f, STYLE_TEXT, "");
    flow_put(f, STYLE_TEXT,
             "global: captured against the float64 truth from the inputs: how wrong is it. "
             "local: against float64 arithmetic on what this run captured upstream: is this stage to "
             "blame.");
}

static struct text_flow flow_on(struct canvas *c, const struct view_state *vs)
{
    struct rect area = view_body(c->cols, c->rows);
    area.col = 1;
    area.cols -= 2;
    return (struct text_flow){.canvas = c, .area = area, .top = vs->top};
}

static struct text_flow counter(int cols)
{
    return (struct text_flow){.area = {0, 0, 0, cols - 2}};
}

void view_log_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct text_flow f = flow_on(c, vs);
    view_frame_draw(s, c, "log", NULL);
    log_flow(s, &f);
}

int view_log_lines(const struct session *s, int cols)
{
    struct text_flow f = counter(cols);
    log_flow(s, &f);
    return f.line;
}

/* The newest lines, unless an error stands at the top. */
int view_log_start(const struct session *s, int cols, int rows)
{
    return s->phase == PHASE_FAILED ? 0 : view_log_lines(s, cols) - view_body(cols, rows).rows;
}

void view_help_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct text_flow f = flow_on(c, vs);
    char right[64];
    const int lines = view_help_lines(s, c->cols);
    snprintf(right, sizeof right, "line %d of %d", vs->top + 1, lines);
    view_frame_draw(s, c, "keys", lines > f.area.rows ? right : NULL);
    help_flow(&f);
}

int view_help_lines(const struct session *s, int cols)
{
    struct text_flow f = counter(cols);
    (void)s;
    help_flow(&f);
    return f.line;
}
