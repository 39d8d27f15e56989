/* The only way for text to a terminal, since much of it is foreign: traces, kernels, compilers, file names. Whatever is
   written comes out as utf8_name() says; line feeds and tabs alone stay what they are. No other file names stdout or
   stderr (tests/faults/test_terminal.py), but for the terminal of the screen, which takes cells of a canvas. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "engine/base/err.h"
#include <stdbool.h>
#include <stdio.h>

/* Opens both streams; called once by a program's main(). Not 0: there is no memory for them, which it has said. */
int text_open(void);
FILE *text_out(void); /* standard output */
FILE *text_err(void); /* standard error */
/* Flushes standard output. 0, or errno of the first write of it that has failed since the program began; EPIPE: nobody
   reads it any more. */
int text_out_end(void);

/* What is being done, on standard error. A terminal shows one line, which the next one replaces, cut to 79 columns; ""
   takes it away. Anything else is given a line now and then: the first after 5 s, then one each 30 s; none with
   ATTNSCOPE_PROGRESS=no. For one thread at a time. */
void text_progress(const char *line);

/* The line that text_write_kept() writes to standard error, from the handler of a signal too; copied. Foreign text in
   it is as text_name() gives it. */
void text_keep(const char *line);
void text_write_kept(void);

/* n bytes of text as a name: a line feed and a tab are shown as "^J" and "^I" as well. Ends in "..." where it is cut to
   `bytes`, 4 at least; returns out. */
char *text_name(const char *text, size_t n, char *out, size_t bytes);
/* fprintf() of what is to stay in its line, as text_name() shows it. */
void text_inline(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "WHERE: MESSAGE" and a line feed. A compiler's own words alone span lines. */
void text_failure(FILE *out, const struct err *err);

#endif
