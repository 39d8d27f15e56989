/* What no formula explains, asked of the kernel itself: where a stage is wrong and no cause is known, the kernel runs
   once more on the CPU with access checks, and what they report of that stage is the cause. Of what that does not tell
   it runs in other orders of lanes and warps: a stage that is right or wrong by the order is the work of a race. Of a
   run that is clean, checks alone: they see what left no trace in its values; of one on a GPU, whether the CPU agrees.
 */
#ifndef STUDY_RETRY_H
#define STUDY_RETRY_H

#include "engine/run/record.h"
#include "engine/verdict/again.h"

struct retry {
    struct found_again of[ASC_CHANNELS];
    struct checked_again clean; /* of a run without a finding */
};

/* Whether a second run may say more than this one, which is judged to its end. */
bool retry_wanted(const struct trace *t, const struct judgement *j);
/* Runs what t is a run of (this scenario's) once more. A kernel that the CPU does not take finds nothing. -1 where
   memory ran out, or ERR_CANCELLED. */
int retry_run(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *t,
              const struct judgement *j, const struct runner_progress *progress, struct retry *out, struct err *err);
/* Says it in the findings. */
int retry_tell(const struct retry *found, struct judgement *j);

/* The same on a thread of its own. */
struct retry_scan;

/* Begins at once. paths, t and j are borrowed until retry_scan_free(). wake(ctx) is called on that thread whenever
   there is something to collect. -1 without memory. */
int retry_scan_new(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *t,
                   const struct judgement *j, void (*wake)(void *ctx), void *ctx, struct retry_scan **out);
void retry_scan_cancel(struct retry_scan *s);
void retry_scan_free(struct retry_scan *s);                   /* ends what is under way; NULL is legal */
enum runner_step retry_scan_step(const struct retry_scan *s); /* STEP_NONE: it is over */
/* What was found, once it is over, the first time; NULL: it is not, or nothing was, or it was asked before. *changed:
   the step has. */
const struct retry *retry_scan_collect(struct retry_scan *s, bool *changed);
void retry_scan_finish(struct retry_scan *s); /* waits for its end */

#endif
