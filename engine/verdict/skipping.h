/* Why kv tiles were left out: what the loop over them may go by, of what people take for the keys that rows see. */
#ifndef VERDICT_SKIPPING_H
#define VERDICT_SKIPPING_H

#include "engine/trace/trace.h"

/* "; the loop goes by the first row of a q tile alone": a rule that leaves out all tiles which were left out and none
   that was visited, where rows should see them; up to three that do so are joined by "or". "": no rule, or more.
   -1 without memory. */
enum { SKIPPING_BYTES = 320 };
int skipping_words(const struct trace *t, char out[SKIPPING_BYTES]);

#endif
