/* Messages that worker threads and signal handlers send: built on the stack, without malloc, locale or stdio, so that
   a crash inside malloc can still be told. */
#ifndef DEBUGGEE_SAY_H
#define DEBUGGEE_SAY_H

#include "engine/base/wire.h"
#include <stdint.h>

struct say {
    size_t n;
    char text[8192]; /* what does not fit is left out, the line stays whole JSON */
};

void say_begin(struct say *s, enum wire_kind kind);
void say_text(struct say *s, const char *key, const char *value); /* not valid UTF-8: '?' for the byte */
void say_integer(struct say *s, const char *key, int64_t value);
void say_triple(struct say *s, const char *key, const uint32_t values[3]);
void say_end(struct say *s, int fd); /* sends; a parent that is gone is noticed by the reader */
/* failed: what sending or reading returned, with errno. Where the system had no memory for it the process ends, with
   WIRE_REFUSED: without that message the run would be taken for another one. */
void say_check(int failed);

#endif
