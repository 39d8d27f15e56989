/* The last runs, and what changed in the kernel's text from one to the next. */
#include "tui/views/panels.h"

#include "engine/base/units.h"
#include "engine/study/text_diff.h"
#include "tui/views/sign.h"
#include "tui/views/view_text.h"
#include <stdio.h>
#include <string.h>

#define CONTEXT 3 /* equal lines around a change, as diff -u shows them */
#define STAGES_COL 26
#define STAGE_COLS 4
#define LINES_COL (STAGES_COL + STAGE_COLS * ASC_CHANNELS + 1)
#define NAME_COL (LINES_COL + 10)

static int count(const struct session *s)
{
    return s->runs.n;
}

static int begin(const struct session *s)
{
    const int i = runs_index(&s->runs, s->runs.shown);
    return i < 0 ? 0 : s->runs.n - 1 - i;
}

/* The newest run is the first. */
static const struct run *selected(const struct session *s, const struct view_state *vs)
{
    return s->runs.n ? &s->runs.at[s->runs.n - 1 - list_selected(vs->selected, s->runs.n)] : NULL;
}

static int selected_run(const struct session *s, const struct view_state *vs)
{
    return s->runs.n ? selected(s, vs)->number : 0;
}

/* "+3 −1"; "": nothing, or nothing to compare with. *no_memory becomes true where there was none to compare with. */
static void lines_words(const struct run *before, const struct run *run, char *out, size_t bytes, bool *no_memory)
{
    struct text_diff d;
    out[0] = '\0';
    if (!before)
        return;
    if (text_diff_make(before->trace->info.source, run->trace->info.source, 0, &d) != 0) {
        *no_memory = true;
        return;
    }
    if (d.added || d.removed)
        snprintf(out, bytes, "+%d −%d", d.added, d.removed);
    text_diff_free(&d);
}

static void stages_draw(struct canvas *c, struct rect line, const struct run *run)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct stage_summary *stage = &run->judgement->summary.stage[ch];
        enum style style;
        const char *text = stage_status_text(stage->local, &style);
        if (stage->local == STAGE_OK && stage->global == STAGE_BAD) {
            text = sign_glyph(STATUS_UPSTREAM);
            style = sign_style(STATUS_UPSTREAM);
        }
        canvas_put(c, line, 0, STAGES_COL + ch * STAGE_COLS, style, text);
    }
}

static void run_row(const struct list *l, int i, struct canvas *c, struct rect line)
{
    const struct session *s = l->of;
    const struct run *run = &s->runs.at[s->runs.n - 1 - i];
    const struct rect cut = {line.row, line.col, 1, STAGES_COL - 1};
    char lines[32], when[16] = "", words[RUN_NAME_BYTES + 200];
    struct tm at;
    if (localtime_r(&run->at, &at))
        strftime(when, sizeof when, "%H:%M:%S", &at);
    if (run->number == s->runs.shown)
        list_mark(c, line);
    canvas_printf(c, line, 0, 3, list_style(l, i), "%3d  %s", run->number, when);
    const enum run_verdict is = run->judgement->complete ? run_verdict(run->trace, run->judgement) : RUN_IS_JUDGING;
    canvas_put_cut(c, cut, 0, 17, is == RUN_IS_CLEAN ? STYLE_OK : STYLE_BAD, run_verdict_word(is));
    stages_draw(c, line, run);
    lines_words(runs_before(&s->runs, run), run, lines, sizeof lines, &c->no_memory);
    canvas_put(c, line, 0, LINES_COL, STYLE_TEXT, lines);
    struct change change;
    change_find(runs_before(&s->runs, run), run, &change);
    if (line.cols > NAME_COL + 10) {
        snprintf(words, sizeof words, "%s%s%s", run->name, run->name[0] && change.set[0] ? ", " : "", change.set);
        canvas_put_cut(c, line, 0, NAME_COL, STYLE_STRONG, words);
    } else if (change.set[0]) {
        canvas_put(c, line, 0, LINES_COL, STYLE_STRONG, lines[0] ? "lines,set" : "set");
    }
}

static void diff_flow(const struct run *before, const struct run *run, struct text_flow *f)
{
    struct text_diff d;
    char line[1100];
    if (text_diff_make(before->trace->info.source, run->trace->info.source, CONTEXT, &d) != 0) {
        if (f->canvas)
            f->canvas->no_memory = true;
        return;
    }
    for (size_t i = 0; i < d.n; i++) {
        const struct diff_line *l = &d.lines[i];
        const int number = l->op == '-' ? l->before : l->now;
        size_t used = (size_t)snprintf(line, sizeof line, "%5d %c ", number, l->op);
        if (l->op == '@') {
            flow_put(f, STYLE_DIM, "    …");
            continue;
        }
        for (size_t k = 0; k < l->length && used + 5 < sizeof line; k++)
            if (l->text[k] == '\t')
                used += (size_t)snprintf(line + used, sizeof line - used, "    ");
            else if (l->text[k] != '\r')
                line[used++] = l->text[k];
        line[used] = '\0';
        flow_put(f, l->op == '+' ? STYLE_OK : l->op == '-' ? STYLE_BAD : STYLE_TEXT, line);
    }
    text_diff_free(&d);
}

