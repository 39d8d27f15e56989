/* What begins work, and ends it. */
#include "engine/base/path.h"
#include "engine/session/common.h"
#include "engine/session/work.h"
#include <stdio.h>
#include <string.h>

void session_make_title(struct session *s)
{
    char kernel[128];
    snprintf(kernel, sizeof kernel, "%s", path_name(s->subject.scenario.kernel));
    char *dot = strrchr(kernel, '.');
    if (dot)
        *dot = '\0';
    const struct scenario *made = &s->subject.scenario;
    snprintf(s->title, sizeof s->title, "%s%s%s%s%s%s%s%s%s", kernel, *made->define ? " " : "", made->define,
             *made->flags ? " " : "", made->flags, *made->patch ? " + " : "", path_name(made->patch),
             *made->on ? " on " : "", made->on);
}

int session_start(struct session *s)
{
    int started = -1;
    if (s->subject.has_scenario && !session_busy(s)) {
        /* Before the run, so that it may use the memory of those that go. */
        runs_make_room(&s->runs, s->subject.scenario.capture.mem_bytes);
        session_make_title(s);
        s->subject.rerun_due = 0;
        started = work_run(s->work, &s->subject.paths, &s->subject.scenario);
    } else if (s->job.opened) {
        started = work_judge(s->work, s->job.opened);
        if (started == 0)
            s->job.opened = NULL;
    } else if (!s->subject.has_scenario) {
        session_say(s, SESSION_NO_KERNEL);
    }
    if (started == 0) {
        s->job.phase = s->subject.has_scenario ? PHASE_BUILDING : PHASE_JUDGING;
        s->job.err = (struct err){0};
        session_hush(s);
        s->job.made_run = 0;
    }
    return started;
}

int session_isolate(struct session *s, const struct isolation_request *request)
{
    const struct trace *run = s->run.isolation.trace ? s->run.isolation.trace : s->run.trace;
    const struct judgement *j = s->run.isolation.trace ? s->run.isolation.judgement : s->run.judgement;
    if (session_busy(s))
        return session_refuse(s, "a run is in progress: x stops it");
    if (!s->subject.has_scenario)
        return session_refuse(s, SESSION_NO_KERNEL);
    if (!run || !j || !j->complete || !trace_complete(run))
        return session_refuse(s, "there is no complete run to isolate a stage of");
    if (!isolation_channels(request->stages, run))
        return session_refuse(s, "nothing up to this stage is recorded: nothing to feed");
    s->job.isolating = *request;
    const struct scenario *made_by = session_made_by(s);
    if (!made_by)
        return session_refuse(s, "the inputs of this run are unknown: r runs it again");
    if (work_isolate(s->work, &s->subject.paths, made_by, run, &s->job.isolating) != 0)
        return session_refuse(s, "no thread could be started");
    s->job.phase = PHASE_BUILDING;
    s->job.err = (struct err){0};
    session_hush(s);
    s->job.made_run = 0;
    return 0;
}

bool session_isolated(const struct session *s, struct isolation_result *out)
{
    const struct isolation *i = &s->run.isolation;
    if (!i->trace || !s->run.judgement || !s->run.judgement->complete)
        return false;
    *out = (struct isolation_result){&i->asked, &i->judgement->summary, &s->run.judgement->summary, s->run.trace};
    return true;
}

void session_cancel(struct session *s)
{
    s->subject.rerun_due = 0;
    work_cancel(s->work);
}
