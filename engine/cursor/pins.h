/* Pinned elements: what a few of them hold at every kv step, captured and wanted, so that stepping costs nothing. */
#ifndef CURSOR_PINS_H
#define CURSOR_PINS_H

#include "engine/cursor/cursor.h"
#include "engine/verdict/judgement.h"
#include <stdbool.h>

enum { PINS_MAX = 4 };

/* What a pinned element is by one reference: [kv_tiles], or [1] of a channel that exists once per q tile. */
struct pin_values {
    double *want, *bound; /* NaN: nothing follows for it */
    uint8_t *class;       /* enum tile_status */
};

struct pin {
    struct cursor at;        /* kv_tile means nothing: it follows the cursor */
    int kv_tiles;            /* 0: nothing is known of it yet */
    double *got;             /* owned: one block with want and bound; NaN: not recorded */
    uint8_t *classes;        /* owned: both references' */
    struct pin_values of[2]; /* local, global */
};

/* Zero-initialize. */
struct pins {
    struct pin at[PINS_MAX]; /* [n] */
    int n;
};

/* 1: it is pinned now, 0: no longer, -1: there is no room. */
int pins_toggle(struct pins *p, const struct cursor *c);
void pins_remove(struct pins *p, int i);
void pins_free(struct pins *p);   /* removes all */
void pins_forget(struct pins *p); /* the values: another run is shown */
/* The first that is not known and whose q tile is judged, or -1. */
int pins_unknown(const struct pins *p, const struct trace *t, const struct judgement *j);
/* Takes over the values of a pin at the same element, where one has none yet. */
void pins_take(struct pins *p, struct pin *made);

/* Fills in a pin that holds nothing: one pass over its q tile. -1: it still holds nothing. */
int pin_fill(struct pin *pin, const struct trace *t, const struct judgement *j, struct judge_scratch *scratch);
void pin_forget(struct pin *pin); /* the values */

/* At one kv tile. false: nothing is known of it. */
struct pin_value {
    double got, want, bound;
    enum tile_status class;
};
bool pin_value(const struct pin *pin, int kv_tile, bool global, struct pin_value *out);

#endif
