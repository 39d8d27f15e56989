#include "engine/base/clock.h"
#include "engine/base/path.h"
#include "engine/base/text.h"
#include "engine/child/stamps.h"
#include "engine/session/common.h"
#include "engine/session/look.h"
#include "engine/session/show_run.h"
#include "engine/session/tile_values.h"
#include "engine/session/watch.h"
#include "engine/session/work.h"
#include "engine/sweep/sweep.h"
#include "engine/verdict/onset.h"
#include "engine/verdict/reports.h"
#include <limits.h>
#include <poll.h>
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
    scenario_init(&s->subject.scenario);
    s->at.cursor.channel = asc_s;
    s->tile.scratch = judge_scratch_new();
    if (!s->tile.scratch || work_new(&s->work, err) != 0) {
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
    if (runner_find_paths(&s->subject.paths, err) != 0) {
        session_free(s);
        return -1;
    }
    scenario_free(&s->subject.scenario);
    s->subject.scenario = *scenario;
    s->subject.has_scenario = 1;
    *out = s;
    return 0;
}

/* "scenarios/bugs/double-scale.ini" is what attnscope brings along, where there is no such file here. */
static const char *find_file(const char *path, const char *root, char below[PATH_MAX])
{
    const int n = snprintf(below, PATH_MAX, "%s/%s", root, path);
    return path[0] != '/' && access(path, F_OK) != 0 && n < PATH_MAX && access(below, R_OK) == 0 ? below : path;
}

/* A file that session_read() takes. */
static int open_file(const char *path, struct session **out, struct err *err)
{
    struct runner_paths paths;
    struct scenario scenario;
    char below[PATH_MAX];
    *out = NULL;
    if (runner_find_paths(&paths, err) != 0)
        return -1;
    path = find_file(path, paths.root, below);
    if (session_read(path, paths.root, &scenario, err) != 0)
        return -1;
    if (session_open_adhoc(&scenario, out, err) != 0) {
        scenario_free(&scenario);
        return -1;
    }
    snprintf((*out)->subject.path, sizeof(*out)->subject.path, "%s", path);
    return 0;
}

int session_replay(struct session *s, const char *path, struct err *err)
{
    struct scenario scenario;
    char below[PATH_MAX], inputs[sizeof s->subject.path];
    const bool trace = !s->subject.has_scenario || path_ends_in(s->subject.path, ".safetensors");
    const char *from = trace ? s->subject.path : scenario_said(&s->subject.scenario, KEY_INPUT_FROM);
    if (session_busy(s))
        return err_set(err, ERR_USAGE, "", "a run is in progress: x stops it");
    if (!from)
        return err_set(err, ERR_USAGE, "", "no saved trace is open, whose inputs could be replayed");
    snprintf(inputs, sizeof inputs, "%s", from);
    if (runner_find_paths(&s->subject.paths, err) != 0)
        return -1;
    path = find_file(path, s->subject.paths.root, below);
    if (!path_ends_in(path, ".cu") && !path_ends_in(path, ".ini"))
        return err_set(err, ERR_INPUT, path, "expected a kernel (.cu) or a scenario (.ini)");
    if (access(path, R_OK) != 0)
        return err_errno(err, path, "cannot be read");
    if (session_read(path, s->subject.paths.root, &scenario, err) != 0)
        return -1;
    if (scenario_set(&scenario, "inputs.from", inputs, err) != 0 || scenario_check(&scenario, err) != 0) {
        scenario_free(&scenario);
        return -1;
    }
    scenario_free(&s->subject.scenario);
    subject_free(&s->subject);
    s->subject.has_scenario = true;
    s->subject.scenario = scenario;
    snprintf(s->subject.path, sizeof s->subject.path, "%s", path);
    s->subject.reader = (struct scenario_reader){0};
    return session_set(s, "inputs.from", inputs, err) != 0 || session_rerun(s) != 0 ? -1 : 0;
}

int session_open_scenario(const char *path, struct session **out, struct err *err)
{
    return open_file(path, out, err);
}

int session_open_again(const char *path, struct session **out, struct err *err)
{
    return open_file(path, out, err);
}

int session_revive(struct session *s)
{
    struct scenario scenario;
    struct err err;
    if (session_busy(s))
        return session_refuse(s, "a run is in progress: x stops it");
    if (runner_find_paths(&s->subject.paths, &err) != 0 ||
        session_read(s->subject.path, s->subject.paths.root, &scenario, &err) != 0) {
        session_say(s, "%.60s%s%.180s", path_name(err.where), err.where[0] ? ": " : "", err.message);
        return -1;
    }
    /* A compiler runs what its flags name: those of a file that came from elsewhere are shown first. */
    if (scenario.flags[0] && !s->subject.flags_shown) {
        session_say(s, "r again builds %.60s with the trace's flags: %.140s", path_name(scenario.kernel),
                    scenario.flags);
        s->subject.flags_shown = true;
        scenario_free(&scenario);
        return -1;
    }
    scenario_free(&s->subject.scenario);
    s->subject.scenario = scenario;
    s->subject.has_scenario = true;
    return 0;
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
    snprintf(s->subject.path, sizeof s->subject.path, "%s", path);
    s->job.opened = t;
    *out = s;
    return 0;
}

