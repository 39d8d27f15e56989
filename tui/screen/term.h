/* The terminal. The only module with curses. */
#ifndef SCREEN_TERM_H
#define SCREEN_TERM_H

#include "engine/base/err.h"
#include "tui/screen/canvas.h"
#include "tui/screen/theme.h"
#include <stdbool.h>

/* What term_read() returns besides keys (actions.h). */
enum term_event {
    TERM_NOTHING = -1,
    TERM_RESIZED = -2,
    TERM_INTERRUPTED = -3, /* SIGINT from outside */
    TERM_ENDED = -4,       /* SIGTERM, SIGHUP, or the terminal is gone */
    TERM_MOUSE = -5        /* term_mouse() says what */
};

enum mouse_kind { MOUSE_PRESS, MOUSE_DRAG, MOUSE_RELEASE, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN };
struct mouse {
    enum mouse_kind kind; /* the left button, or the wheel */
    int row, col;         /* from 0 */
};

struct term_options {
    /* NULL: none. Where its background is not known the terminal is asked, and it looks as it should once that has
       answered. */
    const struct theme *theme;
    bool mouse; /* clicks and the wheel come here, where the terminal has them */
};

/* 1 if the locale's characters are UTF-8. Sets LC_CTYPE from the environment; numbers stay as in C. */
bool term_utf8(void);

/* Takes the terminal over, without which term_draw() and term_read() are not to be called, and all else does as much
   as it can; ERR_TERMINAL where there is none that can be used. From here to term_stop() the terminal is
   restored on exit() and when a signal ends the program. */
int term_start(const struct term_options *o, struct err *err);
void term_stop(void); /* restores it; legal at any time */

/* What a canvas may use: 0, 256 or COLORS_ALL. */
int term_colors(void);
bool term_light(void); /* the background is, as far as is known */
void term_size(int *cols, int *rows);
/* A key, an event, or TERM_NOTHING. Never waits. */
int term_read(void);
const struct mouse *term_mouse(void); /* after TERM_MOUSE */
int term_fd(void);                    /* readable when a key waits */
int term_signal_fd(void);             /* readable when an event waits */
int term_signal(void);                /* the signal behind TERM_ENDED; 0: the terminal closed */

void term_draw(const struct canvas *c);
void term_redraw_all(void); /* the next term_draw() trusts nothing that is on the screen */
/* Runs a program on the terminal and waits for its end; *status as of waitpid(). -1: no process could be made. */
int term_run(char *const *argv, int *status);
/* Asks the terminal (OSC 52) to put text on the clipboard, through tmux and screen as well. Whether it does is not
   known: terminals do not answer. */
void term_copy(const char *text);
/* What is written to standard error if the program crashes while the screen is its own; copied. */
void term_last_words(const char *text);
void term_suspend(void); /* back to the shell; returns when the shell says so */

#endif
