/* The two rows that answer first: what is wrong, and what happened during the run. */
#include "tui/views/panels.h"

#include "engine/base/path.h"
#include "engine/base/text.h"
#include "engine/session/look.h"
#include "engine/trace/trace.h"
#include "engine/verdict/facts.h"
#include "engine/verdict/reports.h"
#include "tui/screen/text_flow.h"
#include "tui/views/view_text.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORDS_BYTES 640 /* an event's kind and text */
#define CORES_BYTES 640 /* what became of declared tensor cores */

/* The finding's own line, or a shorter one of the same facts: first without the count, then without what rounding
   explains. */
static void finding_words(const struct finding *f, int cols, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", f->text);
    for (int shorter = 1; shorter <= 2 && text_columns(out) > cols && f->cause != CAUSE_NONE; shorter++)
        finding_explained(f, shorter, out, bytes);
}

/* "v2b_scalar.cu:143" */
/* "my.cu:78"; "K h1 q0 k0  my.cu:78" of a finding that does not begin at the first bad tile, where the cursor stands at
   first: findings are in the order of the stages. */
static void site_words(const struct session *s, const struct finding *f, char *out, size_t bytes)
{
    const struct trace_site *site = finding_site(f, s->run.trace);
    const struct summary *summary = &s->run.judgement->summary;
    char place[64] = "";
    if (!f->loop && !summary->unvisited && summary->first.slot >= 0 && !place_same(f->first, summary->first))
        place_words(s, f->first, place, sizeof place);
    snprintf(out, bytes, "%s", place);
    if (site)
        snprintf(out, bytes, "%s%s%s:%d", place, place[0] ? "  " : "", path_name(site->file), site->line);
}

/* ", 7 more: L log" behind a place, or ""; where: the view that has them. */
static void add_more(size_t more, const char *where, char *out, size_t bytes)
{
    const size_t used = strlen(out);
    if (more)
        snprintf(out + used, bytes - used, "%s%zu more: %s", used ? ", " : "", more, where);
}

/* Words on the left and a place at the right end; where they have no room beside each other they wrap: a conclusion is
   never cut. */
static void row_put(struct text_flow *f, enum style style, const char *words, const char *where)
{
    const int where_cols = text_columns(where);
    char line[1536], name[2 * sizeof line];
    if (text_columns(words) + (where_cols ? where_cols + 1 : 0) > f->area.cols) {
        snprintf(line, sizeof line, "%s%s%s", words, where_cols ? "  " : "", where);
        flow_put(f, style, text_name(line, strlen(line), name, sizeof name)); /* a line feed in it is foreign */
        return;
    }
    if (f->canvas) {
        canvas_put(f->canvas, f->area, f->line, 0, style, words);
        text_right(f->canvas, f->area, f->line, STYLE_STRONG, where);
    }
    f->line++;
}

static void first_bad_put(const struct session *s, struct text_flow *f, const char *so_far, const char *where)
{
    const struct summary *summary = &s->run.judgement->summary;
    char place[64], culprits[64], words[192];
    if (summary->unvisited) {
        tile_words(s, summary->first, place, sizeof place);
        snprintf(words, sizeof words, "first skipped%s %s", so_far, place);
    } else if (summary->first.slot >= 0) {
        place_words(s, summary->first, place, sizeof place);
        culprit_words(summary->culprits, culprits, sizeof culprits);
        snprintf(words, sizeof words, "first bad%s %s   culprit %s", so_far, place, culprits);
    } else {
        return;
    }
    row_put(f, STYLE_TEXT, words, where);
}

/* The run's first event: "barrier: ...            my.cu:53, 7 more: L log". */
static void event_put(const struct session *s, struct text_flow *f)
{
    const struct trace_event *e = session_event(s);
    char words[WORDS_BYTES], where[320] = "";
    snprintf(words, sizeof words, "%s: %.*s", event_name(e->kind), (int)strcspn(e->text, "\n"), e->text);
    event_lines(e, 1, where, sizeof where);
    add_more(s->run.trace->info.n_events - 1, "L log", where, sizeof where);
    row_put(f, STYLE_WARNING, words, where);
}

/* ", 12 s left", as if the rest went as fast; "" where too little is done to tell. */
static void left_words(double seconds, double share, char *out, size_t bytes)
{
    const double left = share > 0 ? seconds * (1 - share) / share : INFINITY;
    out[0] = '\0';
    if (seconds < 1 || share < 0.02 || share >= 1)
        return;
    if (left < 90)
        snprintf(out, bytes, ", %.0f s left", ceil(left));
    else
        snprintf(out, bytes, ", %.0f min left", ceil(left / 60));
}