int session_open_bundle(const char *path, struct session **out, struct err *err)
{
    struct runner_paths paths;
    struct bundle_opened bundle;
    char trace[700];
    *out = NULL;
    if (runner_find_paths(&paths, err) != 0 || bundle_open(&paths, path, &bundle, err) != 0)
        return -1;
    snprintf(trace, sizeof trace, "%s/" BUNDLE_TRACE, bundle.work.folder);
    int failed;
    if (access(trace, F_OK) != 0)
        failed = err_set(err, ERR_INPUT, path, "holds no trace: its run came to none (%s)",
                         bundle.facts.error[0] ? bundle.facts.error : "its manifest does not say why");
    else
        failed = session_open_trace(trace, out, err);
    if (failed) {
        bundle_close(&bundle);
        return -1;
    }
    struct session *s = *out;
    s->bundle = bundle;
    s->subject.paths = paths;
    snprintf(s->title, sizeof s->title, "%s", path_name(path));
    return 0;
}

bool session_bundle_words(const struct session *s, char scenario[700], char *words, size_t bytes)
{
    struct scenario made;
    if (!s->bundle.open || !s->bundle.has_scenario)
        return false;
    snprintf(scenario, 700, "%s/" BUNDLE_SCENARIO, s->bundle.work.folder);
    if (session_read(scenario, s->subject.paths.root, &made, NULL) != 0)
        return false;
    snprintf(words, bytes, "Enter builds %.80s of this bundle%s%.60s%s%.60s and runs it here; Esc does not",
             path_name(made.kernel), made.define[0] ? " with " : "", made.define,
             made.flags[0] ? " and the flags " : "", made.flags);
    scenario_free(&made);
    return true;
}

enum file_kind { KIND_SCENARIO, KIND_KERNEL, KIND_TRACE, KIND_BUNDLE };

/* By suffix where it is one of ours, else by content: a trace begins with a binary length and '{'. */
static int file_kind(const char *path, enum file_kind *kind, struct err *err)
{
    unsigned char head[9] = {0};
    if (path_ends_in(path, ".ini"))
        *kind = KIND_SCENARIO;
    else if (path_ends_in(path, ".cu"))
        *kind = KIND_KERNEL;
    else if (path_ends_in(path, ".safetensors"))
        *kind = KIND_TRACE;
    else {
        FILE *file = fopen(path, "rb");
        if (!file || fread(head, 1, sizeof head, file) == 0) {
            if (file && !ferror(file))
                err_set(err, ERR_INPUT, path, "is empty");
            else
                err_errno(err, path, "cannot be read");
            if (file)
                fclose(file);
            return -1;
        }
        fclose(file);
        const bool bundle = memcmp(head, "PK\3\4", 4) == 0;
        if (head[8] != '{' && !bundle)
            return err_set(
                err, ERR_INPUT, path,
                "expected a scenario (.ini), a kernel (.cu), a saved trace (.safetensors) or a bundle (.zip)");
        *kind = bundle ? KIND_BUNDLE : KIND_TRACE;
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
    if (kind == KIND_BUNDLE)
        return session_open_bundle(path, out, err);
    return open_file(path, out, err);
}

void session_free(struct session *s)
{
    if (!s)
        return;
    session_drop_look(s);   /* which wakes the work's reader */
    session_drop_detail(s); /* as does this */
    tile_values_free(s->tile.values);
    s->tile.values = NULL;
    work_free(s->work);
    s->search.under_way = 0;
    seek_end(&s->search.seek);
    session_drop_isolated(s);
    pins_free(&s->at.pins);
    runs_free(&s->runs);
    subject_free(&s->subject);
    trace_free(s->job.opened);
    judge_scratch_free(s->tile.scratch);
    scenario_free(&s->subject.scenario);
    log_free(&s->log);
    sweep_free(s->swept);
    free(s->swept);
    bundle_close(&s->bundle);
    free(s);
}

int session_fd(const struct session *s)
{
    return s->subject.watch ? watch_fd(s->subject.watch) : work_fd(s->work);
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
        j->complete = true;
        if (j == s->run.judgement)
            s->run.finding = j->n_findings ? &j->findings[0] : NULL;
    }
    free(mail->findings);
    run_onset_free(mail->onset);
}

/* Where a run that ended early came to. */
static void go_farthest(struct session *s)
{
    struct last_stamp last;
    const int slot = runner_farthest(s->run.trace, &last);
    if (slot >= 0)
        session_go(s, (struct place){slot, last.kv < 0 ? 0 : last.kv, last.channel});
}

