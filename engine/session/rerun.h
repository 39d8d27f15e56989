/* Runs that a saved file asks for. For session.c; the verbs are in session.h. */
#ifndef SESSION_RERUN_H
#define SESSION_RERUN_H

#include "engine/session/session.h"
#include "engine/session/watch.h"

/* Files that a build included, [n], taken over: they are watched from now on. */
void session_take_reads(struct session *s, char **reads, size_t n);
int session_take_saves(struct session *s);   /* 1: something was saved */
int session_rerun_if_due(struct session *s); /* 1: a run was started, or it could not be */
void session_free_settings(struct session *s);
void session_free_watch(struct session *s);

#endif
