/* What the files of work.h share. */
#ifndef SESSION_WORK_PARTS_H
#define SESSION_WORK_PARTS_H

#include "engine/session/work.h"

#include "engine/base/pool.h"
#include "engine/run/feed.h"
#include "engine/run/measure.h"
#include "engine/run/record.h"
#include <pthread.h>

/* One worker of the pool, as its scratch asks how it stands. */
struct work_ask {
    struct work *work; /* borrowed */
    atomic_int tiles;  /* kv tiles of the slot at hand that it has come to */
};

struct work {
    struct pool *pool;
    struct judge_scratch **scratch; /* owned, [pool threads] */
    struct work_ask *asks;          /* owned, [pool threads] */
    const struct trace *walks;      /* borrowed: whose slots the pass under way goes over; NULL: there is none */
    atomic_int slots_walked;        /* whole slots of it */
    atomic_llong told_ms;           /* when its progress was mailed last */
    pthread_t thread;
    bool joinable;
    int event_fd;
    atomic_int busy, cancel;
    atomic_int quit;      /* once set, everything ends */
    pthread_mutex_t lock; /* of mail */
    struct mail mail;
    atomic_int mailed; /* 1: something has happened since it was collected */

    struct recorder recorder;
    const struct runner_paths *paths; /* borrowed while busy */
    const struct scenario *scenario;  /* borrowed while busy; NULL: judge only */

    /* An isolated run. */
    const struct trace *run;                 /* borrowed while busy: the ordinary one; NULL: not an isolated run */
    const struct isolation_request *request; /* borrowed while busy */
    struct recorder feed_recorder;
    struct recorder plain_recorder; /* builds without probes, that are measured beside a run */
    struct measured measured;       /* by it */
    struct feed feed;

    struct seek *seek; /* borrowed while busy: a stop condition is looked for; NULL: it is a run */

    /* The judge queue: every slot once, the preferred one first. */
    struct trace *trace;
    struct judgement *judgement;
    atomic_uchar *taken; /* owned, [n_slots] */
    atomic_int next, preferred, judge_failed;
    struct cause_plan plan;
    struct cause_evidence (*evidence)[CAUSE_COUNT]; /* owned while causes are tested, [pool threads] */
    struct run_onset *onset;                        /* owned until it is mailed; its lock is `lock` */
};

/* A run's cancel is spent with the run; quitting is for good. */
static inline bool work_stopped(struct work *w)
{
    return atomic_load(&w->quit) || atomic_load(&w->cancel);
}

/* A pass over the slots begins: counts from 0, in kv tiles, so that one huge slot moves as well. */
void work_pass(struct work *w, const struct trace *t, enum phase phase, enum runner_step step);
void work_walked(struct work *w, int worker); /* its slot is through */
int work_ask(void *ctx);                      /* of a struct work_ask, for judge_scratch_watch() */
void work_drop_mail(struct mail *mail);
/* Something is in the mail. */
void work_signal(struct work *w);
void work_enter(struct work *w, enum phase phase, enum runner_step step);
/* Another step begins, and what the last one took is known; under the lock. */
void work_turn(struct work *w, enum runner_step step);
/* One slot of the judge queue, whatever comes next: taken once. */
bool work_take_slot(struct work *w, int slot);
/* What is right by the judge on a GPU, where there is one and the CPU confirms it: taken over, and the rest is left to
   the queue. ERR_CANCELLED alone is an error. */
int work_judge_on_gpu(struct work *w, struct err *err);
/* Judges w->trace and looks for causes; the judgement is mailed at once, so that views see it fill. */
int work_judge_trace(struct work *w, struct err *err);

#endif
