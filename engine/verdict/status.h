/* What a tile's verdicts come to, in a byte: a map of 512x512 tiles reads a quarter of a megabyte instead of 300. */
#ifndef VERDICT_STATUS_H
#define VERDICT_STATUS_H

#include "engine/verdict/judgement.h"

/* Of a tile of a slot that is done: ok, the most telling class of what is bad, STATUS_UPSTREAM (right by what it was
   given, wrong by the reference), STATUS_MASKED, STATUS_UNWRITTEN or STATUS_UNJUDGED. */
enum tile_status judgement_status(const struct judgement *j, struct place place);
/* Keeps those of a slot that is judged and not yet done. */
void judgement_note_statuses(struct judgement *j, const struct trace *t, int slot);

#endif
