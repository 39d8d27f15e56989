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

#endif
