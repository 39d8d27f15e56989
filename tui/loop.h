/* The debugger on a terminal. */
#ifndef TUI_LOOP_H
#define TUI_LOOP_H

#include "engine/session/session.h"
#include "tui/theme.h"

struct tui_options {
    int ascii;                 /* 1: ASCII even where the terminal takes UTF-8 */
    const char *view;          /* the first one; NULL: overview */
    int mouse;                 /* 1: clicks and the wheel */
    const struct theme *theme; /* borrowed; NULL: the eight ANSI colours */
};

/* Runs until the user leaves. The caller has started the session's work, if any, and frees the session afterwards.
   ERR_TERMINAL: no terminal that can be used, nothing was drawn. ERR_CANCELLED: a signal or a lost terminal ended it.
 */
int tui_run(struct session *s, const struct tui_options *o, struct err *err);

#endif
