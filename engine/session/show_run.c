#include "engine/session/show_run.h"

#include "engine/base/path.h"
#include "engine/session/common.h"
#include "engine/session/look.h"
#include "engine/session/work.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void session_refresh_change(struct session *s)
{
    const struct run *shown = runs_shown(&s->runs);
    s->run.change = (struct change){0};
    if (shown && !s->run.isolation.trace)
        change_find(runs_before(&s->runs, shown), shown, &s->run.change);
}

void session_drop_isolated(struct session *s)
{
    if (!s->run.isolation.trace)
        return;
    session_stop_seek(s);
    session_drop_detail(s);
    session_drop_look(s);
    judgement_free(s->run.judgement);
    trace_free(s->run.trace);
    s->run.trace = s->run.isolation.trace;
    s->run.judgement = s->run.isolation.judgement;
    s->run.finding = NULL;
    s->run.isolation = (struct isolation){0};
}

/* The recorded stage nearest to the cursor's, scores before all others. */
static enum asc_channel nearest_stage(const struct trace *t, enum asc_channel from)
{
    for (int distance = 0; distance < ASC_CHANNELS; distance++)
        for (int side = 1; side >= -1; side -= 2) {
            const int ch = (int)from + side * distance;
            if (ch >= 0 && ch < ASC_CHANNELS && trace_has(t, ch))
                return (enum asc_channel)ch;
        }
    return from;
}

/* A new run takes the place of the last one, which keeps what is said of it. */
static void show_new(struct session *s, struct trace *t, struct judgement *j)
{
    const int old = runs_index(&s->runs, s->runs.shown);
    if (old >= 0) {
        s->runs.at[old].finding = s->run.finding;
        s->runs.at[old].at_event = s->at.event;
    }
    if (s->subject.has_scenario)
        session_make_title(s);
    struct run *run = runs_add(&s->runs, t, j, s->title);
    s->run.number = s->runs.shown;
    if (!s->subject.has_scenario)
        run->saved = strdup(s->subject.path);
    run->scenario = s->subject.has_scenario ? calloc(1, sizeof *run->scenario) : NULL;
    if (run->scenario && scenario_copy(&s->subject.scenario, run->scenario) != 0) {
        free(run->scenario);
        run->scenario = NULL;
    }
}

/* An isolated run is compared with the ordinary one before it. */
static void show_isolated(struct session *s)
{
    session_drop_isolated(s); /* an earlier one */
    s->run.isolation.trace = s->run.trace;
    s->run.isolation.judgement = s->run.judgement;
    s->run.isolation.asked = s->job.isolating;
    const size_t used = strlen(s->title);
    snprintf(s->title + used, sizeof s->title - used, ", %s isolated", s->run.isolation.asked.name);
}

void session_adopt_run(struct session *s, struct trace *t, struct judgement *j)
{
    struct cursor *c = &s->at.cursor;
    s->at.follow_first = s->runs.made == 0;
    session_drop_detail(s);
    session_drop_look(s);
    if (t->fed) {
        snprintf(s->title, sizeof s->title, "%s", runs_shown(&s->runs)->title);
        show_isolated(s);
    } else {
        session_drop_isolated(s);
        show_new(s, t, j);
    }
    s->run.finding = NULL;
    s->run.trace = t;
    s->run.judgement = j;
    session_refresh_change(s);
    if (session_slot(s) < 0 || c->kv_tile >= t->layout.kv_tiles) {
        const int32_t *place = trace_slot_place(t, 0);
        *c = (struct cursor){.batch = place[0], .head = place[1], .q_tile = place[2], .channel = c->channel};
        s->at.follow_first = 1;
    }
    c->channel = nearest_stage(t, c->channel);
    /* A trap on a NaN or an infinity mostly tells of a consequence: where it begins is for the verdicts to say. */
    const struct trace_event *event = session_event(s);
    s->at.event = event && event->line > 0 && !event_is_of_numbers(event->kind);
    work_prefer(s->work, session_slot(s));
}

