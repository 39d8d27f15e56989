/* Which of a session's runs is on the screen. For session.c. */
#ifndef SESSION_SHOW_RUN_H
#define SESSION_SHOW_RUN_H

#include "engine/session/session.h"

/* Takes a run's trace and judgement over and shows it; an isolated one beside the run it is of. The cursor stays where
   it points to something that is recorded. */
void session_adopt_run(struct session *s, struct trace *t, struct judgement *j);
/* The isolated run that is shown goes; the ordinary one is shown again. Nothing where none is. */
void session_drop_isolated(struct session *s);
/* The judgement that is being filled, or was last, with its trace; NULL: none. */
struct judgement *session_judging(const struct session *s, const struct trace **trace);
/* The work that was under way is over: err is what became of the run that it made, if it made one. */
void session_end_run(struct session *s, const struct err *err, bool made_run);
/* Sets the shown run beside the one before it again. */
void session_refresh_change(struct session *s);
void session_make_title(struct session *s);

#endif
