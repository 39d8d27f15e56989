/* To which state a kv tile belongs where the plan does not say so: a loop that left tiles out may deal the others
   otherwise than the plan, and what came before a tile is what its own block came to before. */
#ifndef VERDICT_DEALT_H
#define VERDICT_DEALT_H

#include "engine/trace/trace.h"

/* Gives a complete run, whose kernel left out tiles that rows should see, the states of the blocks that recorded the
   others, where these contradict the plan. Nothing where a block is not known. -1 without memory. Before any other
   thread has the trace. */
int trace_deal_as_seen(struct trace *t);

/* "; a split has up to 1 kv tile here, by the plan 2"; "": as the plan says, or not known. */
enum { DEALT_WORDS_BYTES = 96 };
void dealt_words(const struct trace *t, int slot, char out[DEALT_WORDS_BYTES]);

#endif
