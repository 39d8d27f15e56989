#include "engine/base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct worker {
    struct pool *pool; /* borrowed */
    pthread_t thread;
    int number;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job was started, or quit */
    pthread_cond_t done; /* running fell to 0 */
    int (*step)(void *ctx, int worker);
    void *ctx;          /* borrowed */
    uint64_t job;       /* number of the job under way or last done */
    atomic_int running; /* workers that have not finished it; written under lock */
    atomic_int stop;    /* no further step; written under lock */
    int quit;
    int threads;
    struct worker workers[];
};

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    uint64_t seen = 0;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->quit && seen == p->job)
            pthread_cond_wait(&p->work, &p->lock);
        if (p->quit)
            break;
        seen = p->job;
        int (*step)(void *, int) = p->step;
        void *ctx = p->ctx;
        pthread_mutex_unlock(&p->lock);
        while (!atomic_load(&p->stop) && step(ctx, w->number))
            ;
        pthread_mutex_lock(&p->lock);
        if (atomic_fetch_sub(&p->running, 1) == 1)
            pthread_cond_broadcast(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Cores this process may run on: fewer than the machine's in a container or under taskset. */
static int cores(void)
{
    cpu_set_t set;
    long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1)
        return 1;
    return n > POOL_THREADS_MAX ? POOL_THREADS_MAX : (int)n;
}

/* All signals but those that a thread's own fault raises: blocking these would end the process without its handler. */
static void asynchronous_signals(sigset_t *set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(set, faults[i]);
}

/* Tells the workers to end and joins them. */
static void end_workers(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->quit = 1;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->threads; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int pool_new(int threads, struct pool **out, struct err *err)
{
    if (threads < 0 || threads > POOL_THREADS_MAX)
        return err_set(err, ERR_INPUT, "", "%d worker threads: expected 1 to %d, or 0 for as many as cores", threads,
                       POOL_THREADS_MAX);
    const int wanted = threads ? threads : cores();
    struct pool *p = calloc(1, sizeof *p + (size_t)wanted * sizeof *p->workers);
    if (!p)
        return err_errno(err, "", "worker threads");
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);

    sigset_t block, before; /* a thread inherits its creator's mask */
    asynchronous_signals(&block);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    int failed = 0;
    while (p->threads < wanted && !failed) {
        struct worker *w = &p->workers[p->threads];
        w->pool = p;
        w->number = p->threads;
        failed = pthread_create(&w->thread, NULL, worker_main, w);
        if (!failed)
            p->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        const int started = p->threads;
        end_workers(p);
        errno = failed;
        return err_errno(err, "", "worker thread %d of %d", started + 1, wanted);
    }
    *out = p;
    return 0;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pool_stop(p);
    end_workers(p);
}

/* Lock held. */
static void stop_running(struct pool *p)
{
    while (atomic_load(&p->running)) {
        atomic_store(&p->stop, 1);
        pthread_cond_wait(&p->done, &p->lock);
    }
    atomic_store(&p->stop, 0);
}

void pool_start(struct pool *p, int (*step)(void *ctx, int worker), void *ctx)
{
    pthread_mutex_lock(&p->lock);
    stop_running(p);
    p->step = step;
    p->ctx = ctx;
    p->job++;
    atomic_store(&p->running, p->threads);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
}

void pool_wait(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->running))
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void pool_stop(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    stop_running(p);
    pthread_mutex_unlock(&p->lock);
}

bool pool_idle(const struct pool *p)
{
    return atomic_load(&p->running) == 0;
}

int pool_threads(const struct pool *p)
{
    return p->threads;
}
