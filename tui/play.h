/* A file of keys, for a screen that nobody sits at. A line holds keys by their names (docs/keys.md), "text that is
   typed", and at its end how long each screen stays: `Enter n n 0.8s`. `3s` alone: the screen before stays longer. `#`
   begins a comment. */
#ifndef TUI_PLAY_H
#define TUI_PLAY_H

#include "engine/base/err.h"

enum { PLAY_KEY_BYTES = 128 };
#define PLAY_STAYS_S 1.5 /* a screen of which nothing is said */

struct play_step {
    int key;                   /* KEY_ID_NONE: none, the screen before stays */
    char text[PLAY_KEY_BYTES]; /* what is typed in place of a key; "": none is. Else the key's name */
    double seconds;
};

struct play {
    struct play_step *step; /* owned */
    int n;
};

/* ERR_INPUT: "FILE:LINE: 'Entr' is no key"; *out is then empty. */
int play_read(const char *path, struct play *out, struct err *err);
void play_free(struct play *p);

#endif
