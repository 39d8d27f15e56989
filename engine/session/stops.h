/* The stop conditions, and looking for where they hold. The verbs are in session.h. */
#ifndef SESSION_STOPS_H
#define SESSION_STOPS_H

#include "engine/cursor/seek.h"

struct session;

struct stop_search {
    struct stop stops[STOPS_MAX]; /* [n] */
    int n;
    struct seek seek; /* the last search for one of them */
    bool under_way;
    int left;     /* hits to go on from */
    double since; /* monotonic seconds */
};

/* What session_update() calls while one is looked for, and once that is over. */
void session_say_seeking(struct session *s, double seconds);
void session_end_seek(struct session *s, bool cancelled);
/* The run that is looked through is about to go: no thread reads it any more when this returns. */
void session_stop_seek(struct session *s);

#endif
