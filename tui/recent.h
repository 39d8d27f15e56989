/* The files that were open last, and where the cursor stood: $XDG_STATE_HOME/attnscope/recent, newest first. */
#ifndef TUI_RECENT_H
#define TUI_RECENT_H

#include "engine/cursor/cursor.h"

#define RECENT_MAX 20

struct recent_entry {
    char path[512];              /* absolute */
    char at[CURSOR_WORDS_BYTES]; /* "": not known */
    int split;                   /* column of the line between the overview's sides; 0: by the screen's size */
};

struct recent {
    struct recent_entry at[RECENT_MAX];
    int n;
};

/* What cannot be read is not there: nothing remembered is ever a reason not to start. */
void recent_load(struct recent *r);
const struct recent_entry *recent_find(const struct recent *r, const char *path); /* NULL: not among them */
/* Puts a file first and writes the list anew, in one step. -1: it cannot be kept; nothing is then changed. */
int recent_note(const struct recent_entry *entry);

#endif
