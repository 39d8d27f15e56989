#include "engine/base/pool.h"

#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ITEMS 10000

/* A list of items that the workers share. */
struct items {
    atomic_int next;
    int n;
    unsigned char done[ITEMS]; /* written by steps, without locks: each item by one worker */
    atomic_int calls[8];       /* per worker */
    atomic_int stray;          /* steps under a worker number that does not exist */
    int threads;
};

static int take_item(void *ctx, int worker)
{
    struct items *it = ctx;
    if (worker < 0 || worker >= it->threads)
        atomic_fetch_add(&it->stray, 1);
    else
        atomic_fetch_add(&it->calls[worker], 1);
    const int i = atomic_fetch_add(&it->next, 1);
    if (i >= it->n)
        return 0;
    it->done[i]++;
    return 1;
}

static struct pool *pool_of(int threads)
{
    struct err err;
    struct pool *p = NULL;
    assert_int_equal(pool_new(threads, &p, &err), 0);
    assert_non_null(p);
    return p;
}

/* Many jobs on one pool, with fewer and more items than workers: every item once, every worker asked. */
static void each_item_is_done_once(void **state)
{
    (void)state;
    static const int sizes[] = {0, 1, 2, 3, 4, 5, 17, 100, ITEMS};
    static struct items it;
    for (int threads = 1; threads <= 4; threads++) {
        struct pool *p = pool_of(threads);
        assert_int_equal(pool_threads(p), threads);
        assert_true(pool_idle(p));
        for (int repeat = 0; repeat < 50; repeat++) {
            memset(&it, 0, sizeof it);
            it.n = sizes[(size_t)repeat % (sizeof sizes / sizeof *sizes)];
            it.threads = threads;
            pool_start(p, take_item, &it);
            pool_wait(p);
            assert_true(pool_idle(p));
            for (int i = 0; i < ITEMS; i++)
                assert_int_equal(it.done[i], i < it.n);
            assert_int_equal(atomic_load(&it.stray), 0);
            for (int w = 0; w < threads; w++)
                assert_true(atomic_load(&it.calls[w]) >= 1);
        }
        pool_free(p);
    }
}

/* Steps that wait until they are let through, and never run out of work unless told to. */
struct gate {
    sem_t entered, open;
    atomic_int begun, ended;
    atomic_int last; /* return 0 from now on */
};

static void gate_init(struct gate *g)
{
    memset(g, 0, sizeof *g);
    sem_init(&g->entered, 0, 0);
    sem_init(&g->open, 0, 0);
}

static void gate_destroy(struct gate *g)
{
    sem_destroy(&g->entered);
    sem_destroy(&g->open);
}

static int pass_gate(void *ctx, int worker)
{
    (void)worker;
    struct gate *g = ctx;
    atomic_fetch_add(&g->begun, 1);
    sem_post(&g->entered);
    sem_wait(&g->open);
    atomic_fetch_add(&g->ended, 1);
    return !atomic_load(&g->last);
}

static void start_returns_while_steps_run(void **state)
{
    (void)state;
    struct gate g;
    gate_init(&g);
    struct pool *p = pool_of(2);
    pool_start(p, pass_gate, &g);
    assert_false(pool_idle(p));
    sem_wait(&g.entered);
    sem_wait(&g.entered);
    assert_false(pool_idle(p));
    atomic_store(&g.last, 1);
    sem_post(&g.open);
    sem_post(&g.open);
    pool_wait(p);
    assert_true(pool_idle(p));
    assert_int_equal(atomic_load(&g.ended), 2);
    pool_free(p);
    gate_destroy(&g);
}

/* Long enough that a stop which does not wait would return in the middle of it. */
static int sleep_a_little(void *ctx, int worker)
{
    (void)worker;
    struct gate *g = ctx;
    const struct timespec ms = {.tv_nsec = 1000000};
    atomic_fetch_add(&g->begun, 1);
    sem_post(&g->entered);
    nanosleep(&ms, NULL);
    atomic_fetch_add(&g->ended, 1);
    return 1;
}

