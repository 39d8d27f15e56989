/* The signals of a program that has the terminal. Those that say something wake the loop: term_signal_fd() gives their
   numbers, a byte each. Those that end the program restore the terminal first. No curses: a handler may not call it. */
#ifndef SCREEN_TERM_SIGNALS_H
#define SCREEN_TERM_SIGNALS_H

#include <stddef.h>

/* Keeps how the terminal is now, before curses has it: so it is left by a crash. -1: errno says why. */
int term_signals_keep(void);
/* From here on; before curses, which takes over the signals that are nobody's: what is given back would be its
   handlers, and a Ctrl-C in the last moments of the program would run them on a screen that has been freed. -1: no
   pipe. */
int term_signals_take(void);
/* Capabilities (NULL or -1: not had) that a crash writes to the terminal. */
void term_signals_restore_with(const char *const restore[], size_t n);
void term_signals_give_back(void);
/* In a child: the program argv, with signals as this one found them. Returns never. */
void term_signals_become(char *const *argv);

#endif
