/* A view without a terminal. */
#ifndef TUI_SHOW_H
#define TUI_SHOW_H

#include "tui/screen/theme.h"
#include "tui/views/view.h"
#include <stdio.h>

/* Writes one view as text, as it stands on a screen of cols x rows. ERR_USAGE: an absurd size; ERR_TERMINAL:
   smaller than a screen must be. */
int tui_show(const struct session *s, enum view_id view, int cols, int rows, bool ascii, FILE *out, struct err *err);
/* The same as a picture (SVG). */
int tui_picture(const struct session *s, enum view_id view, int cols, int rows, bool ascii, const struct theme *theme,
                FILE *out, struct err *err);
/* The screens that the keys of a file lead to (loop.h): as an SVG that moves, the keys below each, or of the last one
   as text. */
struct tui_script {
    const char *keys; /* the file */
    int cols, rows;
    bool ascii, moves;
    const struct theme *theme; /* of the SVG */
};
int tui_show_script(struct session *s, enum view_id view, const struct tui_script *script, FILE *out, struct err *err);

#endif
