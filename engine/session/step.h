/* What the files of the cursor's verbs share. */
#ifndef SESSION_STEP_H
#define SESSION_STEP_H

#include "engine/session/session.h"

/* The cursor stands elsewhere now: the element stays inside the tile, the judge queue turns to where the user looks. */
int session_moved(struct session *s); /* 1 */
/* It stays where it is, for this reason. */
int session_stay(struct session *s, const char *why); /* 0 */

/* What session_update() calls while a stop condition is looked for, and once that is over. */
void session_say_seeking(struct session *s, double seconds);
void session_end_seek(struct session *s, int cancelled);
/* The run that is looked through is about to go: no thread reads it any more when this returns. */
void session_stop_seek(struct session *s);

/* To the first bad element of the cursor's tile, or the worst, as soon as the tile's values are there. */
void session_find_element(struct session *s, int worst);

#endif
