/* Hardware counters of every kernel of a launch, through CUPTI's range profiler. */
#ifndef GPU_RANGE_PROFILER_H
#define GPU_RANGE_PROFILER_H

#include "engine/gpu/cupti.h"

/* What is measured: launches and waits, the same each time, since one pass over the kernel does not fill all counters.
   -1: the text says what failed. */
struct replayed {
    int (*launch)(void *ctx, char *text, size_t size);
    void *ctx;
};

/* Fills the counters of launches_at(): the launches of one replay. 0, with text "" or a word on counters that the chip
   does not have; -1: none, text says why. */
int range_profiler_measure(const struct cupti *cupti, const struct replayed *replayed, char *text, size_t size);

#endif
