/* kv tiles that were left out, and why: what the loop over them may go by, of what people take for the keys that rows
   see. */
#ifndef VERDICT_SKIPPING_H
#define VERDICT_SKIPPING_H

#include "engine/verdict/judgement.h"

/* The finding of a run that left tiles out. -1 without memory. */
int skipping_find(const struct judgement *j, const struct trace *t, const struct summary *summary, struct finding *f);

#endif
