/* Looks through a judged run for the first tile where a stop condition holds, slot by slot on several threads. */
#ifndef CURSOR_SEEK_H
#define CURSOR_SEEK_H

#include "engine/cursor/stop.h"
#include <stdbool.h>

enum { STOPS_MAX = 8 };

/* Where a condition holds. */
struct stop_hit {
    struct place place; /* slot -1: nowhere */
    int row, col;       /* -1: no single element */
    int stop;           /* which of the conditions */
};

struct seek {
    const struct trace *trace;         /* borrowed */
    const struct judgement *judgement; /* borrowed */
    struct stop stops[STOPS_MAX];      /* [n_stops] */
    int n_stops;
    struct place
        from;      /* looked for behind this one (before it, going back), as the kernel ran; slot -1: from the end */
    int first;     /* slot that is looked at first: from's, or the next one where that is not recorded */
    int direction; /* 1, -1 */
    struct stop_hit *hits;       /* owned, [slots to look at]: the first of each */
    int n_slots;                 /* to look at */
    atomic_int next, best, done; /* best: the first slot with a hit, counted as looked at */
    atomic_bool no_memory;       /* not every slot could be looked at: which hit is the first is not known */
};

/* The conditions, trace, judgement, from, first and direction are filled in. -1 without memory. */
int seek_begin(struct seek *k);
/* Looks at one slot. false: there is nothing more to do. Thread-safe; a step of a pool. */
bool seek_step(struct seek *k);
/* Once no thread is in seek_step(): the first hit. */
struct stop_hit seek_end(struct seek *k);

#endif