struct judgement *session_judging(const struct session *s, const struct trace **trace)
{
    const struct run *newest = runs_newest(&s->runs);
    if (s->run.isolation.trace || !newest) {
        *trace = s->run.trace;
        return s->run.judgement;
    }
    *trace = newest->trace;
    return newest->judgement;
}

void session_end_run(struct session *s, const struct err *err, bool made_run)
{
    s->job.err = *err;
    if (made_run && !s->run.isolation.trace && s->runs.n) {
        struct run *newest = &s->runs.at[s->runs.n - 1];
        err_keep(&newest->err, err);
        if (newest->judgement->complete)
            run_measure(newest);
        err_recall(&runs_shown(&s->runs)->err, &s->job.err);
    }
    s->job.phase = s->job.err.code == ERR_NONE ? PHASE_READY : PHASE_FAILED;
    session_refresh_change(s);
}

static int within(int value, int count)
{
    return value < 0 ? 0 : value >= count ? count - 1 : value;
}

/* The place stays, recorded or not, as far as the run's problem has it. */
static void keep_cursor(struct session *s)
{
    const struct trace *t = s->run.trace;
    struct cursor *c = &s->at.cursor;
    c->batch = within(c->batch, t->problem.batch);
    c->head = within(c->head, t->problem.heads);
    c->q_tile = within(c->q_tile, t->layout.q_tiles);
    c->kv_tile = within(c->kv_tile, t->layout.kv_tiles);
    c->row = within(c->row, channel_rows(c->channel, &t->plan));
    c->col = within(c->col, channel_cols(c->channel, &t->plan, &t->problem));
}

int session_show_run(struct session *s, int number)
{
    const int i = runs_index(&s->runs, number), old = runs_index(&s->runs, s->runs.shown);
    if (i < 0)
        return session_refuse(s, "this run is not kept any more");
    if (s->run.isolation.trace && session_busy(s) && !s->run.judgement->complete)
        return session_refuse(s, "the isolated run is being judged: x stops it");
    session_stop_seek(s);
    if (s->run.isolation.trace) {
        session_drop_isolated(s);
    } else if (old >= 0) {
        s->runs.at[old].finding = s->run.finding;
        s->runs.at[old].at_event = s->at.event;
    }
    session_drop_detail(s);
    session_drop_look(s);
    const struct run *run = &s->runs.at[i];
    if (number != s->runs.shown)
        s->runs.before = s->runs.shown;
    s->runs.shown = s->run.number = number;
    s->run.trace = run->trace;
    s->run.judgement = run->judgement;
    s->run.finding = run->finding ? run->finding : run->judgement->n_findings ? &run->judgement->findings[0] : NULL;
    s->at.event = run->at_event;
    s->at.follow_first = 0;
    snprintf(s->title, sizeof s->title, "%s", run->title);
    if (!session_busy(s)) {
        s->job.made_run = 1; /* what is said of a failure is this run's */
        err_recall(&run->err, &s->job.err);
        s->job.phase = run->err.code == ERR_NONE ? PHASE_READY : PHASE_FAILED;
    }
    session_hush(s);
    keep_cursor(s);
    session_refresh_change(s);
    session_refresh_detail(s);
    return 0;
}

int session_flip(struct session *s)
{
    const struct run *other = runs_other(&s->runs);
    if (s->run.isolation.trace) /* back to what it is an isolated run of */
        return session_show_run(s, s->runs.shown);
    if (!other)
        return session_refuse(s, s->subject.has_scenario ? "there is no other run yet: r runs it again"
                                                         : "there is no other run");
    return session_show_run(s, other->number);
}

int session_name_run(struct session *s, int number, const char *name)
{
    const int i = runs_index(&s->runs, number);
    if (i < 0)
        return session_refuse(s, "this run is not kept any more");
    snprintf(s->runs.at[i].name, sizeof s->runs.at[i].name, "%s", name);
    return 0;
}

void session_note_saved(struct session *s, int number, const char *path)
{
    const int i = runs_index(&s->runs, number);
    if (i < 0)
        return;
    free(s->runs.at[i].saved);
    s->runs.at[i].saved = strdup(path);
}