static void step_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs)
{
    const double seconds = vs->now > s->job.step_since ? vs->now - s->job.step_since : 0;
    int col = canvas_printf(c, area, 0, 0, STYLE_STRONG, "%s  %.1f s", runner_step_words(s->job.step), seconds) + 2;
    if (s->job.total > 0) {
        char left[32];
        const int bar_cols = col + 44 <= area.cols ? 20 : 0; /* the numbers say it as well */
        const double share = s->job.done < 0 ? 0 : s->job.done > s->job.total ? 1 : s->job.done / s->job.total;
        const int filled = (int)lround(share * bar_cols);
        for (int i = 0; i < bar_cols; i++)
            canvas_put(c, area, 0, col + i, i < filled ? STYLE_OK : STYLE_DIM, i < filled ? "█" : "░");
        left_words(seconds, share, left, sizeof left);
        canvas_printf(c, area, 0, col + bar_cols + (bar_cols > 0), STYLE_TEXT, "%.0f of %.0f%s  (x stops)", s->job.done,
                      s->job.total, left);
    } else {
        canvas_put(c, area, 0, col, STYLE_DIM, "(x stops)");
    }
    if (!s->run.judgement)
        return;
    if (s->job.phase != PHASE_JUDGING)
        canvas_put(c, area, 1, 0, STYLE_DIM, "the run shown is the one before");
    struct text_flow f = {.canvas = c, .area = area, .line = 1};
    if (s->job.phase == PHASE_JUDGING && session_event(s))
        event_put(s, &f);
    else if (s->job.phase == PHASE_JUDGING)
        first_bad_put(s, &f, " so far", "");
}

/* Of a run that does not end: where its warps stand, as many as there is room for. */
static void stands_put(const struct session *s, struct text_flow *f)
{
    const struct trace_info *info = &s->run.trace->info;
    int left = 0, rows = f->canvas ? f->area.rows - f->line : INT_MAX;
    for (size_t i = 0; i < info->n_events; i++)
        left += info->events[i].kind == EVENT_STANDS;
    for (size_t i = 0; i < info->n_events && (rows > 1 || rows == left); i++) {
        if (info->events[i].kind != EVENT_STANDS)
            continue;
        flow_cut(f, STYLE_WARNING, info->events[i].text);
        left--;
        rows--;
    }
    if (left && rows > 0 && f->canvas)
        canvas_printf(f->canvas, f->area, f->line, 0, STYLE_DIM, "%d more: L log", left);
}

static int stands_rows(const struct session *s)
{
    struct text_flow f = {.area = {0, 0, 0, 1000}};
    if (s->run.trace)
        stands_put(s, &f);
    return f.line;
}

static void error_draw_rows(const struct session *s, struct canvas *c, struct rect area)
{
    char words[700], title[64];
    if (session_failed_to_show(s)) { /* the panels give way to the whole text */
        error_title(s, title, sizeof title);
        if (s->run.trace) {
            canvas_printf(c, area, 1, 0, STYLE_TEXT, "E shows all of it; run %d is shown", s->run.number);
            snprintf(words, sizeof words, "%s: %s%s%.*s", title, s->job.err.where, s->job.err.where[0] ? ": " : "",
                     (int)strcspn(s->job.err.message, "\n"), s->job.err.message);
            canvas_put_cut(c, area, 0, 0, STYLE_BAD, words);
            return;
        }
        canvas_printf(c, area, 0, 0, STYLE_BAD, "%s%s", title,
                      s->job.err.code == ERR_CANCELLED ? ": nothing is recorded" : ": nothing was run");
        return;
    }
    /* The verdict says that it is the run's error. */
    const char *where = path_name(s->job.err.where);
    snprintf(words, sizeof words, "%s%s%.*s", where, *where ? ": " : "", (int)strcspn(s->job.err.message, "\n"),
             s->job.err.message);
    struct rect said = area;
    const int stands = stands_rows(s);
    if (stands && area.rows > 2)
        said.rows = area.rows - stands < 2 ? 2 : area.rows - stands;
    const int used = flow_fit(c, said, STYLE_BAD, words, "L log");
    const struct trace_event *e = session_event(s);
    struct text_flow f = {.canvas = c, .area = area, .line = used};
    if (used >= area.rows)
        return;
    if (stands)
        stands_put(s, &f);
    else if (e && !memmem(s->job.err.message, strlen(s->job.err.message), e->text, strcspn(e->text, "\n")))
        event_put(s, &f);
    else
        first_bad_put(s, &f, " of what was recorded", "");
}

