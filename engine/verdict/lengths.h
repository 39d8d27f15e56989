/* Whose lengths the mask of S goes by, where they are not the sequence's own. */
#ifndef VERDICT_LENGTHS_H
#define VERDICT_LENGTHS_H

#include "engine/verdict/judgement.h"

enum { LENGTHS_BYTES = 360 };

/* "the kv_len of the longest sequence, 200": the key behind the last one that a row sees has to follow
   from that in every row of the slots that are looked at. "": it follows from none that was tried. out:
   [LENGTHS_BYTES]. ch: asc_s. -1 without memory.
 */
int lengths_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char *out);

#endif
