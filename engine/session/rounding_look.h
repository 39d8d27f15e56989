/* The session's scan for biased rounding. It belongs to the run that is shown and goes with it. */
#ifndef SESSION_ROUNDING_LOOK_H
#define SESSION_ROUNDING_LOOK_H

#include "engine/session/session.h"
#include "engine/study/rounding.h"

/* Begins a scan of the shown run where there is none yet; negate: one with runs of negated inputs, whatever was there.
   -1: s->message says why not. */
int session_look_rounding(struct session *s, int negate);
/* Begins one as soon as the shown run is judged, where none has been begun; to be asked again. Says nothing. */
void session_want_rounding(struct session *s);
/* Waits for its end. */
void session_finish_rounding(struct session *s);
/* 1: one was under way, and stops. */
int session_stop_rounding(struct session *s);
/* NULL: nothing was asked of this run. */
const struct rounding_progress *session_rounding(const struct session *s);
/* Of the last scan that came to its end; NULL: none has. */
const struct rounding *session_rounding_result(const struct session *s);

#endif