/* "S: bit-equal to h100; U: bit-equal to h100" */
static void add_fact(void *ctx, const struct run_fact *fact)
{
    char *line = ctx;
    const size_t used = strlen(line);
    snprintf(line + used, CORES_BYTES - used, "%s%s", used ? "; " : "", fact->words);
}

/* Right values do not make a run clean: what was reported, and the first of it with all the room there is. */
static void reports_put(const struct session *s, struct text_flow *f)
{
    const struct trace_event *e = session_event(s);
    char kinds[256], words[WORDS_BYTES], where[640];
    reports_words(s->run.trace, kinds, sizeof kinds);
    snprintf(words, sizeof words, "values right, but reported: %s", kinds);
    event_lines(e, 1, where, sizeof where);
    add_more(s->run.trace->info.n_events - 1, "L log", where, sizeof where);
    row_put(f, STYLE_BAD, words, where);
    snprintf(words, sizeof words, "%s: %.*s", event_name(e->kind), (int)strcspn(e->text, "\n"), e->text);
    row_put(f, STYLE_WARNING, words, "");
}

/* Why the run came to no end, as far as its trace says; NULL: it did. */
static const char *ended_by(const struct trace *t)
{
    return t && !trace_complete(t) && t->info.status_text[0] ? t->info.status_text : NULL;
}

/* Of a clean run: what of it was looked at beside its bounds, and the keys that look at more. */
static void clean_words(const struct session *s, char *out, size_t bytes)
{
    const struct rounding_progress *scan = session_rounding(s);
    const struct rounding *found = scan ? scan->result : NULL;
    const struct checked_again *again = &s->run.judgement->checked;
    const bool checked = s->run.trace->info.checked, on_cpu = s->run.trace->info.backend == BACKEND_CPU;
    char list[64], none[64];
    unsigned clear = 0;
    for (int ch = 0; found && ch < ASC_CHANNELS; ch++)
        if (trace_has(s->run.trace, ch) && rounding_stage(found, (enum asc_channel)ch)->state == ROUNDING_NONE &&
            (ch == asc_s || ch == asc_p || ch == asc_u))
            clear |= 1u << ch;
    stage_list(found ? rounding_found(found) : 0, list, sizeof list);
    stage_list(clear, none, sizeof none);
    if (again->is == CHECKED_FOUND) {
        snprintf(out, bytes, "%s%s", again->words, on_cpu ? ": c" : "");
        return;
    }
    if (list[0])
        snprintf(out, bytes, "rounding of %s pulls to one side: B", list);
    else if (scan && scan->step)
        snprintf(out, bytes, "looking for bias (x stops)");
    else
        snprintf(out, bytes, "%s%s%s", none[0] ? "no bias in " : "bias not looked for: B", none,
                 found && found->negated ? ""
                 : none[0]               ? " (-: ask again, negated)"
                                         : "");
    const size_t used = strlen(out);
    if (checked)
        snprintf(out + used, bytes - used, "; checks clean");
    else if (session_retry_words(s)[0])
        snprintf(out + used, bytes - used, "; checks under way (x stops)");
    else if (again->is == CHECKED_CLEAN || !on_cpu)
        snprintf(out + used, bytes - used, "%s%s", again->words[0] ? "; " : "", again->words);
    else if (s->subject.has_scenario)
        snprintf(out + used, bytes - used, "; c: access checks");
}

