#include "cli/trial.h"

#include "cli/report.h"
#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "engine/session/work.h"

#include <poll.h>
#include <string.h>

#define TICK_MS 100 /* between two looks at the clock */

void trial_watch_init(struct trial_watch *w)
{
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
}

void trial_watch_end(struct trial_watch *w)
{
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

bool trial_spent(const struct trial_watch *w)
{
    return clock_seconds() - w->begun > w->limit_s;
}

static void tell(const struct trial_watch *w, enum runner_step step, double since, double done, double total)
{
    char line[256], part[64] = "";
    if (total > 0)
        snprintf(part, sizeof part, ", %.0f of %.0f", done, total);
    snprintf(line, sizeof line, "%.0f of %.0f s: %s: %s %.0f s%s", clock_seconds() - w->begun, w->limit_s, w->label,
             runner_step_words(step), clock_seconds() - since, part);
    text_progress(line);
}

static void on_report(void *ctx, enum runner_step step, double done, double total)
{
    struct trial_watch *w = ctx;
    pthread_mutex_lock(&w->lock);
    if (step != w->step) {
        w->step = step;
        w->since = clock_seconds();
    }
    w->done = done;
    w->total = total;
    pthread_mutex_unlock(&w->lock);
}

/* Work on a thread of its own, so that the clock is looked at whatever it does. */
struct task {
    struct trial_watch *watch;
    int (*work)(void *ctx, const struct runner_progress *progress, struct err *err);
    void *ctx;
    struct err *err;
    int failed;
};

static void *task_thread(void *ctx)
{
    struct task *task = ctx;
    struct trial_watch *w = task->watch;
    const struct runner_progress progress = {.report = on_report, .ctx = w, .cancel = &w->cancel};
    task->failed = task->work(task->ctx, &progress, task->err);
    pthread_mutex_lock(&w->lock);
    w->ended = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ERR_CANCELLED: the budget ran out. */
int trial_work(struct trial_watch *w, int (*work)(void *, const struct runner_progress *, struct err *), void *ctx,
               struct err *err)
{
    struct task task = {.watch = w, .work = work, .ctx = ctx, .err = err};
    pthread_t thread;
    w->ended = false;
    w->done = w->total = 0;
    w->since = clock_seconds();
    w->step = STEP_STARTING;
    atomic_store(&w->cancel, 0);
    if (pthread_create(&thread, NULL, task_thread, &task) != 0)
        return err_set(err, ERR_SYSTEM, "", "no thread could be started");
    pthread_mutex_lock(&w->lock);
    while (!w->ended) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TICK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&w->changed, &w->lock, &until);
        if (trial_spent(w))
            atomic_store(&w->cancel, 1);
        tell(w, w->step, w->since, w->done, w->total);
    }
    pthread_mutex_unlock(&w->lock);
    pthread_join(thread, NULL);
    return task.failed;
}

/* The session's run and its verdicts. A cancel ends the run; what it left is judged unless another one comes. */
int trial_session(struct trial_watch *w, struct session *s, struct err *err)
{
    if (session_start(s) != 0)
        return err_set(err, ERR_SYSTEM, "", "no thread could be started");
    while (session_busy(s)) {
        struct pollfd fd = {.fd = session_fd(s), .events = POLLIN};
        poll(&fd, 1, TICK_MS);
        session_update(s);
        tell(w, s->job.step, s->job.step_since, s->job.done, s->job.total);
        if (trial_spent(w))
            session_cancel(s);
    }
    if (s->job.err.code == ERR_NONE)
        return 0;
    *err = s->job.err;
    return -1;
}

int trial_run(struct trial_watch *w, struct session *s, struct scenario *scenario, char found[TRIAL_FOUND_BYTES],
              struct err *err)
{
    char why[TRIAL_FOUND_BYTES];
    found[0] = '\0';
    scenario_free(&s->subject.scenario);
    s->subject.scenario = *scenario;
    if (scenario_check(&s->subject.scenario, err) != 0 || trial_session(w, s, err) != 0)
        return -1;
    if (!report_meets(s, why, sizeof why)) {
        report_found(s, found);
        return 1;
    }
    if (report_checks(s, why, sizeof why))
        return 0;
    memcpy(found, why, sizeof why);
    return 1;
}

void trial_error_words(const struct err *err, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s%s%.*s", err->where, err->where[0] ? ": " : "", (int)strcspn(err->message, "\n"),
             err->message);
}
