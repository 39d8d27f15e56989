#include "engine/session/work.h"

#include "engine/base/pool.h"
#include "engine/session/feed.h"
#include "engine/session/masks.h"
#include "engine/session/measure.h"
#include "engine/session/onset.h"
#include "engine/session/record.h"
#include "engine/session/states.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct work {
    struct pool *pool;
    struct judge_scratch **scratch; /* owned, [pool threads] */
    pthread_t thread;
    int joinable;
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

double work_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int work_fd(const struct work *w)
{
    return w->event_fd;
}

int work_busy(const struct work *w)
{
    return atomic_load(&w->busy);
}

void work_wake(struct work *w)
{
    uint64_t one = 1;
    if (write(w->event_fd, &one, sizeof one) < 0)
        return; /* the counter is full: the reader has something to read anyway */
}

static void signal_mail(struct work *w)
{
    atomic_store(&w->mailed, 1);
    work_wake(w);
}

static void enter_phase(struct work *w, enum phase phase, const char *activity)
{
    pthread_mutex_lock(&w->lock);
    w->mail.phase = phase;
    snprintf(w->mail.activity, sizeof w->mail.activity, "%s", activity);
    w->mail.done = w->mail.total = 0;
    w->mail.since = work_clock();
    pthread_mutex_unlock(&w->lock);
    signal_mail(w);
}

static void on_report(void *ctx, const char *phase, double done, double total)
{
    struct work *w = ctx;
    pthread_mutex_lock(&w->lock);
    if (strcmp(phase, w->mail.activity) != 0) {
        snprintf(w->mail.activity, sizeof w->mail.activity, "%s", phase);
        w->mail.since = work_clock();
    }
    if (strcmp(phase, "running") == 0 || strcmp(phase, RECORD_FIRST_PASS) == 0)
        w->mail.phase = PHASE_RUNNING;
    w->mail.done = done;
    w->mail.total = total;
    pthread_mutex_unlock(&w->lock);
    signal_mail(w);
}

static void on_log(void *ctx, const char *line)
{
    struct work *w = ctx;
    pthread_mutex_lock(&w->lock);
    if (w->mail.n_log >= LOG_LINES_MAX) { /* nobody has collected them for a while: the oldest goes */
        free(w->mail.log[0]);
        memmove(w->mail.log, w->mail.log + 1, --w->mail.n_log * sizeof *w->mail.log);
    }
    char **log = realloc(w->mail.log, (w->mail.n_log + 1) * sizeof *log);
    if (log) {
        w->mail.log = log;
        log[w->mail.n_log] = strdup(line);
        w->mail.n_log += log[w->mail.n_log] != NULL;
    }
    pthread_mutex_unlock(&w->lock);
    signal_mail(w);
}

static void on_reads(void *ctx, const char *path)
{
    struct work *w = ctx;
    pthread_mutex_lock(&w->lock);
    int known = 0;
    for (size_t i = 0; i < w->mail.n_reads && !known; i++)
        known = strcmp(w->mail.reads[i], path) == 0;
    char **reads = known ? NULL : realloc(w->mail.reads, (w->mail.n_reads + 1) * sizeof *reads);
    if (reads) {
        w->mail.reads = reads;
        reads[w->mail.n_reads] = strdup(path);
        w->mail.n_reads += reads[w->mail.n_reads] != NULL;
    }
    pthread_mutex_unlock(&w->lock);
}

static int take(struct work *w, int slot)
{
    return slot >= 0 && slot < w->judgement->n_slots && !atomic_exchange(&w->taken[slot], 1);
}

static int next_slot(struct work *w)
{
    int slot = atomic_load(&w->preferred);
    if (take(w, slot))
        return slot;
    while ((slot = atomic_fetch_add(&w->next, 1)) < w->judgement->n_slots)
        if (take(w, slot))
            return slot;
    return -1;
}

/* A run's cancel is spent with the run; quitting is for good. */
static int stopped(struct work *w)
{
    return atomic_load(&w->quit) || atomic_load(&w->cancel);
}

static int judge_step(void *ctx, int worker)
{
    struct work *w = ctx;
    if (stopped(w) || atomic_load(&w->judge_failed))
        return 0;
    int slot = next_slot(w);
    if (slot < 0)
        return 0;
    if (judgement_slot(w->judgement, w->trace, slot, w->scratch[worker]) != 0)
        atomic_store(&w->judge_failed, 1);
    pthread_mutex_lock(&w->lock);
    w->mail.done = atomic_load(&w->judgement->n_done);
    w->mail.total = w->judgement->n_slots;
    pthread_mutex_unlock(&w->lock);
    signal_mail(w);
    return 1;
}

