/* Measuring a kernel without probes in it: beside a run, for `attnscope profile`, for `attnscope bench`. */
#ifndef RUN_MEASURE_H
#define RUN_MEASURE_H

#include "engine/run/record.h"

/* 0 if this scenario can run on a GPU here. ERR_SYSTEM: "what" needs one, and why there is none. */
int measure_ready(const struct runner_paths *paths, const struct scenario *scenario, const char *what, struct err *err);

/* r stays warm between calls, and is for these builds alone.
   Builds the kernel without probes, launches it on the scenario's inputs and appends to *out what it takes; counters:
   also the device's own times and hardware counters. */
int measure_plain(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario, bool counters,
                  const struct runner_progress *progress, struct trace_launches *out, struct err *err);

/* Whether a run of the scenario will be on a GPU, and wants something measured beside it. */
bool measures_beside(const struct runner_paths *paths, const struct scenario *scenario);
/* What was measured last, of which build and problem: what a launch takes is the same again. */
struct measured {
    char *of; /* owned; NULL: nothing */
    size_t n;
    json_t *launches; /* owned */
};
void measured_free(struct measured *m);

/* What of a run on a GPU its scenario wants measured beside it (budget, profile); nothing on the CPU. What fails there
   is said in info->launches.not_measured, the run stands. r: as measure_plain's. */
void measure_beside(struct recorder *r, struct measured *last, const struct runner_paths *paths,
                    const struct scenario *scenario, const struct runner_progress *progress, struct trace_info *info);

/* One kernel's times, by what its build does. */
enum bench_build { BENCH_PLAIN, BENCH_OFF, BENCH_CAPTURE, BENCH_FULL, BENCHES };
const char *bench_name(enum bench_build build);
const char *bench_meaning(enum bench_build build);

struct bench_line {
    struct err err;             /* code ERR_NONE: measured */
    struct bench_result result; /* free with measure_bench_free() */
    uint64_t recorded_bytes;    /* of the trace's channels; 0: nothing is recorded */
    int64_t slots, places;      /* (batch, head, q tile)s recorded, and all there are */
};
/* -1 with line->err as well: this build could not be measured. */
int measure_bench(const struct runner_paths *paths, const struct scenario *scenario, enum bench_build build,
                  const struct bench_request *request, const struct runner_progress *progress, struct bench_line *line);
/* Launches without probes on the backend of the scenario, timed by the clock: what there is on the CPU executor. */
int measure_launches(const struct runner_paths *paths, const struct scenario *scenario,
                     const struct bench_request *request, const struct runner_progress *progress, struct timing *out,
                     struct err *err);
void measure_bench_free(struct bench_line *line);

/* What a kernel leaves to its build: the ASC_CHOICES lines of its source. */
#define CHOICE_BYTES 64

struct choices {
    char (*define)[CHOICE_BYTES]; /* owned, [n]: "NAME=VALUE", in the order of the source */
    size_t n;
};

/* Every value of every choice; n 0 where there is none. -1: no memory. */
int choices_read(const char *source, struct choices *out);
void choices_free(struct choices *c);

#endif
