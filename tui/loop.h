/* The debugger on a terminal. */
#ifndef TUI_LOOP_H
#define TUI_LOOP_H

#include "tui/recent.h"
#include "tui/screen/theme.h"
#include "tui/views/view.h"
#include <stdbool.h>

struct tui_options {
    bool ascii;                /* ASCII even where the terminal takes UTF-8 */
    enum view_id view;         /* the first one */
    bool tries;                /* access checks of a clean run, in the background */
    bool mouse;                /* clicks and the wheel */
    const struct theme *theme; /* borrowed; NULL: the eight ANSI colors */
    const char *at; /* borrowed: where the cursor goes first; NULL: where it was left, or the first bad tile */
    struct recent_entry *place; /* borrowed: how it was left; takes how it is left this time; NULL: nothing is kept */
    const char *note;           /* borrowed: said first; NULL: nothing */
};

/* Runs until the user leaves. The caller has started the session's work, if any, and frees the session afterwards.
   ERR_TERMINAL: no terminal that can be used, nothing was drawn. ERR_CANCELLED: a signal or a lost terminal ended it.
 */
int tui_run(struct session *s, const struct tui_options *o, struct err *err);

/* Without a terminal: presses the keys of a file and shows the screen after each, once all work has ended.
   shown(): what the screen is, for how many seconds, and which key led there ("": the first one). */
struct tui_playing {
    int cols, rows, colors; /* as canvas.h has them */
    bool light;
    const char *keys; /* the file */
    void (*shown)(void *ctx, const struct canvas *c, double seconds, const char *key);
    void *ctx;
};
/* ERR_INPUT: the file names no key, with its line. */
int tui_play(struct session *s, const struct tui_options *o, const struct tui_playing *p, struct err *err);

#endif
