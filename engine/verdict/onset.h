/* Where NaN and infinity begin in a whole run: the roots of all slots (engine/oracle/nonfinite/onset.h), counted, the
   first ones kept. */
#ifndef VERDICT_ONSET_H
#define VERDICT_ONSET_H

#include "engine/oracle/nonfinite/onset.h"
#include "engine/verdict/judgement.h"
#include <stdbool.h>

enum { RUN_ROOTS_KEPT = 512, RUN_ROOTS_PER_STAGE = 2 };

struct run_root {
    int slot, index; /* which of the slot's */
    struct onset_root root;
};

struct run_onset {
    uint64_t roots, outputs; /* elements; of o those that should be finite and are not */
    uint64_t of_origin[ORIGIN_COUNT], of_stage[ASC_CHANNELS];
    int heads;          /* batch * heads */
    uint64_t *of_heads; /* owned, [heads][ASC_CHANNELS] */
    /* The first RUN_ROOTS_PER_STAGE of each slot and stage, in the order of slots and, within one, of execution. */
    int n;
    struct run_root *first; /* owned, [n] */
};

/* Whether some verdict on the slot counts a NaN or an infinity that does not belong there. */
bool run_onset_wanted(const struct judgement *j, int slot);
int run_onset_new(const struct trace *t, struct run_onset **out);
void run_onset_free(struct run_onset *o); /* NULL is legal */
/* Takes in what was found in a slot. */
void run_onset_add(struct run_onset *o, const struct trace *t, int slot, const struct onset *found);
/* The roots of one slot. -1 without memory. */
int onset_of_slot(const struct trace *t, int slot, struct judge_scratch *scratch, struct onset *out);

/* The first root that tells of an onset: a key that is masked by mistake is -inf rightly made. NULL: there is none. */
const struct run_root *run_onset_first(const struct run_onset *o);
/* The kept root at or behind which the place lies, or -1. */
int run_onset_at(const struct run_onset *o, struct place place, int row);

enum { ONSET_WORDS_BYTES = 320 };
/* "P h0 q0 k1 [3, 17]" */
void onset_place_words(const struct trace *t, const struct run_root *r, char out[ONSET_WORDS_BYTES]);
/* "NaN begins at P h0 q0 k1 [3, 17]: -inf is subtracted from -inf; it reached 64 elements of O" */
void onset_words(const struct judgement *j, const struct trace *t, const struct run_root *r,
                 char out[ONSET_WORDS_BYTES]);
/* Why: its origin; where there is none what the stage's finding or an event says, for one report tells one story. */
void onset_reason_words(const struct judgement *j, const struct trace *t, const struct onset_root *r,
                        char out[ONSET_WORDS_BYTES]);
/* "reached 64 elements of O in 1 row", or how far it came and what that means. */
void onset_chain_words(const struct onset_root *r, char out[ONSET_WORDS_BYTES]);
/* "α k0 (1) → P k0 (64) → l k0-2 (3) → U k0-2 (192) → O (64)": stages, kv tiles and elements that it was seen in. */
void onset_path_words(const struct onset_root *r, char out[ONSET_WORDS_BYTES]);
/* "row 0 has no key up to here, ...", where the mask has to do with it; "": it has not. */
void onset_keys_words(const struct onset_root *r, char out[ONSET_WORDS_BYTES]);
/* The row of q, or of k, that the root's score is made of: values, out having room for head_dim of them, or 0 where
   that is not what tells of it. */
int onset_factors(const struct trace *t, const struct run_root *r, enum asc_channel ch, double *out);
const char *onset_value_word(double value); /* "NaN", "inf", "-inf" */

/* Findings without a cause whose stage makes what is no number say by which origin, or event. */
void onset_tell(const struct judgement *j, const struct trace *t, const struct run_onset *o, struct finding *findings,
                int n);

#endif
