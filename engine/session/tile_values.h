/* What views show of the cursor's tile, made on a thread of its own: each piece is a walk over the whole slot, which
   may have hundreds of thousands of kv tiles. One piece at a time: the owner asks, is woken, takes. */
#ifndef SESSION_TILE_VALUES_H
#define SESSION_TILE_VALUES_H

#include "engine/cursor/pins.h"
#include "engine/session/picture.h"
#include "engine/verdict/states.h"
#include <stdbool.h>

enum tile_values_kind {
    VALUES_DETAIL,   /* of the place's tile */
    VALUES_ROW,      /* m, alpha and l of row `row` of the slot, by the reference */
    VALUES_OPERANDS, /* of element (row, col) of the tile */
    VALUES_PIN,      /* element (row, col) of the place's channel at every kv tile */
    VALUES_STATES,   /* of the slot */
    VALUES_PICTURE   /* of the slot's tiles of the place's channel; row: global, col: enum picture_scope */
};

/* place.kv counts where the piece is of a tile; row and col where it is of a row or an element; else they are 0. */
struct tile_values_ask {
    enum tile_values_kind kind;
    struct place place;
    int row, col;
};
bool tile_values_same(const struct tile_values_ask *a, const struct tile_values_ask *b);

/* The piece of ask.kind, taken over by whoever takes the answer. */
struct tile_values_answer {
    struct tile_values_ask ask;
    bool failed; /* no memory, or it was given up: there is nothing */
    struct tile_detail detail;
    double *row_want[ASC_CHANNELS]; /* owned, [kv_tiles] */
    struct derivation operands;
    struct pin pin;
    struct row_states states;
    struct picture picture;
};
void tile_values_answer_free(struct tile_values_answer *a); /* what was not taken out of it */

struct tile_values;

/* wake(ctx) is called on its thread whenever there is something to take, or the share has grown. */
int tile_values_new(void (*wake)(void *ctx), void *ctx, struct tile_values **out);
void tile_values_free(struct tile_values *s); /* gives up what is under way; NULL is legal */

/* Begins a piece; t and j are borrowed, and the slot is judged, until it is taken. Nothing may be under way. */
void tile_values_begin(struct tile_values *s, const struct trace *t, const struct judgement *j,
                       const struct tile_values_ask *ask);
/* What was begun and is not taken yet; NULL: nothing. */
const struct tile_values_ask *tile_values_under_way(const struct tile_values *s);
double tile_values_share(const struct tile_values *s);   /* of it, 0 to 1 */
double tile_values_seconds(const struct tile_values *s); /* since it began */
void tile_values_give_up(struct tile_values *s);         /* it ends soon, as failed; it is still to be taken */
/* Waits for it, at most seconds (< 0: to the end). false: it is not there yet, or nothing is under way. */
bool tile_values_take(struct tile_values *s, double seconds, struct tile_values_answer *out);

#endif