static void stop_waits_for_running_steps(void **state)
{
    (void)state;
    struct gate g;
    gate_init(&g);
    struct pool *p = pool_of(2);
    for (int repeat = 0; repeat < 20; repeat++) {
        pool_start(p, sleep_a_little, &g);
        sem_wait(&g.entered);
        pool_stop(p);
        assert_true(pool_idle(p));
        assert_int_equal(atomic_load(&g.begun), atomic_load(&g.ended));
    }
    pool_free(p);
    gate_destroy(&g);
}

static int count_for_ever(void *ctx, int worker)
{
    (void)worker;
    atomic_fetch_add((atomic_long *)ctx, 1);
    return 1;
}

static void no_step_begins_after_stop(void **state)
{
    (void)state;
    atomic_long steps = 0;
    struct pool *p = pool_of(3);
    for (int repeat = 0; repeat < 200; repeat++) {
        pool_start(p, count_for_ever, &steps);
        if (repeat % 2)
            while (atomic_load(&steps) < repeat)
                ;
        pool_stop(p);
        const long then = atomic_load(&steps);
        assert_true(pool_idle(p));
        pool_stop(p); /* again: nothing to stop */
        pool_wait(p);
        assert_int_equal(atomic_load(&steps), then);
    }
    pool_free(p);
}

static void start_replaces_a_running_job(void **state)
{
    (void)state;
    static struct items it;
    atomic_long steps = 0;
    struct pool *p = pool_of(4);
    for (int repeat = 0; repeat < 20; repeat++) {
        memset(&it, 0, sizeof it);
        it.n = 100;
        it.threads = 4;
        pool_start(p, count_for_ever, &steps);
        pool_start(p, take_item, &it);
        const long then = atomic_load(&steps);
        pool_wait(p);
        assert_int_equal(atomic_load(&steps), then);
        for (int i = 0; i < it.n; i++)
            assert_int_equal(it.done[i], 1);
    }
    pool_free(p);
}

static void free_drops_the_rest(void **state)
{
    (void)state;
    atomic_long steps = 0;
    for (int repeat = 0; repeat < 50; repeat++) {
        struct pool *p = pool_of(1 + repeat % 4);
        if (repeat % 5)
            pool_start(p, count_for_ever, &steps);
        pool_free(p);
        const long then = atomic_load(&steps);
        assert_int_equal(atomic_load(&steps), then);
    }
    pool_free(NULL);
}

static int look_at_mask(void *ctx, int worker)
{
    (void)worker;
    pthread_sigmask(SIG_SETMASK, NULL, ctx);
    return 0;
}

static void workers_leave_signals_to_others(void **state)
{
    (void)state;
    sigset_t inside, before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    struct pool *p = pool_of(1);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    pool_start(p, look_at_mask, &inside);
    pool_wait(p);
    pool_free(p);
    assert_true(sigismember(&inside, SIGINT) && sigismember(&inside, SIGWINCH) && sigismember(&inside, SIGCHLD));
    assert_false(sigismember(&inside, SIGSEGV) || sigismember(&inside, SIGFPE));
    assert_int_equal(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

static void thread_counts(void **state)
{
    (void)state;
    struct pool *p = pool_of(0);
    assert_true(pool_threads(p) >= 1);
    pool_free(p);
    static const int wrong[] = {-1, POOL_THREADS_MAX + 1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err err = {0};
        p = NULL;
        assert_int_equal(pool_new(wrong[i], &p, &err), -1);
        assert_null(p);
        assert_int_equal(err.code, ERR_INPUT);
        assert_non_null(strstr(err.message, "expected 1 to 1024"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_done_once),          cmocka_unit_test(start_returns_while_steps_run),
        cmocka_unit_test(stop_waits_for_running_steps),    cmocka_unit_test(no_step_begins_after_stop),
        cmocka_unit_test(start_replaces_a_running_job),    cmocka_unit_test(free_drops_the_rest),
        cmocka_unit_test(workers_leave_signals_to_others), cmocka_unit_test(thread_counts),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