static void quiet_put(const struct session *s, struct text_flow *f)
{
    if (s->run.judgement->complete && !s->run.judgement->summary.suspicious && reports_first(s->run.trace)) {
        reports_put(s, f);
        return;
    }
    const struct summary *summary = &s->run.judgement->summary;
    const char *ended = ended_by(s->run.trace);
    uint64_t elements = 0;
    unsigned unknown = 0;
    char list[64], rest[96], words[FACT_WORDS_BYTES], cores[CORES_BYTES] = "";
    run_facts(s->run.judgement, s->run.trace, FACT_SET(FACT_CORE) | FACT_SET(FACT_BOUND), add_fact, cores);
    if (ended)
        row_put(f, STYLE_BAD, ended, "");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        elements += summary->stage[ch].elements;
        if (summary->stage[ch].local == STAGE_UNKNOWN)
            unknown |= 1u << ch;
    }
    if (summary->unvisited) {
        snprintf(words, sizeof words, "%llu kv tiles that rows should see were never visited",
                 (unsigned long long)summary->unvisited);
        row_put(f, STYLE_BAD, words, "");
    } else if (summary->culprits) {
        stage_list(summary->culprits, list, sizeof list);
        snprintf(words, sizeof words, "%s: outside the bound", list);
        row_put(f, STYLE_BAD, words, "");
    } else if (summary->suspicious) {
        stage_list(summary->suspicious, list, sizeof list);
        snprintf(words, sizeof words, "%s: off globally, while every local check passes", list);
        row_put(f, STYLE_WARNING, words, "");
    } else if (s->run.judgement->complete && elements > 0) {
        const enum style style = trace_complete(s->run.trace) ? STYLE_OK : STYLE_WARNING;
        snprintf(words, sizeof words, "%s: %llu elements judged", judgement_quiet(s->run.judgement, s->run.trace),
                 (unsigned long long)elements);
        stage_list(unknown, list, sizeof list);
        snprintf(rest, sizeof rest, ", not judged: %s", list);
        if (unknown && text_columns(words) + text_columns(rest) <= f->area.cols) {
            if (f->canvas)
                canvas_put(f->canvas, f->area, f->line, text_columns(words), STYLE_WARNING, rest);
        } else if (unknown) {
            snprintf(words + strlen(words), sizeof words - strlen(words), "%s", rest);
        }
        row_put(f, style, words, "");
    } else {
        row_put(f, STYLE_WARNING, "nothing is judged", "");
    }
    if (ended) {
        stands_put(s, f);
        return;
    }
    if (session_event(s))
        event_put(s, f);
    else if (run_fact_first(s->run.judgement, s->run.trace, FACT_SET(FACT_LOST), words))
        row_put(f, STYLE_WARNING, words, "");
    else if (summary->suspicious && !summary->culprits)
        row_put(f, STYLE_WARNING, "a bound or a declaration is wrong", "");
    else if (!summary->culprits && run_fact_first(s->run.judgement, s->run.trace, FACT_SET(FACT_UNDECLARED), words))
        row_put(f, STYLE_WARNING, words, "");
    else if (!summary->culprits) {
        if (session_verdict(s) == RUN_IS_CLEAN) {
            clean_words(s, words, sizeof words);
            snprintf(cores + strlen(cores), sizeof cores - strlen(cores), "%s%s", cores[0] ? "; " : "", words);
        }
        row_put(f, s->run.judgement->checked.is == CHECKED_FOUND ? STYLE_WARNING : STYLE_TEXT, cores, "");
    } else
        first_bad_put(s, f, "", "");
}

static bool is_under_way(const struct session *s)
{
    return s->job.phase == PHASE_BUILDING || s->job.phase == PHASE_RUNNING || s->job.phase == PHASE_JUDGING;
}

/* A finding, its probe's line at the end if asked for. */
static void finding_put(const struct session *s, struct text_flow *to, const struct finding *f, const char *where)
{
    char words[sizeof f->text + LOST_WORDS_BYTES];
    const int where_cols = text_columns(where);
    int used = 0;
    if (!f->loop && trace_mistyped_words(s->run.trace, f->channel, words)) { /* then that is why it was never written */
        used = (int)strlen(words);
        used += snprintf(words + used, sizeof words - (size_t)used, "; ");
    }
    finding_words(f, to->area.cols - (where_cols ? where_cols + 1 : 0) - used, words + used,
                  sizeof words - (size_t)used);
    row_put(to, STYLE_BAD, words, where);
}

bool declaration_here(const struct session *s)
{
    const struct finding *f = s->run.finding;
    struct isolation_result isolated;
    return f && finding_declares(f) && !is_under_way(s) && s->job.phase != PHASE_FAILED &&
           !session_isolated(s, &isolated) && place_same(session_place(s), f->first);
}

/* "kernel.conventions.m_unit = ASC_UNIT_LOG2;          Enter inserts it, 2 more: A" */
static void declaration_put(const struct session *s, struct text_flow *f)
{
    char lines[FINDING_LINES_BYTES], words[64], more[32] = "";
    const int others = s->run.judgement->n_findings - 1;
    finding_lines(s->run.finding, lines);
    if (others > 0)
        snprintf(more, sizeof more, ", %d more: A", others);
    snprintf(words, sizeof words, "%s inserts it%s", declaration_here(s) ? "Enter" : "A Enter", more);
    row_put(f, STYLE_TEXT, lines, words);
}

/* The second one in the order of need: what happened during the run, a declaration to write, another culprit, where it
   begins. */
