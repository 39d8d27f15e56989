#include "engine/session/rounding_look.h"

#include "engine/session/work.h"
#include <stdio.h>

static void wake(void *ctx)
{
    work_wake(ctx);
}

int session_look_rounding(struct session *s, int negate)
{
    const struct rounding_progress *now = session_rounding(s);
    if (now && now->step)
        return negate ? session_refuse(s, "a bias search is running: x stops it") : 0;
    if (now && now->result && !negate)
        return 0;
    if (!s->trace || !s->judgement || !s->judgement->complete || !trace_complete(s->trace))
        return session_refuse(s, "there is no complete run to search for bias");
    if (s->isolation.trace)
        return session_refuse(s, "an isolated run is not searched for bias: ` goes back to the ordinary run");
    if (negate && !session_made_by(s))
        return session_refuse(s, "a saved trace cannot be run with negated inputs: open its scenario");
    if (negate && session_busy(s))
        return session_refuse(s, "a run is in progress: x stops it");
    session_hush(s);
    const struct rounding_source source = {&s->paths, session_made_by(s)};
    const int failed = s->rounding
                           ? rounding_scan_again(s->rounding, &source, negate)
                           : rounding_scan_new(s->trace, s->judgement, &source, negate, wake, s->work, &s->rounding);
    session_note_lack(s, LACK_ROUNDING, failed != 0);
    if (!failed)
        rounding_scan_collect(s->rounding);
    return failed ? session_refuse(s, "out of memory for the search for bias") : 0;
}

void session_want_rounding(struct session *s)
{
    if (!s->rounding && s->trace && s->judgement && s->judgement->complete && trace_complete(s->trace) &&
        !s->isolation.trace)
        session_look_rounding(s, 0);
}

void session_finish_rounding(struct session *s)
{
    if (s->rounding)
        rounding_scan_finish(s->rounding);
}

int session_stop_rounding(struct session *s)
{
    const struct rounding_progress *now = session_rounding(s);
    if (!now || !now->step)
        return 0;
    rounding_scan_cancel(s->rounding);
    return 1;
}

const struct rounding_progress *session_rounding(const struct session *s)
{
    return s->rounding ? rounding_scan_progress(s->rounding) : NULL;
}

const struct rounding *session_rounding_result(const struct session *s)
{
    return s->rounding ? rounding_scan_progress(s->rounding)->result : NULL;
}
