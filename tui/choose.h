/* A list to choose from, on a terminal. */
#ifndef TUI_CHOOSE_H
#define TUI_CHOOSE_H

#include "tui/loop.h"

/* The index of the chosen line, or -1: none was. ERR_TERMINAL where there is no terminal that can be used; *err is
   ERR_NONE where the user left. */
int tui_choose(const char *title, const char *const *lines, int n, const struct tui_options *o, struct err *err);

#endif
