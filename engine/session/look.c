#include "engine/session/look.h"

#include "engine/session/common.h"
#include "engine/session/work.h"
#include "engine/study/retry.h"
#include "engine/study/rounding.h"
#include <stdio.h>

static void wake(void *ctx)
{
    work_wake(ctx);
}

static bool has_run(const struct session *s)
{
    return s->run.trace && s->run.judgement && s->job.phase >= PHASE_JUDGING;
}

static int begin(struct session *s)
{
    return s->run.laboratory ? 0 : laboratory_new(s->run.trace, wake, s->work, &s->run.laboratory);
}

void session_look(struct session *s, unsigned wanted)
{
    if (!wanted || !has_run(s))
        return;
    session_note_lack(s, LACK_LOOK, begin(s) != 0);
    if (!s->run.laboratory)
        return;
    laboratory_ask(s->run.laboratory, wanted, wanted & LABORATORY_COMPARISON ? session_slot(s) : -1);
}

void session_look_finish(struct session *s)
{
    if (s->run.laboratory)
        laboratory_finish(s->run.laboratory);
}

int session_look_toggle(struct session *s)
{
    const struct laboratory_state *state = session_looked(s);
    if (!state || (!state->total && !state->stopped && !laboratory_busy(s->run.laboratory)))
        return -1;
    const bool stop = !state->stopped;
    laboratory_stop(s->run.laboratory, stop);
    laboratory_collect(s->run.laboratory);
    return stop;
}

bool session_lacks_memory(const struct session *s)
{
    const struct laboratory_state *looked = session_looked(s);
    const struct rounding_progress *rounding = session_rounding(s);
    return s->lacks || (looked && looked->failed) || (rounding && rounding->err.code == ERR_SYSTEM);
}

const struct laboratory_state *session_looked(const struct session *s)
{
    return s->run.laboratory ? laboratory_state(s->run.laboratory) : NULL;
}

const struct comparison *session_comparison(const struct session *s)
{
    const struct laboratory_state *state = session_looked(s);
    return state && state->comparison && state->comparison->slot == session_slot(s) ? state->comparison : NULL;
}

/* What it found stands in the findings from now on. */
static bool collect_retry(struct session *s)
{
    bool changed = false;
    const struct retry *found = s->run.retry ? retry_scan_collect(s->run.retry, &changed) : NULL;
    if (found && retry_tell(found, s->run.judgement) != 0)
        session_note_lack(s, LACK_LOOK, true);
    return changed || found;
}

void session_want_retry(struct session *s)
{
    struct judgement *j = s->run.judgement;
    if (session_busy(s))
        session_stop_retry(s); /* the machine is the user's */
    if (s->run.retry || !j || j->asked_again || session_busy(s) || s->run.isolation.trace || !session_made_by(s) ||
        !retry_wanted(s->run.trace, j))
        return;
    j->asked_again = true;
    if (retry_scan_new(&s->subject.paths, session_made_by(s), s->run.trace, j, wake, s->work, &s->run.retry) != 0)
        session_note_lack(s, LACK_LOOK, true);
}

void session_finish_retry(struct session *s)
{
    if (s->run.retry)
        retry_scan_finish(s->run.retry);
    collect_retry(s);
}

bool session_stop_retry(struct session *s)
{
    const bool is_under_way = session_retry_words(s)[0] != '\0';
    if (is_under_way) {
        retry_scan_cancel(s->run.retry);
        s->run.judgement->asked_again = false; /* not to its end */
    }
    return is_under_way;
}

const char *session_retry_words(const struct session *s)
{
    return s->run.retry ? runner_step_words(retry_scan_step(s->run.retry)) : "";
}

bool session_collect_look(struct session *s)
{
    const bool rounded = s->run.rounding && rounding_scan_collect(s->run.rounding), again = collect_retry(s);
    return (s->run.laboratory && laboratory_collect(s->run.laboratory)) || rounded || again;
}

void session_drop_look(struct session *s)
{
    laboratory_free(s->run.laboratory);
    s->run.laboratory = NULL;
    rounding_scan_free(s->run.rounding);
    s->run.rounding = NULL;
    retry_scan_free(s->run.retry);
    s->run.retry = NULL;
}

int session_try(struct session *s, const char *words)
{
    struct whatif_choice choice;
    char bad[32];
    if (!has_run(s))
        return session_refuse(s, "there is no run to ask this of yet");
    if (begin(s) != 0)
        return session_refuse(s, "out of memory for the prediction");
    whatif_of_run(s->run.trace, &choice);
    if (whatif_parse(words, &choice, bad) != 0) {
        session_say(s, "'%s' is not one of e4m3 e5m2 u8 f16 bf16 [qkvp]= tensor head rows:N xN offset:N factor:N", bad);
        return -1;
    }
    return laboratory_try(s->run.laboratory, &choice) == 0 ? 0 : session_refuse(s, "there is no room for one more row");
}

int session_look_rounding(struct session *s, bool negate)
{
    const struct rounding_progress *now = session_rounding(s);
    if (now && now->step)
        return negate ? session_refuse(s, "a bias search is running: x stops it") : 0;
    if (now && now->result && !negate)
        return 0;
    if (!s->run.trace || !s->run.judgement || !s->run.judgement->complete || !trace_complete(s->run.trace))
        return session_refuse(s, "there is no complete run to search for bias");
    if (s->run.isolation.trace)
        return session_refuse(s, "an isolated run is not searched for bias: ` goes back to the ordinary run");
    if (negate && !session_made_by(s))
        return session_refuse(s, SESSION_NO_KERNEL);
    if (negate && session_busy(s))
        return session_refuse(s, "a run is in progress: x stops it");
    if (negate)
        session_hush(s);
    const struct rounding_source source = {&s->subject.paths, session_made_by(s)};
    const int failed = s->run.rounding ? rounding_scan_again(s->run.rounding, &source, negate)
                                       : rounding_scan_new(s->run.trace, s->run.judgement, &source, negate, wake,
                                                           s->work, &s->run.rounding);
    session_note_lack(s, LACK_ROUNDING, failed != 0);
    if (!failed)
        rounding_scan_collect(s->run.rounding);
    return failed ? session_refuse(s, "out of memory for the search for bias") : 0;
}

void session_want_rounding(struct session *s)
{
    if (!s->run.rounding && s->run.trace && s->run.judgement && s->run.judgement->complete &&
        trace_complete(s->run.trace) && !s->run.isolation.trace)
        session_look_rounding(s, false);
}

void session_finish_rounding(struct session *s)
{
    if (s->run.rounding)
        rounding_scan_finish(s->run.rounding);
}

bool session_stop_rounding(struct session *s)
{
    const struct rounding_progress *now = session_rounding(s);
    if (!now || !now->step)
        return false;
    rounding_scan_cancel(s->run.rounding);
    return true;
}

const struct rounding_progress *session_rounding(const struct session *s)
{
    return s->run.rounding ? rounding_scan_progress(s->run.rounding) : NULL;
}

const struct rounding *session_rounding_result(const struct session *s)
{
    return s->run.rounding ? rounding_scan_progress(s->run.rounding)->result : NULL;
}
