/* A declaration that a finding asks for, written into the kernel's registration. */
#ifndef SESSION_DECLARE_H
#define SESSION_DECLARE_H

#include "engine/session/session.h"

/* Where a line went. */
struct declared_at {
    int line;
    char was[64]; /* the value whose place it took; "": a line was added */
    bool listed;  /* into the list of an ASC_RUN: `NAME = VALUE` */
};
/* *out, the caller's, is the text with that line in its registration: behind the last convention that it declares, or
   first, in an ASC_RUN last; a value that it declares already is replaced. NULL where it may not be changed, and *why
   says so; or without memory, *why NULL then. */
char *declare_in(const char *text, const struct convention_line *line, struct declared_at *at, const char **why);

enum { DECLARING_BYTES = 256 };

/* A question that waits for its answer. */
struct declaring {
    struct convention_line line[CONVENTION_LINES];
    int n_lines;                    /* 0: nothing is asked */
    char question[DECLARING_BYTES]; /* "insert `...` into my.cu:120?" */
};

/* Asks about a finding's lines. -1: out->question says them, and why they can not be inserted. */
int session_ask_declaration(const struct session *s, const struct finding *f, struct declaring *out);
/* Yes: the file is replaced, whole or not at all, and a run is asked for where nobody watches. s->message says what
   became of it. */
void session_declare(struct session *s, const struct declaring *asked);

#endif