/* Evidence for the causes, one slot a step; each worker adds up its own. */
static int collect_step(void *ctx, int worker)
{
    struct work *w = ctx;
    const int slot = atomic_fetch_add(&w->next, 1);
    if (slot >= w->judgement->n_slots || stopped(w) || atomic_load(&w->judge_failed))
        return 0;
    if (judgement_collect(w->judgement, w->trace, &w->plan, slot, w->scratch[worker], w->evidence[worker]) != 0)
        atomic_store(&w->judge_failed, 1);
    return 1;
}

/* The roots of one slot a step, in slots where any number is none. */
static int onset_step(void *ctx, int worker)
{
    struct work *w = ctx;
    struct onset *found = NULL;
    const int slot = atomic_fetch_add(&w->next, 1);
    if (slot >= w->judgement->n_slots || stopped(w) || atomic_load(&w->judge_failed))
        return 0;
    if (run_onset_wanted(w->judgement, slot)) {
        found = malloc(sizeof *found);
        if (!found || onset_of_slot(w->trace, slot, w->scratch[worker], found) != 0)
            atomic_store(&w->judge_failed, 1);
    }
    pthread_mutex_lock(&w->lock);
    if (found && !atomic_load(&w->judge_failed))
        run_onset_add(w->onset, w->trace, slot, found);
    w->mail.done = slot + 1;
    w->mail.total = w->judgement->n_slots;
    pthread_mutex_unlock(&w->lock);
    free(found);
    return 1;
}

/* Of an ordinary run; causes and onset are no question of an isolated one. */
static void find_onset(struct work *w)
{
    int wanted = 0;
    for (int slot = 0; slot < w->judgement->n_slots && !wanted; slot++)
        wanted = run_onset_wanted(w->judgement, slot);
    if (!wanted || w->run)
        return;
    if (run_onset_new(w->trace, &w->onset) != 0) {
        atomic_store(&w->judge_failed, 1);
        return;
    }
    enter_phase(w, PHASE_JUDGING, "looking where NaN begins");
    atomic_store(&w->next, 0);
    pool_start(w->pool, onset_step, w);
    pool_wait(w->pool);
}

static int find(struct work *w, struct err *err)
{
    struct summary summary;
    struct finding *findings = calloc(MAX_FINDINGS, sizeof *findings);
    const int workers = pool_threads(w->pool);
    judgement_summarise(w->judgement, w->trace, &summary);
    find_onset(w);
    const unsigned culprits = w->run ? 0 : summary.culprits; /* causes are for the ordinary run */
    if (judgement_plan(w->judgement, w->trace, culprits, w->scratch[0], &w->plan) != 0 ||
        masks_find(w->judgement->masks, w->trace) != 0)
        atomic_store(&w->judge_failed, 1);
    w->evidence = calloc((size_t)workers, sizeof *w->evidence);
    atomic_store(&w->next, 0);
    if (w->evidence && culprits) {
        pool_start(w->pool, collect_step, w);
        pool_wait(w->pool);
        for (int i = 1; i < workers; i++)
            cause_add_evidence(w->evidence[0], w->evidence[i]);
    }
    struct state_break state_break = {.slot = -1};
    if (!w->run && !stopped(w) && states_find_break(w->judgement, w->trace, w->scratch[0], &state_break) != 0)
        atomic_store(&w->judge_failed, 1);
    const int complete = findings && w->evidence && !atomic_load(&w->judge_failed) && !stopped(w);
    const int n =
        complete ? judgement_find(w->judgement, w->trace, &summary, &w->plan, w->evidence[0], w->scratch[0], findings)
                 : 0;
    free(w->evidence);
    w->evidence = NULL;
    if (!complete) {
        free(findings);
        run_onset_free(w->onset);
        w->onset = NULL;
        return stopped(w) ? err_set(err, ERR_CANCELLED, "", "cancelled while looking for causes")
                          : err_set(err, ERR_SYSTEM, "", "no memory to look for causes");
    }
    onset_tell(w->onset, findings, n);
    pthread_mutex_lock(&w->lock);
    w->mail.state_break = state_break;
    w->mail.findings = findings;
    w->mail.n_findings = n;
    run_onset_free(w->mail.onset);
    w->mail.onset = w->onset;
    w->onset = NULL;
    w->mail.complete = 1;
    pthread_mutex_unlock(&w->lock);
    signal_mail(w);
    return 0;
}

