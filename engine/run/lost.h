/* What probes were given and the trace does not hold, in words: the same on the screen and in text. */
#ifndef RUN_LOST_H
#define RUN_LOST_H

#include "engine/trace/trace.h"

#define LOST_WORDS_BYTES 192

/* "114688 values of k are not bf16, the declared type". 0, and "": all were. */
int mistyped_words(const struct trace *t, enum asc_channel ch, char out[LOST_WORDS_BYTES]);
/* "49600 values of l had no place in the trace: ..."; 0, and "": all had one. */
int dropped_words(const struct trace *t, enum asc_channel ch, char out[LOST_WORDS_BYTES]);

#endif
