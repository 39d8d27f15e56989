/* A view without a terminal. */
#ifndef TUI_SHOW_H
#define TUI_SHOW_H

#include "engine/session/session.h"
#include "tui/screen/theme.h"
#include <stdio.h>

/* Writes one view as text, as it stands on a screen of cols x rows. ERR_USAGE: no such view (the message names them)
   or an absurd size; ERR_TERMINAL: smaller than a screen must be. */
int tui_show(const struct session *s, const char *view, int cols, int rows, int ascii, FILE *out, struct err *err);
/* The same as a picture (SVG). */
int tui_picture(const struct session *s, const char *view, int cols, int rows, int ascii, const struct theme *theme,
                FILE *out, struct err *err);
const char *const *tui_view_names(void); /* NULL-terminated */

#endif
