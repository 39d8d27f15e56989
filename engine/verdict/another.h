/* Whether O or LSE of a q tile is that of another one. */
#ifndef VERDICT_ANOTHER_H
#define VERDICT_ANOTHER_H

#include "engine/verdict/judgement.h"

enum { ANOTHER_BYTES = 240 };

/* Looks what was recorded of each bad q tile up among what is wanted of the others: "O is that of the next q tile,
   counted through the heads". *share: of the bad q tiles that it tells. "": no one map tells at least half. -1 without
   memory. */
int another_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, struct judge_scratch *scratch,
                  char out[ANOTHER_BYTES], double *share);

#endif
