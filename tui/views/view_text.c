/* Views of running text: the log, the help; and the error that takes the place of panels. */
#include "tui/views/view_text.h"

#include "engine/base/path.h"
#include "engine/trace/trace.h"
#include "tui/keys/actions.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/sign.h"
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

void error_title(const struct session *s, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s%s", err_name(s->job.err.code), s->job.err.code == ERR_CANCELLED ? "" : " error");
}

static void error_flow(const struct session *s, struct text_flow *f)
{
    char line[1024], title[64];
    if (s->job.err.code == ERR_NONE)
        return;
    error_title(s, title, sizeof title);
    snprintf(line, sizeof line, "%s%s%s", title, s->job.err.where[0] ? ": " : "", s->job.err.where);
    if (strncmp(s->job.err.message, title, strlen(title)) != 0) { /* "cancelled; ..." says it itself */
        flow_put(f, STYLE_BAD, line);
        flow_put(f, STYLE_TEXT, "");
    }
    for (const char *text = s->job.err.message; *text;) {
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
        canvas_printf(c, area, area.rows - 1, 1, STYLE_KEY, "%d more lines: press L", f.line - f.area.rows);
    else
        canvas_put(c, area, area.rows - 1, 1, STYLE_DIM,
                   s->subject.has_scenario ? "r: try again, L: log" : "L shows the log");
}

/* What was called: a function that calls another is in no line above. */
static void stack_flow(const struct trace_stack *stack, struct text_flow *f)
{
    char line[400];
    for (int i = 0; stack->n > 2 && i < stack->n; i++) {
        const struct trace_frame *frame = &stack->at[i];
        snprintf(line, sizeof line, "    %s:%d%s%s", frame->file, frame->line, frame->function[0] ? " in " : "",
                 frame->function);
        flow_put(f, STYLE_TEXT, line);
    }
}

static const enum style fact_styles[FACT_KINDS] = {
    [FACT_FINDING] = STYLE_BAD,   [FACT_BEGINS] = STYLE_STRONG,   [FACT_ALSO] = STYLE_WARNING,
    [FACT_STATE] = STYLE_BAD,     [FACT_ONSET] = STYLE_NONFINITE, [FACT_SUSPECT] = STYLE_WARNING,
    [FACT_LOST] = STYLE_WARNING,  [FACT_CHANGED] = STYLE_WARNING, [FACT_UNDECLARED] = STYLE_WARNING,
    [FACT_EVENT] = STYLE_WARNING, [FACT_DECLARE] = STYLE_STRONG};

void fact_flow(void *ctx, const struct run_fact *fact)
{
    const struct fact_flow *to = ctx;
    char line[FACT_LINE_BYTES], place[64] = "", element[48] = "", site[320] = "";
    if (fact->kind == FACT_SKIPPED)
        tile_words(to->s, fact->place, place, sizeof place);
    else if (fact->place.slot >= 0)
        place_words(to->s, fact->place, place, sizeof place);
    if (fact->row >= 0)
        snprintf(element, sizeof element, fact->col >= 0 ? " r%d c%d" : " r%d", fact->row, fact->col);
    if (fact->site)
        snprintf(site, sizeof site, "; probe at %s:%d", path_name(fact->site->file), fact->site->line);
    snprintf(line, sizeof line, "%s%s%s%s%s%s%s", fact->detail ? to->indent : "", fact->words, place[0] ? " " : "",
             place, element, fact->after, site);
    flow_put(to->f, fact_styles[fact->kind], line);
    if (fact->event) {
        stack_flow(&fact->event->stack, to->f);
        stack_flow(&fact->event->other_stack, to->f);
    }
}

static void log_flow(const struct session *s, struct text_flow *f)
{
    const unsigned events = FACT_SET(FACT_EVENT);
    struct fact_flow to = {s, f, "  "};
    if (s->job.phase == PHASE_FAILED) {
        error_flow(s, f);
        flow_put(f, STYLE_TEXT, "");
    }
    if (s->run.trace) {
        const char *status = s->run.trace->info.status_text;
        const char *said = s->job.err.message;
        if (status[0] && !memmem(said, strlen(said), status, strcspn(status, "\n")))
            flow_put(f, STYLE_WARNING, status);
        run_facts(s->run.judgement, s->run.trace, events, fact_flow, &to);
        run_facts(s->run.judgement, s->run.trace,
                  FACTS_ALL & ~events & ~FACT_SET(FACT_EVIDENCE) & ~FACT_SET(FACT_VERDICT), fact_flow, &to);
    }
    for (size_t i = 0; i < s->log.n; i++)
        flow_put(f, error_line_style(s->log.line[i], strlen(s->log.line[i])), s->log.line[i]);
    if (f->line == 0)
        flow_put(f, STYLE_DIM, "no output from compiler or kernel");
}

/* The keys, group by group. Actions that open a view are a group by themselves, and what is in none stands after it. */
static const struct {
    const char *title;
    enum action actions[ACTION_COUNT + 1]; /* up to ACTION_NONE */
} help_groups[] = {
    {"bad places", {ACTION_NEXT_BAD, ACTION_PREV_BAD, ACTION_FIRST_BAD, ACTION_WORST, ACTION_NONE}},
    {"steps",
     {ACTION_NEXT_STAGE, ACTION_PREV_STAGE, ACTION_KV_PREV, ACTION_KV_NEXT, ACTION_Q_NEXT, ACTION_Q_PREV,
      ACTION_HEAD_NEXT, ACTION_HEAD_PREV, ACTION_ROW_NEXT, ACTION_ROW_PREV, ACTION_COL_PREV, ACTION_COL_NEXT,
      ACTION_PAGE_DOWN, ACTION_PAGE_UP, ACTION_NONE}},
    {"steps as the kernel ran",
     {ACTION_STEP, ACTION_STEP_BACK, ACTION_VISIT_NEXT, ACTION_VISIT_PREV, ACTION_ELEMENT_NEXT, ACTION_ELEMENT_PREV,
      ACTION_STOP_NEXT, ACTION_STOP_PREV, ACTION_NONE}},
    {"marks, jumps, pins",
     {ACTION_MARK, ACTION_GO_MARK, ACTION_JUMP_BACK, ACTION_JUMP_FORWARD, ACTION_PIN, ACTION_NONE}},
    {"what is shown",
     {ACTION_ZOOM, ACTION_BACK, ACTION_CYCLE_SHOWN, ACTION_REFERENCE, ACTION_ORDER, ACTION_SEARCH, ACTION_NONE}},
    {"runs",
     {ACTION_RERUN, ACTION_FLIP, ACTION_ISOLATE, ACTION_EDIT, ACTION_WATCH, ACTION_NAME_RUN, ACTION_SAVE,
      ACTION_PROFILE, ACTION_CHECKS, ACTION_CANCEL, ACTION_NONE}},
};

enum { NAME_COLS = 17 }; /* of the help: what is explained, then the words on it */

/* A name that is too long for its column has a line of its own. */
static void explain(struct text_flow *f, const char *name, const char *words)
{
    char line[512];
    const int cols = text_columns(name), own = cols >= NAME_COLS;
    f->hang = NAME_COLS;
    if (own)
        flow_put(f, STYLE_TEXT, name);
    snprintf(line, sizeof line, "%s%*s%s", own ? "" : name, own ? NAME_COLS : NAME_COLS - cols, "", words);
    flow_put(f, STYLE_TEXT, line);
    f->hang = 0;
}

static void key_flow(struct text_flow *f, enum action a)
{
    explain(f, action_text(a)->keys, action_text(a)->help);
}

/* The tables' own groups, then the keys of views, then what is left. */
static void keys_flow(struct text_flow *f)
{
    char put[ACTION_COUNT] = {0};
    for (size_t i = 0; i < sizeof help_groups / sizeof *help_groups; i++) {
        flow_put(f, STYLE_STRONG, help_groups[i].title);
        for (const enum action *a = help_groups[i].actions; *a != ACTION_NONE; a++) {
            key_flow(f, *a);
            put[*a] = 1;
        }
        flow_put(f, STYLE_TEXT, "");
    }
    for (int rest = 0; rest < 2; rest++) {
        flow_put(f, STYLE_STRONG, rest ? "more" : "views");
        for (int a = 0; a < ACTION_COUNT; a++) {
            if (put[a] || (!rest && !action_opens_view(a)))
                continue;
            key_flow(f, a);
            put[a] = 1;
        }
        flow_put(f, STYLE_TEXT, "");
    }
}

static void commands_flow(struct text_flow *f)
{
    char name[96];
    flow_put(f, STYLE_STRONG, "commands after :");
    for (int i = 0; command_text(i); i++) {
        const struct command_text *text = command_text(i);
        snprintf(name, sizeof name, "%s%s%s", text->name, text->arguments[0] ? " " : "", text->arguments);
        explain(f, name, text->help);
    }
    flow_put(f, STYLE_TEXT, "and every action by its name, with an optional count: `10 next-bad`");
    flow_put(f, STYLE_TEXT, "");
}

/* What the view shows where the help was asked, and its own keys. */
static void about_flow(enum view_id about, struct text_flow *f)
{
    char keys[512];
    const char *title, *words = view_about(about, &title);
    flow_put(f, STYLE_STRONG, title);
    flow_put(f, STYLE_TEXT, words);
    keys_words(about, f->area.cols, keys, sizeof keys);
    flow_put(f, STYLE_KEY, keys);
    flow_put(f, STYLE_TEXT, "");
}

static void help_flow(enum view_id about, struct text_flow *f)
{
    char line[256];
    about_flow(about, f);
    keys_flow(f);
    commands_flow(f);
    flow_put(f, STYLE_STRONG, "marks of tiles, heads and elements");
    f->hang = NAME_COLS;
    for (int sign = 0; sign < STATUS_COUNT; sign++) {
        snprintf(line, sizeof line, "%s  %-13s %s", sign_glyph(sign), sign_word(sign), sign_meaning(sign));
        flow_put(f, STYLE_TEXT, line);
    }
    f->hang = 0;
    flow_put(f, STYLE_TEXT, "");
    flow_put(f, STYLE_STRONG, "stages");
    flow_put(f, STYLE_TEXT,
             "ok: every element is within its bound. ✗: some are not. part: right as far as written, but tiles were "
             "skipped or the run ended early. -: not recorded. …: not judged (yet).");
    f->hang = 6;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        /* Padding by columns, not by bytes: α takes two bytes. */
        const char *label = channel_label(ch);
        snprintf(line, sizeof line, "%s%*s %s: %s", label, 5 - text_columns(label), "", channel_meaning(ch),
                 channel_formula(ch));
        flow_put(f, STYLE_TEXT, line);
    }
    f->hang = 0;
    flow_put(f, STYLE_TEXT, "");
    flow_put(f, STYLE_TEXT,
             "global: captured values against the float64 reference from the inputs: how wrong is it. local: against "
             "float64 arithmetic on the values captured upstream: is this stage the culprit.");
}

