/* Where a probe puts what it records, where that is not where it belongs: O and LSE are right. */
#ifndef VERDICT_MISPLACED_H
#define VERDICT_MISPLACED_H

#include "engine/verdict/judgement.h"

enum { MISPLACED_BYTES = 200 };

/* Looks a stage's captured values up among those that the inputs make expected in the same tile: "its probe records at
   column c what belongs at column c ^ 1"; or says which places were never written, or that rows are counted in the
   matrix. One sentence has to tell all elements of all slots that are looked at. "": none does. -1 without memory. */
int misplaced_words(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                    struct judge_scratch *scratch, char out[MISPLACED_BYTES]);

#endif
