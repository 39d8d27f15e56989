/* What the kernel of a run left unwritten throughout though its registration does not say that there is none. The run
   is not wrong: its kernel is not fully declared. */
#ifndef VERDICT_UNDECLARED_H
#define VERDICT_UNDECLARED_H

#include "engine/trace/trace.h"
#include <stdbool.h>

#define UNDECLARED_WORDS_BYTES 192

/* The i-th of them in one line, with the declaration that is missing; false: there is no i-th. */
bool undeclared_words(const struct trace *t, int i, char out[UNDECLARED_WORDS_BYTES]);

#endif