void text_view_draw(const struct session *s, struct canvas *c, const struct view_state *vs, view_text *text)
{
    struct rect area = view_body(c->cols, c->rows);
    area.col = 1;
    area.cols -= 2;
    struct text_flow f = {.canvas = c, .area = area, .top = vs->top};
    text(s, &f);
}

int text_view_lines(const struct session *s, int cols, view_text *text)
{
    struct text_flow f = {.area = {0, 0, 0, cols - 2}};
    text(s, &f);
    return f.line;
}

static void view_log_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    view_frame_draw(s, c, VIEW_LOG, "log", NULL);
    text_view_draw(s, c, vs, log_flow);
}

static int view_log_lines(const struct session *s, const struct view_state *vs, int cols)
{
    (void)vs;
    return text_view_lines(s, cols, log_flow);
}

/* The newest lines, unless an error or an event stands at the top. */
static int view_log_start(const struct session *s, int cols, int rows)
{
    return s->job.phase == PHASE_FAILED || session_event(s)
               ? 0
               : text_view_lines(s, cols, log_flow) - view_body(cols, rows).rows;
}

static int view_help_lines(const struct session *s, const struct view_state *vs, int cols)
{
    (void)s;
    struct text_flow f = {.area = {0, 0, 0, cols - 2}};
    help_flow(vs->about, &f);
    return f.line;
}

static void view_help_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    char right[64];
    const struct rect body = view_body(c->cols, c->rows);
    const int lines = view_help_lines(s, vs, c->cols);
    snprintf(right, sizeof right, "line %d of %d", vs->top + 1, lines);
    view_frame_draw(s, c, VIEW_HELP, "help", lines > body.rows ? right : NULL);
    struct text_flow f = {.canvas = c, .area = {body.row, 1, body.rows, body.cols - 2}, .top = vs->top};
    help_flow(vs->about, &f);
}

const struct view view_log = {.draw = view_log_draw, .lines = view_log_lines, .start = view_log_start};

/* Its key once more closes it. */
static struct view_answer act_on_help(const struct session *s, struct view_state *vs, enum action a, int times)
{
    (void)s;
    (void)vs;
    (void)times;
    return (struct view_answer){.does = a == ACTION_HELP ? ANSWER_CLOSES : ANSWER_PASSES};
}

const struct view view_help = {.draw = view_help_draw, .lines = view_help_lines, .act = act_on_help};
