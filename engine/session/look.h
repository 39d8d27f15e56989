/* What is computed of the shown run on request: the laboratory's (views of formats, of the comparison and of what-if),
   and the scan for biased rounding. It belongs to that run, begins when it is asked, and goes with it. */
#ifndef SESSION_LOOK_H
#define SESSION_LOOK_H

#include "engine/session/session.h"
#include "engine/study/laboratory.h"
#include "engine/study/rounding.h"

/* wanted: set of LABORATORY_*; of the comparison that of the cursor's slot. Nothing happens without a run that has
   ended. To be asked again whenever the cursor moves: what is there already is not made again. */
void session_look(struct session *s, unsigned wanted);
/* Waits until all of it is there. */
void session_look_finish(struct session *s);
/* Scans stop, or go on. Returns 1: they stop now, 0: they go on, -1: there is none. */
int session_look_toggle(struct session *s);
/* NULL: nothing was asked of this run. */
const struct laboratory_state *session_looked(const struct session *s);
/* Of the cursor's slot, or NULL: not there yet. */
const struct comparison *session_comparison(const struct session *s);

/* One more row of what-if, by words on top of the run's own choice (whatif_parse). -1: s->message says why not. */
int session_try(struct session *s, const char *words);

/* Biased rounding. */
/* Begins a scan of the shown run where there is none yet; negate: one with runs of negated inputs, whatever was there.
   -1: s->message says why not. */
int session_look_rounding(struct session *s, bool negate);
/* Begins one as soon as the shown run is judged, where none has been begun; to be asked again. Says nothing. */
void session_want_rounding(struct session *s);
/* Waits for its end. */
void session_finish_rounding(struct session *s);
/* One was under way, and stops. */
bool session_stop_rounding(struct session *s);
/* NULL: nothing was asked of this run. */
const struct rounding_progress *session_rounding(const struct session *s);
/* Of the last scan that came to its end; NULL: none has. */
const struct rounding *session_rounding_result(const struct session *s);

/* What no formula explains, asked of a second run (retry.h). */
/* Begins one as soon as the shown run is judged, where it may say more and none has been begun; to be asked again. */
void session_want_retry(struct session *s);
/* Waits for its end, and takes over what it found. */
void session_finish_retry(struct session *s);
/* One was under way, and stops. */
bool session_stop_retry(struct session *s);
/* "running again with access checks"; "": none is under way. */
const char *session_retry_words(const struct session *s);

/* For the session itself. */
bool session_collect_look(struct session *s); /* something has changed */
void session_drop_look(struct session *s);    /* before the run goes that it is about */

#endif
