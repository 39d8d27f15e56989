/* The same launch several times: a kernel whose blocks race leaves other bits now and then. */
#ifndef RUN_REPEAT_H
#define RUN_REPEAT_H

#include "engine/run/output_error.h"

struct repeat_result {
    int runs;                  /* that came to their end */
    int differing;             /* of these, how many left other bits in o or lse than the first */
    struct output_error error; /* of the first run */
    double limit;              /* most that the kernel's plan allows for repeat_error_given(); 0: it says nothing */
};

/* |o - reference| of the inputs as they were before anything was quantized. */
double repeat_error_given(const struct repeat_result *r);

/* Builds without probes, launches `runs` times on the scenario's inputs, and judges o of the first. r stays warm. */
int repeat_measure(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario, int runs,
                   const struct runner_progress *progress, struct repeat_result *out, struct err *err);

#endif
