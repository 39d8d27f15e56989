#include "engine/session/work.h"

#include "engine/base/clock.h"
#include "engine/base/file_map.h"
#include "engine/run/ahead.h"
#include "engine/run/measure.h"
#include "engine/session/work_parts.h"
#include "engine/verdict/onset.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static void on_report(void *ctx, enum runner_step step, double done, double total)
{
    struct work *w = ctx;
    pthread_mutex_lock(&w->lock);
    if (step != w->mail.step)
        work_turn(w, step);
    if (step == STEP_RUNNING || step == STEP_FIRST_PASS)
        w->mail.phase = PHASE_RUNNING;
    w->mail.done = done;
    w->mail.total = total;
    pthread_mutex_unlock(&w->lock);
    work_signal(w);
}

static void on_log(void *ctx, const char *line)
{
    struct work *w = ctx;
    pthread_mutex_lock(&w->lock);
    log_add(&w->mail.log, line);
    pthread_mutex_unlock(&w->lock);
    work_signal(w);
}

static void on_say(void *ctx, const char *line)
{
    struct work *w = ctx;
    pthread_mutex_lock(&w->lock);
    snprintf(w->mail.said, sizeof w->mail.said, "%s", line);
    pthread_mutex_unlock(&w->lock);
}

static void on_remarks(void *ctx, size_t lines, bool cached)
{
    struct work *w = ctx;
    pthread_mutex_lock(&w->lock);
    w->mail.log.n_remarks += lines;
    w->mail.log.fresh_remarks |= !cached;
    pthread_mutex_unlock(&w->lock);
}

