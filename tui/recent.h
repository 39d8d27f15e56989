/* What is remembered of the files that were open last: how they were run, where the user stood, marks, pins and stop
   conditions. $XDG_STATE_HOME/attnscope/recent, newest first. */
#ifndef TUI_RECENT_H
#define TUI_RECENT_H

#include "engine/cursor/cursor.h"

#define RECENT_MAX 20

struct session;

struct recent_entry {
    char path[512];              /* absolute */
    char set[1536];              /* "KEY=VALUE" lines: what was said over the file */
    char at[CURSOR_WORDS_BYTES]; /* "": not known */
    int split;                   /* column of the line between the overview's sides; 0: by the screen's size */
    char kept[4096];             /* "mark a PLACE", "pin PLACE", "stop CONDITION", a line each */
};

struct recent {
    struct recent_entry at[RECENT_MAX];
    int n;
    int damaged; /* the first line that makes no sense, and is passed over; 0: none */
};

/* What cannot be read is not there: nothing remembered is ever a reason not to start. */
void recent_load(struct recent *r);
/* That file, with these settings where it was open with them, else as it was open last; NULL: it was not. */
const struct recent_entry *recent_find(const struct recent *r, const char *path, const char *set);
/* Puts a file first and writes the list anew, in one step. -1: it cannot be kept; nothing is then changed. */
int recent_note(const struct recent_entry *entry);
/* "path  KEY=VALUE KEY=VALUE" */
void recent_words(const struct recent_entry *e, char *out, size_t bytes);
int recent_path(char *path, size_t bytes); /* of the list itself */

/* Marks, pins and stops of a session, and back: how many lines made no sense. */
void recent_take(struct recent_entry *e, const struct session *s);
int recent_give(const struct recent_entry *e, struct session *s);

#endif