/* Judges w->trace; the judgement is mailed at once, so that views see it fill. */
static int judge(struct work *w, struct err *err)
{
    free(w->taken);
    w->taken = calloc((size_t)w->trace->layout.n_slots, sizeof *w->taken);
    if (!w->taken || judgement_new(w->trace, &w->judgement) != 0 ||
        judgement_fingerprint(w->judgement, w->trace, w->scratch[0]) != 0) {
        judgement_free(w->judgement);
        w->judgement = NULL;
        trace_free(w->trace);
        w->trace = NULL;
        return err_errno(err, "", "no memory for the verdicts");
    }
    atomic_store(&w->next, 0);
    atomic_store(&w->judge_failed, 0);
    enter_phase(w, PHASE_JUDGING, "judging");
    pthread_mutex_lock(&w->lock);
    w->mail.trace = w->trace;
    w->mail.judgement = w->judgement;
    pthread_mutex_unlock(&w->lock);
    signal_mail(w);

    pool_start(w->pool, judge_step, w);
    pool_wait(w->pool);
    if (stopped(w))
        return err_set(err, ERR_CANCELLED, "", "cancelled while judging");
    if (atomic_load(&w->judge_failed))
        return err_set(err, ERR_SYSTEM, "", "no memory to judge with");
    return find(w, err);
}

/* Fills the fed trace, one slot a step. */
static int feed_step(void *ctx, int worker)
{
    struct work *w = ctx;
    const int slot = atomic_fetch_add(&w->next, 1);
    if (slot >= w->run->layout.n_slots || stopped(w) || atomic_load(&w->judge_failed))
        return 0;
    if (feed_slot(&w->feed, slot, w->scratch[worker]) != 0)
        atomic_store(&w->judge_failed, 1);
    return 1;
}

static int fill_feed(struct work *w, const struct trace *from, uint32_t channels, struct err *err)
{
    if (feed_open(&w->feed, w->run, from, channels, err) != 0)
        return -1;
    atomic_store(&w->next, 0);
    atomic_store(&w->judge_failed, 0);
    pool_start(w->pool, feed_step, w);
    pool_wait(w->pool);
    if (!stopped(w) && !atomic_load(&w->judge_failed))
        return 0;
    feed_close(&w->feed);
    return stopped(w) ? err_set(err, ERR_CANCELLED, "", "cancelled before the isolated run")
                      : err_set(err, ERR_SYSTEM, "", "no memory for the fed values");
}

static int isolate(struct work *w, const struct runner_progress *progress, struct err *err)
{
    const char *path = w->request->feed;
    const uint32_t channels = isolation_channels(w->request->stages, w->run);
    struct trace *from = NULL;
    on_report(w, path[0] ? "reading what is fed" : "computing the reference", 0, 0);
    int failed = path[0] && (trace_open(path, &from, err) != 0 || feed_check(w->run, from, path, channels, err) != 0);
    failed = failed || fill_feed(w, from, channels, err) != 0;
    trace_free(from);
    if (failed)
        return -1;
    return record_fed(&w->feed_recorder, w->paths, w->scenario, w->run, feed_finish(&w->feed), channels, progress,
                      &w->trace, err);
}

static int look_step(void *ctx, int worker)
{
    struct work *w = ctx;
    (void)worker;
    if (stopped(w) || !seek_step(w->seek))
        return 0;
    pthread_mutex_lock(&w->lock);
    w->mail.done = atomic_load(&w->seek->done);
    w->mail.total = w->seek->n_slots;
    pthread_mutex_unlock(&w->lock);
    signal_mail(w);
    return 1;
}

static void look(struct work *w, struct err *err)
{
    pool_start(w->pool, look_step, w);
    pool_wait(w->pool);
    if (stopped(w))
        err_set(err, ERR_CANCELLED, "", "cancelled while looking");
}

static void *work_thread(void *ctx)
{
    struct work *w = ctx;
    struct err err = {0}, judge_err = {0};
    struct runner_progress progress = {
        .report = on_report, .log = on_log, .ctx = w, .cancel = &w->cancel, .reads = on_reads};
    if (w->seek)
        look(w, &err);
    else if (w->run)
        isolate(w, &progress, &err);
    else if (w->scenario && record(&w->recorder, w->paths, w->scenario, &progress, &w->trace, &err) == 0)
        measure_beside(&w->plain_recorder, w->paths, w->scenario, &progress, &w->trace->info);
    /* A run that ended early has left a trace: it is shown, and judged as far as it goes. */
    if (w->trace && !w->seek) {
        /* The cancel that ended the run is spent; another one, or quitting, ends the judging too. */
        if (err.code == ERR_CANCELLED)
            atomic_store(&w->cancel, 0);
        judge(w, &judge_err);
        if (err.code == ERR_NONE)
            err = judge_err;
    }
    pthread_mutex_lock(&w->lock);
    w->mail.err = err;
    w->mail.finished = 1;
    pthread_mutex_unlock(&w->lock);
    signal_mail(w);
    return NULL;
}

void work_wait(struct work *w)
{
    if (w->joinable)
        pthread_join(w->thread, NULL);
    w->joinable = 0;
}

