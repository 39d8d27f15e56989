/* How far each recorded block came, read off the stamps of its probes. */
#ifndef CHILD_STAMPS_H
#define CHILD_STAMPS_H

#include "engine/trace/trace.h"

/* The last probe of one slot that fired. */
struct last_stamp {
    uint64_t clock; /* block-local; 0: no probe of this slot has fired */
    enum asc_channel channel;
    int kv;        /* kv tile; -1 for a channel that exists once per slot */
    bool finished; /* o or lse was recorded: the block was at its end */
};

/* Fills last[n_slots]; returns how many slots have any stamp. */
int runner_last_stamps(const struct trace *t, struct last_stamp *last);

/* Of the blocks that were not at their end, the one that came farthest by its own clock; else, of all: its slot, and
 *last its last probe. -1: no probe had fired. */
int runner_farthest(const struct trace *t, struct last_stamp *last);

/* "last probe: P at batch 0, head 3, q tile 2, kv tile 5 (kernel.cu:88)" of runner_farthest(). "no probe
   had fired" without any stamp. */
void runner_describe_progress(const struct trace *t, char *text, size_t size);

/* Warps of one slot, which had begun and had not finished, that came as far as each other. */
struct warps_stand {
    int slot, first, last_warp;
    struct last_stamp last; /* clock 0: none of them has recorded anything */
};
/* Calls tell for all of at most STANDS_SLOTS slots. */
enum { STANDS_SLOTS = 8 };
void runner_last_of_warps(const struct trace *t, void (*tell)(void *ctx, const struct warps_stand *warps), void *ctx);
/* "batch 0, head 0, q tile 1, warps 0 to 3: last probe S at kv tile 2" */
void runner_warps_words(const struct trace *t, const struct warps_stand *warps, char *text, size_t size);

#endif
