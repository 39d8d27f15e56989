/* Runs of one kernel after another within a budget of time, and what is told meanwhile. */
#ifndef CLI_TRIAL_H
#define CLI_TRIAL_H

#include "cli/options.h"
#include "engine/build/runner.h"
#include "engine/session/session.h"

#include <pthread.h>

/* The budget, and what is under way. */
struct trial_watch {
    double begun, limit_s;
    char label[160]; /* "case 12 of 48 (1,2,67,35,64)" */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended; /* the thread of trial_work() */
    enum runner_step step;
    double since, done, total; /* of the step; total 0: unknown */
    atomic_int cancel;
};

void trial_watch_init(struct trial_watch *w);
void trial_watch_end(struct trial_watch *w);
bool trial_spent(const struct trial_watch *w);
/* Work on a thread of its own, so that the clock is looked at whatever it does. ERR_CANCELLED: the budget ran out. */
int trial_work(struct trial_watch *w, int (*work)(void *, const struct runner_progress *, struct err *), void *ctx,
               struct err *err);
/* The session's run and its verdicts. When the budget runs out the run ends; what it left is judged. */
int trial_session(struct trial_watch *w, struct session *s, struct err *err);

/* Runs the session by this scenario, which is taken over. 0: it is as it should be; 1: it is not, and found says what
   was found; -1: it could not be run, or not to its end. */
#define TRIAL_FOUND_BYTES 512
int trial_run(struct trial_watch *w, struct session *s, struct scenario *scenario, char found[TRIAL_FOUND_BYTES],
              struct err *err);

/* What `attnscope sweep` does with one kernel, saved meanwhile to output (NULL: nowhere), at the points of like (NULL:
   as the options say). *out: sweep_free(), also where it failed. */
struct sweep;
int sweep_kernel(const struct options *o, const char *path, const char *output, const struct sweep *like,
                 struct sweep *out, struct err *err);

/* The first line of what may be a compiler's. */
void trial_error_words(const struct err *err, char *out, size_t bytes);

#endif
