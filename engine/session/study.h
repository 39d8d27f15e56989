/* What views show of the cursor's tile, made on a thread of its own: each piece is a walk over the whole slot, which
   may have hundreds of thousands of kv tiles. One piece at a time: the owner asks, is woken, takes. */
#ifndef SESSION_STUDY_H
#define SESSION_STUDY_H

#include "engine/cursor/operands.h"
#include "engine/cursor/pins.h"
#include "engine/verdict/states.h"
#include <stdbool.h>

enum study_kind {
    STUDY_DETAIL,   /* of the place's tile */
    STUDY_ROW,      /* m, alpha and l of row `row` of the slot, by the truth */
    STUDY_OPERANDS, /* of element (row, col) of the tile */
    STUDY_PIN,      /* element (row, col) of the place's channel at every kv tile */
    STUDY_STATES    /* of the slot */
};

/* place.kv counts where the piece is of a tile; row and col where it is of a row or an element; else they are 0. */
struct study_ask {
    enum study_kind kind;
    struct place place;
    int row, col;
};
bool study_same(const struct study_ask *a, const struct study_ask *b);

/* The piece of ask.kind, taken over by whoever takes the answer. */
struct study_answer {
    struct study_ask ask;
    int failed; /* no memory, or it was given up: there is nothing */
    struct tile_detail detail;
    double *row_want[ASC_CHANNELS]; /* owned, [kv_tiles] */
    struct derivation operands;
    struct pin pin;
    struct row_states states;
};
void study_answer_free(struct study_answer *a); /* what was not taken out of it */

struct study;

/* wake(ctx) is called on the study's thread whenever there is something to take, or the share has grown. */
int study_new(void (*wake)(void *ctx), void *ctx, struct study **out);
void study_free(struct study *s); /* gives up what is under way; NULL is legal */

/* Begins a piece; t and j are borrowed, and the slot is judged, until it is taken. Nothing may be under way. */
void study_begin(struct study *s, const struct trace *t, const struct judgement *j, const struct study_ask *ask);
/* What was begun and is not taken yet; NULL: nothing. */
const struct study_ask *study_under_way(const struct study *s);
double study_share(const struct study *s);   /* of it, 0 to 1 */
double study_seconds(const struct study *s); /* since it began */
void study_give_up(struct study *s);         /* it ends soon, as failed; it is still to be taken */
/* Waits for it, at most seconds (< 0: to the end). 1: taken; 0: not there yet, or nothing is under way. */
int study_take(struct study *s, double seconds, struct study_answer *out);

#endif
