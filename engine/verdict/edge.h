/* A local verdict blames the way from the probes of a product's operands to its own: in words, where these were right.
 */
#ifndef VERDICT_EDGE_H
#define VERDICT_EDGE_H

#include "engine/verdict/judgement.h"

#define EDGE_WORDS_BYTES 320

/* "V was right at its probe (kernel.cu:165). Between there and probe u another tile is in its place: ...". 0, and "":
   nothing can be said, since the stage is no product, an operand is wrong itself or unrecorded, or the cause is of
   another kind. */
int edge_words(const struct trace *t, const struct summary *summary, const struct finding *f,
               char out[EDGE_WORDS_BYTES]);

#endif
