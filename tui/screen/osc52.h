/* What asks a terminal to put text on the clipboard: xterm's control sequences, "Operating System Commands", 52. */
#ifndef SCREEN_OSC52_H
#define SCREEN_OSC52_H

#include <stddef.h>

/* The bytes, owned by the caller; NULL without memory. term, tmux and screen are the variables TERM, TMUX and STY, or
   NULL: what lies between here and the terminal passes on only what is wrapped for it. */
char *osc52_sequence(const char *text, const char *term, const char *tmux, const char *screen, size_t *n);

#endif
