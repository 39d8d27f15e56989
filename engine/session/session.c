#include "engine/session/session.h"

#include "engine/base/clock.h"
#include "engine/base/path.h"
#include "engine/base/text.h"
#include "engine/child/stamps.h"
#include "engine/session/look.h"
#include "engine/session/rerun.h"
#include "engine/session/show_run.h"
#include "engine/session/step.h"
#include "engine/session/tile_values.h"
#include "engine/session/work.h"
#include "engine/verdict/onset.h"
#include "engine/verdict/reports.h"
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int new_session(struct session **out, struct err *err)
{
    struct session *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return err_no_memory(err, "", "the session");
    scenario_init(&s->scenario);
    s->cursor.channel = asc_s;
    s->scratch = judge_scratch_new();
    if (!s->scratch || work_new(&s->work, err) != 0) {
        session_free(s);
        return err && err->code != ERR_NONE ? -1 : err_no_memory(err, "", "the session");
    }
    *out = s;
    return 0;
}

int session_open_adhoc(const struct scenario *scenario, struct session **out, struct err *err)
{
    struct session *s;
    if (new_session(&s, err) != 0)
        return -1;
    if (runner_find_paths(&s->paths, err) != 0) {
        session_free(s);
        return -1;
    }
    scenario_free(&s->scenario);
    s->scenario = *scenario;
    s->has_scenario = 1;
    *out = s;
    return 0;
}

static int check_cause(const struct scenario *scenario, struct err *err)
{
    char where[600], name[64];
    for (int i = 0; scenario_listed(scenario->expect.cause, i, name); i++) {
        if (cause_from_name(name) >= 0)
            continue;
        snprintf(where, sizeof where, "%s:%d: expect.cause", scenario->path, scenario->expect.line_of_expect);
        return err_set(err, ERR_INPUT, where, "expected a name that `attnscope docs causes` lists, found '%s'", name);
    }
    return 0;
}

static int has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

int session_read(const char *path, const char *root, struct scenario *out, struct err *err)
{
    if (has_suffix(path, ".cu")) {
        scenario_init(out);
        snprintf(out->kernel, sizeof out->kernel, "%s", path);
        return 0;
    }
    if (scenario_read(path, root, out, err) != 0)
        return -1;
    if (check_cause(out, err) == 0)
        return 0;
    scenario_free(out);
    return -1;
}

/* A file that session_read() takes. */
static int open_file(const char *path, struct session **out, struct err *err)
{
    struct runner_paths paths;
    struct scenario scenario;
    *out = NULL;
    if (runner_find_paths(&paths, err) != 0 || session_read(path, paths.root, &scenario, err) != 0)
        return -1;
    if (session_open_adhoc(&scenario, out, err) != 0) {
        scenario_free(&scenario);
        return -1;
    }
    snprintf((*out)->path, sizeof(*out)->path, "%s", path);
    return 0;
}

int session_open_scenario(const char *path, struct session **out, struct err *err)
{
    return open_file(path, out, err);
}

int session_open_trace(const char *path, struct session **out, struct err *err)
{
    struct trace *t;
    struct session *s;
    *out = NULL;
    if (trace_open(path, &t, err) != 0)
        return -1;
    if (new_session(&s, err) != 0) {
        trace_free(t);
        return -1;
    }
    snprintf(s->title, sizeof s->title, "%s", path_name(path));
    snprintf(s->path, sizeof s->path, "%s", path);
    s->opened = t;
    *out = s;
    return 0;
}

enum file_kind { KIND_SCENARIO, KIND_KERNEL, KIND_TRACE };

/* By suffix where it is one of ours, else by content: a trace begins with a binary length and '{'. */
static int file_kind(const char *path, enum file_kind *kind, struct err *err)
{
    unsigned char head[9] = {0};
    if (has_suffix(path, ".ini"))
        *kind = KIND_SCENARIO;
    else if (has_suffix(path, ".cu"))
        *kind = KIND_KERNEL;
    else if (has_suffix(path, ".safetensors"))
        *kind = KIND_TRACE;
    else {
        FILE *file = fopen(path, "rb");
        if (!file || fread(head, 1, sizeof head, file) == 0) {
            err_errno(err, path, "cannot be read");
            if (file)
                fclose(file);
            return -1;
        }
        fclose(file);
        if (head[8] != '{')
            return err_set(err, ERR_INPUT, path,
                           "expected a scenario (.ini), a kernel (.cu) or a saved trace (.safetensors)");
        *kind = KIND_TRACE;
    }
    return 0;
}

int session_open(const char *path, struct session **out, struct err *err)
{
    enum file_kind kind;
    *out = NULL;
    if (file_kind(path, &kind, err) != 0)
        return -1;
    if (kind == KIND_TRACE)
        return session_open_trace(path, out, err);
    return open_file(path, out, err);
}

