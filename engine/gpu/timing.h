/* How long a launch takes, by CUDA events. */
#ifndef GPU_TIMING_H
#define GPU_TIMING_H

#include "engine/gpu/run.h"

struct timing {
    double median_s, min_s;
    int n; /* samples; 0: not measured */
};

/* Sorts the samples. Of an even number the median is the mean of the middle two. */
struct timing timing_summary(double *seconds, int n);

/* The median of a few launches with a warm L2; NaN where it cannot be taken. */
double timing_of_one(const struct asc_kernel *kernel, const struct run *run);

#endif