static void findings_put(const struct session *s, struct text_flow *f, bool roomy)
{
    const struct judgement *j = s->run.judgement;
    const struct trace_event *event = session_event(s);
    char site[320], place[32], words[256], lost[LOST_WORDS_BYTES];
    const bool dropped = !event && trace_dropped_words(s->run.trace, s->run.finding->channel, lost);
    const struct rect all = f->area;
    const char *const leads[] = {"FINDING  ", event                              ? "EVENT"
                                              : ended_by(s->run.trace)           ? "ENDED"
                                              : dropped                          ? "LOST"
                                              : finding_declares(s->run.finding) ? "DECLARE"
                                              : j->n_findings > 1                ? "FINDING"
                                                                                 : ""};
    if (roomy) {
        f->area.col += text_columns(leads[0]);
        f->area.cols -= text_columns(leads[0]);
    }
    site_words(s, s->run.finding, site, sizeof site);
    const bool with_place =
        !roomy && !event && !ended_by(s->run.trace) && (finding_declares(s->run.finding) || j->n_findings < 2);
    finding_put(s, f, s->run.finding, with_place ? "" : site);
    if (roomy && f->canvas) {
        canvas_put(f->canvas, all, 0, 0, STYLE_STRONG, leads[0]);
        canvas_put(f->canvas, all, f->line, 0, STYLE_STRONG, leads[1]);
    }
    if (event) {
        event_put(s, f);
    } else if (ended_by(s->run.trace)) {
        row_put(f, STYLE_WARNING, ended_by(s->run.trace), "");
    } else if (dropped) {
        place[0] = '\0';
        add_more((size_t)j->n_findings - 1, "A", place, sizeof place);
        row_put(f, STYLE_WARNING, lost, place);
    } else if (finding_declares(s->run.finding)) {
        declaration_put(s, f);
    } else if (j->n_findings > 1) {
        site_words(s, &j->findings[1], site, sizeof site);
        add_more((size_t)j->n_findings - 2, "A", site, sizeof site);
        finding_put(s, f, &j->findings[1], site);
    } else if (!roomy) {
        first_bad_put(s, f, "", site);
    } else if (s->run.finding->n_also > 0) {
        finding_also(s->run.finding, 0, words, sizeof words);
        site[0] = '\0';
        add_more((size_t)s->run.finding->n_also - 1, "A", site, sizeof site);
        row_put(f, STYLE_TEXT, words, site);
    }
}

/* What the isolated run shows takes the finding's place. */
static void isolation_put(const struct isolation_result *r, struct text_flow *f)
{
    char line[256], words[320];
    isolation_line(r, line, sizeof line);
    snprintf(words, sizeof words, "isolated %s: %s", r->asked->name, line);
    row_put(f, r->after->culprits ? STYLE_BAD : STYLE_OK, words, "");
    row_put(f, STYLE_DIM, "the marks above are the isolated run's; r runs the kernel as it is", "");
}

/* What is known of a run that is not under way; f->canvas NULL: its lines are counted. */
static void known_put(const struct session *s, struct text_flow *f, bool roomy)
{
    struct isolation_result isolated;
    if (session_isolated(s, &isolated))
        isolation_put(&isolated, f);
    else if (s->run.finding)
        findings_put(s, f, roomy);
    else
        quiet_put(s, f);
}

int finding_rows(const struct session *s, int cols, bool roomy)
{
    struct text_flow f = {.area = {0, 0, 0, cols}};
    if (!is_under_way(s) && s->job.phase != PHASE_FAILED && s->run.judgement)
        known_put(s, &f, roomy);
    else if (s->job.phase == PHASE_FAILED && !session_failed_to_show(s) && stands_rows(s))
        return 2 + stands_rows(s);
    return f.line;
}

void finding_draw(const struct session *s, struct canvas *c, struct rect area, bool roomy, const struct view_state *vs)
{
    if (is_under_way(s)) {
        step_draw(s, c, area, vs);
        return;
    }
    if (s->job.phase == PHASE_FAILED) {
        error_draw_rows(s, c, area);
        return;
    }
    if (!s->run.judgement) {
        canvas_put(c, area, 0, 0, STYLE_TEXT, "no run yet: press r");
        return;
    }
    static const char more[] = " A: all of it";
    struct text_flow f = {.canvas = c, .area = area};
    known_put(s, &f, roomy);
    if (f.line > area.rows) {
        const struct rect end = {area.row + area.rows - 1, area.col + area.cols - (int)sizeof more, 1, sizeof more};
        canvas_fill(c, end, STYLE_TEXT, " ");
        canvas_put(c, end, 0, 0, STYLE_DIM, "…");
        canvas_put(c, end, 0, 1, STYLE_KEY, more + 1);
    }
}