void session_free(struct session *s)
{
    if (!s)
        return;
    session_drop_look(s);   /* which wakes the work's reader */
    session_drop_detail(s); /* as does this */
    tile_values_free(s->tile_values);
    s->tile_values = NULL;
    work_free(s->work);
    s->seeking = 0;
    seek_end(&s->seek);
    session_drop_isolated(s);
    pins_free(&s->pins);
    runs_free(&s->runs);
    session_free_watch(s);
    session_free_settings(s);
    trace_free(s->opened);
    judge_scratch_free(s->scratch);
    scenario_free(&s->scenario);
    for (size_t i = 0; i < s->n_log; i++)
        free(s->log[i]);
    free(s->log);
    free(s);
}

void session_say(struct session *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->message, sizeof s->message, format, args);
    va_end(args);
}

void session_hush(struct session *s)
{
    s->message[0] = '\0';
}

int session_refuse(struct session *s, const char *why)
{
    session_say(s, "%s", why);
    return -1;
}

int session_start(struct session *s)
{
    int started = -1;
    if (s->has_scenario && !session_busy(s)) {
        /* Before the run, so that it may use the memory of those that go. */
        runs_make_room(&s->runs, s->scenario.capture.mem_bytes);
        session_make_title(s);
        s->rerun_due = 0;
        started = work_run(s->work, &s->paths, &s->scenario);
    } else if (s->opened) {
        started = work_judge(s->work, s->opened);
        if (started == 0)
            s->opened = NULL;
    } else if (!s->has_scenario) {
        session_say(s, "a saved trace cannot be rerun: open its scenario");
    }
    if (started == 0) {
        s->phase = s->has_scenario ? PHASE_BUILDING : PHASE_JUDGING;
        s->err = (struct err){0};
        session_hush(s);
        s->made_run = 0;
    }
    return started;
}

int session_isolate(struct session *s, const struct isolation_request *request)
{
    const struct trace *run = s->isolation.trace ? s->isolation.trace : s->trace;
    const struct judgement *j = s->isolation.trace ? s->isolation.judgement : s->judgement;
    if (session_busy(s))
        return session_refuse(s, "a run is in progress: x stops it");
    if (!s->has_scenario)
        return session_refuse(s, "a saved trace cannot be rerun: open its scenario");
    if (!run || !j || !j->complete || !trace_complete(run))
        return session_refuse(s, "there is no complete run to isolate a stage of");
    if (!isolation_channels(request->stages, run))
        return session_refuse(s, "nothing up to this stage is recorded: nothing to feed");
    s->isolating = *request;
    const struct scenario *made_by = session_made_by(s);
    if (!made_by)
        return session_refuse(s, "the inputs of this run are unknown: r runs it again");
    if (work_isolate(s->work, &s->paths, made_by, run, &s->isolating) != 0)
        return session_refuse(s, "no thread could be started");
    s->phase = PHASE_BUILDING;
    s->err = (struct err){0};
    session_hush(s);
    s->made_run = 0;
    return 0;
}

int session_isolated(const struct session *s, struct isolation_result *out)
{
    const struct isolation *i = &s->isolation;
    if (!i->trace || !s->judgement || !s->judgement->complete)
        return 0;
    *out = (struct isolation_result){&i->asked, &i->judgement->summary, &s->judgement->summary, s->trace};
    return 1;
}

void session_cancel(struct session *s)
{
    s->rerun_due = 0;
    work_cancel(s->work);
}

int session_fd(const struct session *s)
{
    return s->watch ? watch_fd(s->watch) : work_fd(s->work);
}

int session_busy(const struct session *s)
{
    return work_busy(s->work);
}

/* Takes the lines over; of a kernel that prints without end the newest LOG_LINES_MAX are kept. */
static void append_log(struct session *s, char **lines, size_t n)
{
    char **log = n ? realloc(s->log, (s->n_log + n) * sizeof *log) : NULL;
    if (log)
        s->log = log;
    for (size_t i = 0; i < n; i++) {
        if (log)
            s->log[s->n_log++] = lines[i];
        else
            free(lines[i]);
    }
    free(lines);
    if (s->n_log > LOG_LINES_MAX) {
        const size_t gone = s->n_log - LOG_LINES_MAX;
        for (size_t i = 0; i < gone; i++)
            free(s->log[i]);
        memmove(s->log, s->log + gone, LOG_LINES_MAX * sizeof *s->log);
        s->n_log = LOG_LINES_MAX;
    }
}

static void take_findings(struct session *s, struct mail *mail)
{
    const struct trace *t;
    struct judgement *j = session_judging(s, &t);
    if (mail->complete && j) {
        memcpy(j->findings, mail->findings, (size_t)mail->n_findings * sizeof *j->findings);
        j->n_findings = mail->n_findings;
        j->state_break = mail->state_break;
        j->onset = mail->onset;
        mail->onset = NULL;
        j->complete = 1;
        if (j == s->judgement)
            s->finding = j->n_findings ? &j->findings[0] : NULL;
    }
    free(mail->findings);
    run_onset_free(mail->onset);
}

/* Where a run that ended early came to. */
static void go_farthest(struct session *s)
{
    struct last_stamp last;
    const int slot = runner_farthest(s->trace, &last);
    if (slot >= 0)
        session_go(s, (struct place){slot, last.kv < 0 ? 0 : last.kv, last.channel});
}