/* The first screen shows where it begins, or where a run ended in which nothing recorded is wrong: the cursor goes
   there once, unless the user has moved it. */
static void follow_first(struct session *s)
{
    if (!s->at.follow_first || !s->run.judgement)
        return;
    const struct summary *summary = &s->run.judgement->summary;
    const bool bad = summary->first.slot >= 0 || reports_first(s->run.trace);
    if (!bad && (!s->run.judgement->complete || trace_complete(s->run.trace)))
        return;
    /* Nobody has moved: the source stays where it stands, and so does what the last command said. */
    const int at_event = s->at.event;
    char message[sizeof s->message];
    memcpy(message, s->message, sizeof message);
    if (bad)
        session_go_first_bad(s);
    else
        go_farthest(s);
    memcpy(s->message, message, sizeof message);
    s->at.event = at_event;
    s->at.follow_first = !s->run.judgement->complete;
}

/* Anew only where more is judged: it looks at every tile. What all of them add up to comes by mail, unless the work
   ends before. */
static void sum_up(struct judgement *j, const struct trace *t, const struct mail *mail)
{
    const int done = atomic_load(&j->n_done);
    if (mail->summed) {
        j->summary = mail->summary;
        j->summarized = j->n_slots;
        j->no_summary = false;
        return;
    }
    if ((done == j->summarized && !j->no_summary) || (done == j->n_slots && !mail->finished))
        return;
    j->no_summary = judgement_summarize(j, t, NULL, &j->summary) != 0;
    j->summarized = done;
}

bool session_update(struct session *s)
{
    struct mail mail;
    const struct trace *t;
    const int saved = session_take_saves(s), looked = session_collect_look(s);
    const bool valued = tile_values_under_way(s->tile.values) != NULL;
    if (valued)
        session_refresh_detail(s);
    if (!work_collect(s->work, &mail))
        return session_rerun_if_due(s) || saved || looked || valued;
    log_take(&s->log, &mail.log);
    subject_take_reads(&s->subject, mail.reads, mail.n_reads);
    if (mail.trace)
        session_adopt_run(s, mail.trace, mail.judgement);
    s->job.made_run |= mail.trace != NULL;
    struct judgement *judging = session_judging(s, &t);
    if (judging && (!judging->complete || judging->no_summary))
        sum_up(judging, t, &mail);
    if (judging && judging->no_summary && mail.finished && mail.err.code == ERR_NONE)
        err_no_memory(&mail.err, "", "the sum of the verdicts");
    take_findings(s, &mail);
    if (mail.said[0])
        session_say(s, "%s", mail.said);
    if (!mail.sought) {
        s->job.phase = mail.phase;
        s->job.step = mail.step;
        s->job.step_since = mail.since;
        s->job.spent = mail.spent;
    }
    s->job.done = mail.done;
    s->job.total = mail.total;
    if (mail.finished && mail.sought)
        session_end_seek(s, mail.err.code == ERR_CANCELLED);
    else if (mail.finished)
        session_end_run(s, &mail.err, s->job.made_run);
    else if (s->search.under_way)
        session_say_seeking(s, clock_seconds() - s->search.since);
    follow_first(s);
    session_refresh_detail(s);
    session_rerun_if_due(s);
    return true;
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
            const int n = snprintf(line, sizeof line, "%s: %s %.0f s", s->title, runner_step_words(s->job.step),
                                   clock_seconds() - s->job.step_since);
            if (s->job.total > 0 && n < (int)sizeof line)
                snprintf(line + n, sizeof line - (size_t)n, " %.0f of %.0f", s->job.done, s->job.total);
            progress(line);
            shown = 1;
        }
    }
    if (shown)
        progress("");
    return s->job.err.code == ERR_NONE ? 0 : -1;
}

static int save(const struct trace *t, const char *path, struct err *err)
{
    struct trace saved = *t;
    saved.info.settings = scenario_settings_near(t->info.settings, path);
    const int failed = trace_save(&saved, path, err);
    free(saved.info.settings);
    return failed;
}

int session_save(const struct session *s, const char *path, struct err *err)
{
    if (!s->run.trace)
        return err_set(err, ERR_INPUT, path, "there is no run to save yet");
    if (s->run.isolation.trace)
        return err_set(err, ERR_INPUT, path, "an isolated run is not saved: its values are not the kernel's own");
    return save(s->run.trace, path, err);
}

int session_save_run(const struct session *s, int number, const char *path, struct err *err)
{
    const int i = runs_index(&s->runs, number);
    return i < 0 ? err_set(err, ERR_INPUT, path, "run %d is not kept any more", number)
                 : save(s->runs.at[i].trace, path, err);
}

void session_set_unseen(struct session *s)
{
    s->tile.unseen = true;
}

void session_set_patience(struct session *s, double seconds)
{
    s->tile.patience_s = seconds;
}

void session_set_reader(struct session *s, const struct scenario_reader *reader)
{
    s->subject.reader = *reader;
}