static void on_part(void *ctx, const char *name, double seconds)
{
    struct work *w = ctx;
    struct runner_spent *spent = &w->mail.spent;
    int i = 0;
    pthread_mutex_lock(&w->lock);
    while (i < spent->n_parts && strcmp(spent->part[i].name, name) != 0)
        i++;
    if (i < SPENT_PARTS_MAX && i == spent->n_parts)
        snprintf(spent->part[spent->n_parts++].name, sizeof spent->part[i].name, "%s", name);
    if (i < SPENT_PARTS_MAX)
        spent->part[i].seconds += seconds;
    pthread_mutex_unlock(&w->lock);
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

/* Fills the fed trace, one slot a step. */
static int feed_step(void *ctx, int worker)
{
    struct work *w = ctx;
    const int slot = atomic_fetch_add(&w->next, 1);
    if (slot >= w->run->layout.n_slots || work_stopped(w) || atomic_load(&w->judge_failed))
        return 0;
    if (feed_slot(&w->feed, slot, w->scratch[worker]) != 0)
        atomic_store(&w->judge_failed, 1);
    work_walked(w, worker);
    return 1;
}

static int fill_feed(struct work *w, const struct trace *from, uint32_t channels, struct err *err)
{
    if (feed_open(&w->feed, w->run, from, channels, err) != 0)
        return -1;
    atomic_store(&w->judge_failed, 0);
    work_pass(w, w->run, PHASE_BUILDING, from ? STEP_READING_FED : STEP_REFERENCE);
    pool_start(w->pool, feed_step, w);
    pool_wait(w->pool);
    if (!work_stopped(w) && !atomic_load(&w->judge_failed))
        return 0;
    feed_close(&w->feed);
    return work_stopped(w) ? err_set(err, ERR_CANCELLED, "", "cancelled before the isolated run")
                           : err_no_memory(err, "", "the fed values");
}

static int isolate(struct work *w, const struct runner_progress *progress, struct err *err)
{
    const char *path = w->request->feed;
    const uint32_t channels = isolation_channels(w->request->stages, w->run);
    struct trace *from = NULL;
    on_report(w, path[0] ? STEP_READING_FED : STEP_REFERENCE, 0, 0);
    int failed = path[0] && (trace_open(path, &from, err) != 0 || feed_check(w->run, from, path, channels, err) != 0);
    failed = failed || fill_feed(w, from, channels, err) != 0 || (from && file_map_check(from->bytes, err) != 0);
    trace_free(from);
    if (failed)
        return -1;
    return record_fed(&w->feed_recorder, w->paths, w->scenario, w->run, feed_finish(&w->feed), channels, progress,
                      &w->trace, err);
}

static void run(struct work *w, const struct runner_progress *progress, struct err *err)
{
    struct build_ahead *plain = !w->scenario->on[0] && measures_beside(w->paths, w->scenario)
                                    ? build_ahead_start(w->paths, w->scenario, PROBES_NONE, &w->plain_recorder.build)
                                    : NULL;
    const int failed = record(&w->recorder, w->paths, w->scenario, progress, &w->trace, err);
    build_ahead_end(plain, failed == 0);
    if (failed == 0 && !w->scenario->on[0])
        measure_beside(&w->plain_recorder, &w->measured, w->paths, w->scenario, progress, &w->trace->info);
}

static int look_step(void *ctx, int worker)
{
    struct work *w = ctx;
    (void)worker;
    if (work_stopped(w) || !seek_step(w->seek))
        return 0;
    pthread_mutex_lock(&w->lock);
    w->mail.done = atomic_load(&w->seek->done);
    w->mail.total = w->seek->n_slots;
    pthread_mutex_unlock(&w->lock);
    work_signal(w);
    return 1;
}

static void look(struct work *w, struct err *err)
{
    pool_start(w->pool, look_step, w);
    pool_wait(w->pool);
    if (work_stopped(w))
        err_set(err, ERR_CANCELLED, "", "cancelled while searching");
}

static void *work_thread(void *ctx)
{
    struct work *w = ctx;
    struct err err = {0}, judge_err = {0};
    struct runner_progress progress = {.report = on_report,
                                       .log = on_log,
                                       .remarks = on_remarks,
                                       .ctx = w,
                                       .cancel = &w->cancel,
                                       .reads = on_reads,
                                       .say = on_say,
                                       .part = on_part};
    if (w->seek)
        look(w, &err);
    else if (w->run)
        isolate(w, &progress, &err);
    else if (w->scenario)
        run(w, &progress, &err);
    /* A run that ended early has left a trace: it is shown, and judged as far as it goes. */
    if (w->trace && !w->seek) {
        /* The cancel that ended the run is spent; another one, or quitting, ends the judging too. */
        if (err.code == ERR_CANCELLED)
            atomic_store(&w->cancel, 0);
        work_judge_trace(w, &judge_err);
        if (err.code == ERR_NONE)
            err = judge_err;
    }
    pthread_mutex_lock(&w->lock);
    work_turn(w, STEP_NONE);
    w->mail.err = err;
    w->mail.finished = 1;
    pthread_mutex_unlock(&w->lock);
    work_signal(w);
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
    w->walks = NULL;
    w->mail.sought = seek != NULL;
    w->mail.done = w->mail.total = 0;
    atomic_store(&w->cancel, 0);
    atomic_store(&w->busy, 1);
    if (pthread_create(&w->thread, NULL, work_thread, w) != 0) {
        atomic_store(&w->busy, 0);
        work_enter(w, PHASE_IDLE, STEP_NONE);
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
    w->mail.spent = (struct runner_spent){0};
    work_enter(w, PHASE_BUILDING, STEP_READING);
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
    work_enter(w, PHASE_JUDGING, STEP_JUDGING);
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
    work_enter(w, PHASE_BUILDING, STEP_ISOLATING);
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

int work_new(struct work **out, struct err *err)
{
    struct work *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return err_no_memory(err, "", "the session's threads");
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
    w->asks = calloc((size_t)pool_threads(w->pool), sizeof *w->asks);
    int failed = !w->scratch || !w->asks;
    for (int i = 0; !failed && i < pool_threads(w->pool); i++) {
        w->scratch[i] = judge_scratch_new();
        failed = !w->scratch[i];
        w->asks[i].work = w;
        if (!failed)
            judge_scratch_watch(w->scratch[i], work_ask, &w->asks[i]);
    }
    if (failed) {
        work_free(w);
        return err_no_memory(err, "", "judging");
    }
    *out = w;
    return 0;
}

void work_free(struct work *w)
{
    if (!w)
        return;
    atomic_store(&w->quit, 1);
    work_cancel(w);
    work_wait(w);
    work_drop_mail(&w->mail);
    for (int i = 0; w->pool && w->scratch && i < pool_threads(w->pool); i++)
        judge_scratch_free(w->scratch[i]);
    free(w->scratch);
    free(w->asks);
    pool_free(w->pool);
    recorder_free(&w->recorder);
    recorder_free(&w->feed_recorder);
    recorder_free(&w->plain_recorder);
    measured_free(&w->measured);
    free(w->taken);
    if (w->event_fd >= 0)
        close(w->event_fd);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