/* The first screen shows where it begins, or where a run ended in which nothing recorded is wrong: the cursor goes
   there once, unless the user has moved it. */
static void follow_first(struct session *s)
{
    if (!s->follow_first || !s->judgement)
        return;
    const struct summary *summary = &s->judgement->summary;
    const int bad = summary->first.slot >= 0 || reports_first(s->trace);
    if (!bad && (!s->judgement->complete || trace_complete(s->trace)))
        return;
    /* Nobody has moved: the source stays where it stands, and so does what the last command said. */
    const int at_event = s->at_event;
    char message[sizeof s->message];
    memcpy(message, s->message, sizeof message);
    if (bad)
        session_go_first_bad(s);
    else
        go_farthest(s);
    memcpy(s->message, message, sizeof message);
    s->at_event = at_event;
    s->follow_first = !s->judgement->complete;
}

/* Anew only where more is judged: it looks at every tile. */
static void sum_up(struct judgement *j, const struct trace *t)
{
    const int done = atomic_load(&j->n_done);
    if (done == j->summarized && !j->no_summary)
        return;
    j->no_summary = judgement_summarize(j, t, &j->summary) != 0;
    j->summarized = done;
}

int session_update(struct session *s)
{
    struct mail mail;
    const struct trace *t;
    const int saved = session_take_saves(s), looked = session_collect_look(s);
    const int valued = tile_values_under_way(s->tile_values) != NULL;
    if (valued)
        session_refresh_detail(s);
    if (!work_collect(s->work, &mail))
        return session_rerun_if_due(s) || saved || looked || valued;
    s->n_remarks += mail.n_remarks;
    s->fresh_remarks |= mail.fresh;
    append_log(s, mail.log, mail.n_log);
    session_take_reads(s, mail.reads, mail.n_reads);
    if (mail.trace)
        session_adopt_run(s, mail.trace, mail.judgement);
    s->made_run |= mail.trace != NULL;
    struct judgement *judging = session_judging(s, &t);
    if (judging && (!judging->complete || judging->no_summary))
        sum_up(judging, t);
    if (judging && judging->no_summary && mail.finished && mail.err.code == ERR_NONE)
        err_no_memory(&mail.err, "", "the sum of the verdicts");
    take_findings(s, &mail);
    if (!mail.sought) {
        s->phase = mail.phase;
        s->step = mail.step;
        s->step_since = mail.since;
    }
    s->done = mail.done;
    s->total = mail.total;
    if (mail.finished && mail.sought)
        session_end_seek(s, mail.err.code == ERR_CANCELLED);
    else if (mail.finished)
        session_end_run(s, &mail.err, s->made_run);
    else if (s->seeking)
        session_say_seeking(s, clock_seconds() - s->seek_since);
    follow_first(s);
    session_refresh_detail(s);
    session_rerun_if_due(s);
    return 1;
}

int session_finish(struct session *s, void (*progress)(const char *line))
{
    double begun = clock_seconds();
    int shown = 0;
    while (session_busy(s)) {
        struct pollfd fd = {.fd = session_fd(s), .events = POLLIN};
        poll(&fd, 1, 200);
        session_update(s);
        if (progress && clock_seconds() - begun > 1 && session_busy(s)) {
            char line[256];
            const int n = snprintf(line, sizeof line, "%s: %s %.0f s", s->title, runner_step_words(s->step),
                                   clock_seconds() - s->step_since);
            if (s->total > 0 && n < (int)sizeof line)
                snprintf(line + n, sizeof line - (size_t)n, " %.0f of %.0f", s->done, s->total);
            progress(line);
            shown = 1;
        }
    }
    if (shown)
        progress("");
    return s->err.code == ERR_NONE ? 0 : -1;
}

int session_save(const struct session *s, const char *path, struct err *err)
{
    if (!s->trace)
        return err_set(err, ERR_INPUT, path, "there is no run to save yet");
    if (s->isolation.trace)
        return err_set(err, ERR_INPUT, path, "an isolated run is not saved: its values are not the kernel's own");
    return trace_save(s->trace, path, err);
}

int session_save_run(const struct session *s, int number, const char *path, struct err *err)
{
    const int i = runs_index(&s->runs, number);
    return i < 0 ? err_set(err, ERR_INPUT, path, "run %d is not kept any more", number)
                 : trace_save(s->runs.at[i].trace, path, err);
}

const struct trace_event *session_event(const struct session *s)
{
    const int32_t at[3] = {s->cursor.batch, s->cursor.head, s->cursor.q_tile};
    return s->trace ? reports_shown(s->trace, at, channel_per_kv(s->cursor.channel) ? s->cursor.kv_tile : -1) : NULL;
}

int session_at_report(const struct session *s)
{
    const int32_t at[3] = {s->cursor.batch, s->cursor.head, s->cursor.q_tile};
    return s->trace && reports_at(s->trace, at, channel_per_kv(s->cursor.channel) ? s->cursor.kv_tile : -1) != NULL;
}
