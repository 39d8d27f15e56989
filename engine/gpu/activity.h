/* How long each kernel of a launch ran, as the device itself stamped it (CUPTI's activity records). */
#ifndef GPU_ACTIVITY_H
#define GPU_ACTIVITY_H

#include "engine/gpu/cupti.h"

enum { ACTIVITY_RECORDS_MAX = 4096 };

struct activity {
    size_t n; /* kernels that ran, in order; those beyond the room are not kept */
    double seconds[ACTIVITY_RECORDS_MAX];
};

/* CUPTI's result. What runs between begin and end is recorded; the caller has synchronized before end. */
int activity_begin(const struct cupti *cupti);
int activity_end(const struct cupti *cupti, struct activity *out);

#endif
