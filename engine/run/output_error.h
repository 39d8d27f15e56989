/* How far the output of a kernel without probes is from the float64 reference. */
#ifndef RUN_OUTPUT_ERROR_H
#define RUN_OUTPUT_ERROR_H

#include "engine/run/record.h"
#include <stdbool.h>

/* |o - reference|, the reference being that of what codes were made from, or of what the launch quantizes. */
struct unquantized_error {
    bool known; /* something is quantized, and its values before that are known */
    double largest, rms;
};

struct output_error {
    double largest;       /* |o - reference|; NaN where an element is NaN or unwritten */
    double largest_ratio; /* of the error to its bound; more than 1: beyond it; NaN as above */
    uint64_t elements;
    struct unquantized_error unquantized;
};

/* Builds, launches once, and judges every element of o, on all cores; the backend is the scenario's. */
int output_error_measure(const struct runner_paths *paths, const struct scenario *scenario,
                         const struct runner_progress *progress, struct output_error *out, struct err *err);

/* The same of a run that has ended, complete and without probes. */
int output_error_judge(const struct trace *t, const struct runner_progress *progress, struct output_error *out,
                       struct err *err);
/* That part alone, of any run that is complete. */
int output_error_unquantized(const struct trace *t, struct unquantized_error *out, struct err *err);

/* The same launch several times: a kernel whose blocks race leaves other bits now and then. */
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
