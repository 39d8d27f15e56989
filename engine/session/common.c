/* What every file of the room stands on: the message, what is under way, and where the cursor is. */
#include "engine/session/common.h"

#include "engine/session/work.h"
#include "engine/verdict/reports.h"
#include <stdarg.h>
#include <stdio.h>

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

bool session_stay(struct session *s, const char *why)
{
    session_say(s, "%s", why);
    return false;
}

void session_note_lack(struct session *s, enum lack what, bool lacking)
{
    s->lacks = lacking ? s->lacks | what : s->lacks & ~(unsigned)what;
}

bool session_busy(const struct session *s)
{
    return work_busy(s->work);
}

const struct scenario *session_made_by(const struct session *s)
{
    const struct run *run = runs_shown(&s->runs);
    return run ? run->scenario : NULL;
}

int session_slot(const struct session *s)
{
    if (!s->run.trace)
        return -1;
    return trace_slot(s->run.trace, s->at.cursor.batch, s->at.cursor.head, s->at.cursor.q_tile);
}

const char *session_label(const struct session *s, enum asc_channel ch)
{
    return s->run.trace ? plan_channel_label(&s->run.trace->plan, ch) : channel_label(ch);
}

struct place session_place(const struct session *s)
{
    int kv = channel_per_kv(s->at.cursor.channel) ? s->at.cursor.kv_tile : 0;
    return (struct place){session_slot(s), kv, s->at.cursor.channel};
}

const struct trace_site *session_site(const struct session *s)
{
    return s->run.trace ? trace_site(s->run.trace, s->at.cursor.channel) : NULL;
}

const struct trace_event *session_event(const struct session *s)
{
    const int32_t at[3] = {s->at.cursor.batch, s->at.cursor.head, s->at.cursor.q_tile};
    return s->run.trace
               ? reports_shown(s->run.trace, at, channel_per_kv(s->at.cursor.channel) ? s->at.cursor.kv_tile : -1)
               : NULL;
}

bool session_at_report(const struct session *s)
{
    const int32_t at[3] = {s->at.cursor.batch, s->at.cursor.head, s->at.cursor.q_tile};
    return s->run.trace &&
           reports_at(s->run.trace, at, channel_per_kv(s->at.cursor.channel) ? s->at.cursor.kv_tile : -1) != NULL;
}

/* What was asked for last did not come to a run: what is shown is an older one, and its verdict none of this. */
static enum run_verdict failed(const struct session *s)
{
    return s->job.err.code == ERR_CANCELLED ? RUN_IS_CANCELLED
           : s->job.err.code == ERR_BUILD   ? RUN_IS_NOT_BUILT
                                            : RUN_IS_NOT_RUN;
}

enum run_verdict session_verdict(const struct session *s)
{
    if (session_busy(s) && !s->search.under_way)
        return s->job.phase == PHASE_JUDGING    ? RUN_IS_JUDGING
               : s->job.phase == PHASE_BUILDING ? RUN_IS_BUILDING
                                                : RUN_IS_RUNNING;
    if (!s->run.trace)
        return s->job.err.code == ERR_NONE        ? RUN_IS_NO_RUN
               : s->job.err.code == ERR_CANCELLED ? RUN_IS_CANCELLED
                                                  : RUN_IS_ERROR;
    return s->job.phase == PHASE_FAILED && !s->job.made_run ? failed(s) : run_verdict(s->run.trace, s->run.judgement);
}

const char *session_verdict_word(const struct session *s)
{
    return run_verdict_word(session_verdict(s));
}
