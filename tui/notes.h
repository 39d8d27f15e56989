/* A few lines above the bottom of the screen, until the next key: what a command lists. */
#ifndef TUI_NOTES_H
#define TUI_NOTES_H

#include "tui/screen/canvas.h"

enum { NOTES_MAX = 60, NOTE_BYTES = 256 };

/* Zero-initialize. */
struct notes {
    char line[NOTES_MAX][NOTE_BYTES];
    int n;
};

void notes_add(struct notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
void notes_draw(const struct notes *notes, struct canvas *c);

#endif