static int start(struct work *w, struct seek *seek)
{
    if (work_busy(w))
        return -1;
    work_wait(w);
    w->seek = seek;
    w->mail.sought = seek != NULL;
    w->mail.done = w->mail.total = 0;
    atomic_store(&w->cancel, 0);
    atomic_store(&w->busy, 1);
    if (pthread_create(&w->thread, NULL, work_thread, w) != 0) {
        atomic_store(&w->busy, 0);
        enter_phase(w, PHASE_IDLE, "");
        return -1;
    }
    w->joinable = 1;
    return 0;
}

int work_run(struct work *w, const struct runner_paths *paths, const struct scenario *scenario)
{
    if (work_busy(w))
        return -1;
    w->paths = paths;
    w->scenario = scenario;
    w->run = NULL;
    w->trace = NULL;
    w->judgement = NULL;
    enter_phase(w, PHASE_BUILDING, "compiling");
    return start(w, NULL);
}

int work_judge(struct work *w, struct trace *t)
{
    if (work_busy(w))
        return -1;
    w->scenario = NULL;
    w->run = NULL;
    w->trace = t;
    w->judgement = NULL;
    enter_phase(w, PHASE_JUDGING, "judging");
    return start(w, NULL);
}

int work_isolate(struct work *w, const struct runner_paths *paths, const struct scenario *scenario,
                 const struct trace *run, const struct isolation_request *request)
{
    if (work_busy(w))
        return -1;
    w->paths = paths;
    w->scenario = scenario;
    w->run = run;
    w->request = request;
    w->trace = NULL;
    w->judgement = NULL;
    enter_phase(w, PHASE_BUILDING, "isolating");
    return start(w, NULL);
}

int work_seek(struct work *w, struct seek *seek)
{
    return start(w, seek);
}

void work_cancel(struct work *w)
{
    atomic_store(&w->cancel, 1);
}

void work_prefer(struct work *w, int slot)
{
    atomic_store(&w->preferred, slot);
}

int work_collect(struct work *w, struct mail *mail)
{
    uint64_t count;
    if (read(w->event_fd, &count, sizeof count) < 0 || !atomic_exchange(&w->mailed, 0))
        return 0;
    pthread_mutex_lock(&w->lock);
    *mail = w->mail;
    w->mail.trace = NULL;
    w->mail.judgement = NULL;
    w->mail.findings = NULL;
    w->mail.onset = NULL;
    w->mail.complete = 0;
    w->mail.log = NULL;
    w->mail.n_log = 0;
    w->mail.reads = NULL;
    w->mail.n_reads = 0;
    w->mail.finished = 0;
    w->mail.err = (struct err){0};
    pthread_mutex_unlock(&w->lock);
    if (mail->finished)
        atomic_store(&w->busy, 0);
    return 1;
}

int work_new(struct work **out, struct err *err)
{
    struct work *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return err_errno(err, "", "no memory");
    oracle_init();
    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&w->lock, NULL);
    if (w->event_fd < 0) {
        err_errno(err, "", "eventfd");
        work_free(w);
        return -1;
    }
    if (pool_new(0, &w->pool, err) != 0) {
        work_free(w);
        return -1;
    }
    w->scratch = calloc((size_t)pool_threads(w->pool), sizeof(struct judge_scratch *));
    int failed = !w->scratch;
    for (int i = 0; !failed && i < pool_threads(w->pool); i++) {
        w->scratch[i] = judge_scratch_new();
        failed = !w->scratch[i];
    }
    if (failed) {
        work_free(w);
        return err_set(err, ERR_SYSTEM, "", "no memory to judge with");
    }
    *out = w;
    return 0;
}

static void drop_mail(struct mail *mail)
{
    judgement_free(mail->judgement);
    trace_free(mail->trace);
    free(mail->findings);
    run_onset_free(mail->onset);
    for (size_t i = 0; i < mail->n_log; i++)
        free(mail->log[i]);
    free(mail->log);
    for (size_t i = 0; i < mail->n_reads; i++)
        free(mail->reads[i]);
    free(mail->reads);
}

void work_free(struct work *w)
{
    if (!w)
        return;
    atomic_store(&w->quit, 1);
    work_cancel(w);
    work_wait(w);
    drop_mail(&w->mail);
    for (int i = 0; w->pool && w->scratch && i < pool_threads(w->pool); i++)
        judge_scratch_free(w->scratch[i]);
    free(w->scratch);
    pool_free(w->pool);
    recorder_free(&w->recorder);
    recorder_free(&w->feed_recorder);
    recorder_free(&w->plain_recorder);
    free(w->taken);
    if (w->event_fd >= 0)
        close(w->event_fd);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
