/* The softmax state of a slot's rows for views, and where in a run an invariant of it is broken first. */
#ifndef VERDICT_STATES_H
#define VERDICT_STATES_H

#include "engine/oracle/nonfinite/invariants.h"
#include "engine/verdict/judgement.h"

/* Of a slot that was judged. -1: it is not, or no memory; *out is then zeroed. */
int states_of_slot(const struct judgement *j, const struct trace *t, int slot, struct judge_scratch *scratch,
                   struct row_states *out);

/* The first break of a run. Where m, alpha, l and U are within their bounds nothing is broken: only slots are looked at
   where one of them is not, the first STATES_LOOKED of them. */
enum { STATES_LOOKED = 16 };
int states_find_break(const struct judgement *j, const struct trace *t, struct judge_scratch *scratch,
                      struct state_break *out);

enum { BREAK_WORDS_BYTES = 320 }; /* all sentences at once */
/* "m + ln l is not that of the keys so far; l is not positive, ..." */
void states_broken_words(unsigned broken, char out[BREAK_WORDS_BYTES]);

#endif
