/* What a tile's verdicts come to, in a byte: a map of 512x512 tiles reads a quarter of a megabyte instead of 300. */
#ifndef VERDICT_OUTCOME_H
#define VERDICT_OUTCOME_H

#include "engine/verdict/judgement.h"

/* The first CLASS_COUNT are the element classes: ok, or the most telling one of what is bad. */
enum outcome {
    OUTCOME_LAST_CLASS = CLASS_COUNT - 1,
    OUTCOME_UPSTREAM,  /* right by what it was given, wrong by the truth */
    OUTCOME_MASKED,    /* nothing may contribute */
    OUTCOME_UNWRITTEN, /* the run ended before all of it was written */
    OUTCOME_UNJUDGED,
    OUTCOME_COUNT
};

/* Of a tile of a slot that is done. */
enum outcome judgement_outcome(const struct judgement *j, struct place place);
/* Keeps those of a slot that is judged and not yet done. */
void judgement_note_outcomes(struct judgement *j, int slot);

#endif