/* What the list has no room for, of one run. */
static void detail_flow(const struct session *s, const struct run *run, struct text_flow *f)
{
    const struct run *before = runs_before(&s->runs, run);
    char words[700], line[800], lines[32];
    struct change change;
    flow_put(f, STYLE_TEXT, run->title);
    if (run->saved) {
        snprintf(line, sizeof line, "saved as %s", run->saved);
        flow_put(f, STYLE_TEXT, line);
    }
    change_find(before, run, &change);
    change_words(&change, words, sizeof words);
    const int sense = change_sense(&change);
    if (change.set[0] && change.state == CHANGE_NOTHING) {
        snprintf(line, sizeof line, "set since the run before: %s", change.set);
        flow_put(f, STYLE_TEXT, line);
    }
    if (words[0])
        flow_put(f, sense > 0 ? STYLE_BAD : sense < 0 ? STYLE_OK : STYLE_TEXT, words);
    lines_words(before, run, lines, sizeof lines, &f->canvas->no_memory);
    if (before && !lines[0])
        flow_put(f, STYLE_DIM, "the kernel's text is unchanged");
    else if (before)
        diff_flow(before, run, f);
}

/* The runs that are gone, and what the others take. */
static void title_words(const struct session *s, char *out, size_t bytes)
{
    uint64_t all = 0;
    char taken[32], room[32];
    for (int i = 0; i < s->runs.n; i++)
        all += run_bytes(&s->runs.at[i]);
    units_bytes(all, taken, sizeof taken);
    units_bytes(s->subject.scenario.capture.mem_bytes, room, sizeof room);
    if (s->subject.has_scenario)
        snprintf(out, bytes, "%d of %d kept, %s of %s", s->runs.n, s->runs.made, taken, room);
    else
        snprintf(out, bytes, "%s", taken);
}

static void titles_draw(struct canvas *c, struct rect line)
{
    canvas_put(c, line, 0, 3, STYLE_DIM, "run  time      verdict");
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        canvas_put(c, line, 0, STAGES_COL + ch * STAGE_COLS, STYLE_DIM, channel_label(ch));
    canvas_put(c, line, 0, LINES_COL, STYLE_DIM, "lines");
    if (line.cols > NAME_COL + 10)
        canvas_put(c, line, 0, NAME_COL, STYLE_DIM, "name, what was set");
}

static void view_runs_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct rect body = view_body(c->cols, c->rows);
    const struct run *run = selected(s, vs);
    const struct list list = {.of = s,
                              .n = s->runs.n,
                              .selected = list_selected(vs->selected, s->runs.n),
                              .empty = "no run yet: press r",
                              .row = run_row};
    char right[96], title[RUN_NAME_BYTES + 32];
    title_words(s, right, sizeof right);
    view_frame_draw(s, c, VIEW_RUNS, "runs", run ? right : NULL);
    if (run) {
        titles_draw(c, body);
        body.row++;
        body.rows--;
    }
    const int used = list_draw(&list, c, body);
    if (!run)
        return;
    run_words(run, title, sizeof title);
    rule_draw(c, (struct rect){body.row + used, 0, 1, body.cols}, title, NULL);
    struct text_flow f = {.canvas = c, .area = {body.row + used + 1, 1, body.rows - used - 1, body.cols - 2}};
    detail_flow(s, run, &f);
    if (f.line > f.area.rows)
        text_right(c, f.area, f.area.rows - 1, STYLE_KEY, "D shows all");
}

static void changes_flow(const struct session *s, struct text_flow *f)
{
    const struct run *run = runs_shown(&s->runs), *before = run ? runs_before(&s->runs, run) : NULL;
    const int begin = f->line;
    if (before)
        diff_flow(before, run, f);
    if (f->line == begin)
        flow_put(f, STYLE_DIM, before ? "the kernel's text is unchanged" : "there is no run before this one");
}

static void view_changes_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    const struct run *run = runs_shown(&s->runs), *before = run ? runs_before(&s->runs, run) : NULL;
    char title[2 * RUN_NAME_BYTES + 64], one[RUN_NAME_BYTES + 32], other[RUN_NAME_BYTES + 32], lines[32] = "";
    snprintf(title, sizeof title, "changes");
    if (before) {
        run_words(before, one, sizeof one);
        run_words(run, other, sizeof other);
        snprintf(title, sizeof title, "from %s to %s", one, other);
        lines_words(before, run, lines, sizeof lines, &c->no_memory);
    }
    view_frame_draw(s, c, VIEW_CHANGES, title, lines[0] ? lines : NULL);
    text_view_draw(s, c, vs, changes_flow);
}

static int view_changes_lines(const struct session *s, const struct view_state *vs, int cols)
{
    (void)vs;
    return text_view_lines(s, cols, changes_flow);
}

static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    (void)times;
    if (a != ACTION_ZOOM || !s->runs.n)
        return (struct view_answer){0};
    return (struct view_answer){.does = ANSWER_SHOWS_RUN, .run = selected_run(s, vs), .view = VIEW_OVERVIEW};
}

const struct view view_runs = {.draw = view_runs_draw, .count = count, .begin = begin, .run = selected_run, .act = act};

const struct view view_changes = {.draw = view_changes_draw, .lines = view_changes_lines};
