/* What the files of the room share beside the verbs, which are in session.h. */
#ifndef SESSION_COMMON_H
#define SESSION_COMMON_H

#include "engine/session/session.h"

/* common.c: the cursor stays where it is, for this reason. */
bool session_stay(struct session *s, const char *why); /* false */
/* There is no memory for it, or there is again. */
void session_note_lack(struct session *s, enum lack what, bool lacking);

/* step.c: it stands elsewhere now. The element stays inside the tile, the judge queue turns to where the user looks. */
bool session_moved(struct session *s); /* true */

/* start.c: the title of a run of what the session holds: kernel, macros, patch. */
void session_make_title(struct session *s);

#endif
