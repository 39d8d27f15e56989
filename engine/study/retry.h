/* What no formula explains, asked of the kernel itself: where a stage is wrong and no cause is known, the kernel runs
   once more on the CPU with access checks, and what they report of that stage is the cause. */
#ifndef STUDY_RETRY_H
#define STUDY_RETRY_H

#include "engine/run/record.h"
#include "engine/verdict/again.h"

/* Of a stage; by FOUND_BY_RUN: nothing was found. */
struct retried {
    enum found_by by;
    struct trace_event event;
};

struct retry {
    struct retried of[ASC_CHANNELS];
};

/* Whether a second run may say more than this one, which is judged to its end. */
bool retry_wanted(const struct trace *t, const struct judgement *j);
/* Runs what t is a run of (this scenario's) once more. A kernel that the CPU does not take finds nothing. -1 where
   memory ran out, or ERR_CANCELLED. */
int retry_run(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *t,
              const struct judgement *j, const struct runner_progress *progress, struct retry *out, struct err *err);
/* Says it in the findings. */
int retry_tell(const struct retry *found, struct judgement *j);

#endif
