/* The user's editor: VISUAL, else EDITOR, else vi; opened at a place, with the terminal handed over to it. */
#ifndef TUI_EDITOR_H
#define TUI_EDITOR_H

#include "engine/session/session.h"

enum { EDITOR_ARGUMENTS = 8 };

/* The command for /bin/sh in argv, NULL-terminated; its texts lie in `room`. VISUAL and EDITOR may hold arguments
   ("code --wait", "emacs -nw"). A file whose name begins with '-' or '+' is named by way of its folder. */
struct editor_command {
    char *argv[EDITOR_ARGUMENTS];
    char name[64]; /* "vim" */
    char room[4096];
};
/* 0, or -1: it is too long. editor NULL or "": vi. */
int editor_command(const char *editor, const char *file, int line, struct editor_command *out);
const char *editor_chosen(void); /* of the environment */

/* The line of `file` as it is now that holds what `text` has at `line`: the nearest of those with the same words, else
   `line` itself. text NULL: not known. */
int editor_line(const char *file, const char *text, int line);

/* Opens it, waits for its end, and asks for a rerun where the file is another one afterwards and nobody watches it.
   s->message says what went wrong. */
void editor_open(struct session *s, const char *file, int line);
/* At the event or the probe's line where the source stands, else at the kernel's first line. */
void editor_open_source(struct session *s);
int keys_write_docs(FILE *out); /* docs/keys.md: the keys, then the editors; 0, or -1 where writing fails */

#endif
