#include "engine/simt/launch.h"

#include "engine/simt/allocated.h"
#include "engine/simt/bulk.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/cluster.h"
#include "engine/simt/fiber.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRAIN_MS 2000 /* a block takes milliseconds; one that waits for another block never ends */
#define WORKERS_MAX 256u
/* Each stack and its guard are two mappings; Linux allows a process 65530 (vm.max_map_count). */
#define STACKS_MAX 30000u

static struct simt_options options;
static atomic_bool cancelled;
static struct {
    bool on;
    unsigned threads;
} rehearsal;
static pthread_mutex_t launch_lock = PTHREAD_MUTEX_INITIALIZER; /* one launch at a time, as in one stream */
static struct worker *pool[WORKERS_MAX];                        /* owned; kept for the next launch */
static struct cluster clusters[WORKERS_MAX];                    /* of the launch under way: n workers each, in order */

/* The launch under way. */
static struct {
    uint64_t n_blocks, n_clusters;
    struct simt_dim said; /* by the kernel, of its clusters, where the launch said nothing; 0: nothing yet */
    atomic_uint_fast64_t next;
    atomic_bool stop;
    pthread_mutex_t progress_lock;
    uint64_t done;
} now = {.progress_lock = PTHREAD_MUTEX_INITIALIZER};

const struct simt_options *launch_options(void)
{
    return &options;
}

void simt_configure(const struct simt_options *wanted)
{
    options = *wanted;
    report_begin_launch(); /* an error of the run before is none of this one's */
    recorders_begin_run();
    if (checks_wanted())
        checks_configure(wanted);
}

unsigned simt_rehearse(bool begin)
{
    const unsigned threads = rehearsal.threads;
    rehearsal.on = begin;
    rehearsal.threads = 0;
    report_begin_launch();
    return threads;
}

bool launch_rehearsed(void)
{
    return rehearsal.on;
}

void simt_where(void)
{
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        if (pool[i] && atomic_load(&pool[i]->in_block))
            stands_ask(pool[i]->thread);
}

void simt_cancel(void)
{
    atomic_store(&cancelled, true);
}

const char *simt_error(void)
{
    return report_error();
}

static void block_done(void)
{
    if (!options.progress)
        return;
    pthread_mutex_lock(&now.progress_lock);
    options.progress(options.ctx, ++now.done, now.n_blocks);
    pthread_mutex_unlock(&now.progress_lock);
}

static atomic_int busy; /* workers inside of a block */

void launch_drain(void)
{
    const struct timespec step = {.tv_nsec = 1000000};
    atomic_store(&now.stop, true);
    atomic_fetch_sub(&busy, 1); /* the caller's own never ends */
    for (int ms = 0; ms < DRAIN_MS && atomic_load(&busy) > 0; ms++)
        nanosleep(&step, NULL);
}

static bool draw_cluster(uint64_t *number)
{
    if (atomic_load_explicit(&now.stop, memory_order_relaxed) || atomic_load(&cancelled))
        return false;
    *number = atomic_fetch_add(&now.next, 1);
    return *number < now.n_clusters;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    stack_t handlers = {.ss_sp = w->signal_stack, .ss_size = TRAPS_STACK_BYTES};
    sigaltstack(&handlers, NULL);
    simt_tls.worker = w;
    w->thread = pthread_self();
    while (cluster_next(w, draw_cluster)) {
        const struct simt_dim grid = w->launch->grid;
        w->block = cluster_block(w->launch, w->cluster->number, w->rank);
        if (!w->rank)
            atomic_fetch_add(&busy, 1);
        atomic_store(&w->in_block, true);
        block_set_up(w, ((uint64_t)w->block.z * grid.y + w->block.y) * grid.x + w->block.x);
        cluster_begun(w);
        if (!w->cluster->failed)
            block_run(w);
        const bool failed = w->failed || w->cluster->failed;
        atomic_store(&w->in_block, false);
        if (failed)
            atomic_store(&now.stop, true);
        cluster_left(w);
        if (!w->rank)
            atomic_fetch_sub(&busy, 1);
        if (!failed)
            block_done();
    }
    simt_tls.worker = NULL;
    return NULL;
}

static void worker_free(struct worker *w)
{
    if (!w)
        return;
    fiber_stacks_unmap(w->stacks, w->n_stacks);
    free(w->signal_stack);
    checks_free(w->checks);
    copies_free(w);
    bulk_free(w);
    wgmma_free(w);
    free(w);
}

/* Worker i, with stacks for a block of `threads`. NULL with errno. */
static struct worker *worker_get(unsigned i, unsigned threads)
{
    struct worker *w = pool[i];
    if (w && w->n_stacks >= threads)
        return w;
    worker_free(w);
    pool[i] = NULL;
    if (!(w = calloc(1, sizeof *w)))
        return NULL;
    w->signal_stack = malloc(TRAPS_STACK_BYTES);
    w->checks = checks_wanted() ? checks_new() : NULL;
    w->stacks = w->signal_stack && (w->checks || !checks_wanted()) ? fiber_stacks_map(threads) : NULL;
    w->n_stacks = threads;
    if (!w->stacks) {
        const int saved = errno;
        worker_free(w);
        errno = saved;
        return NULL;
    }
    return pool[i] = w;
}

/* How many clusters run at a time. */
static unsigned cluster_count(unsigned threads, unsigned in_cluster)
{
    cpu_set_t usable;
    const int cores = sched_getaffinity(0, sizeof usable, &usable) ? 0 : CPU_COUNT(&usable);
    uint64_t n = options.workers > 0 ? (uint64_t)options.workers : cores > 0 ? (uint64_t)cores : 1;
    const uint64_t limits[] = {WORKERS_MAX / in_cluster, STACKS_MAX / threads / in_cluster, now.n_clusters};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        n = n < limits[i] ? n : limits[i];
    return (unsigned)n;
}

/* Limits of every GPU since compute capability 9.0 (CUDA C++ Programming Guide, technical specifications). */
static int check(const struct simt_launch *l)
{
    const struct simt_dim g = l->grid, b = l->block;
    const char *name = l->name ? l->name : "kernel";
    if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z)
        report_raise(EVENT_LAUNCH, true, NULL, 0, NULL,
                     "%s: a grid of (%u,%u,%u) blocks of (%u,%u,%u) threads is empty", name, g.x, g.y, g.z, b.x, b.y,
                     b.z);
    else if (g.x > INT32_MAX || g.y > 65535 || g.z > 65535)
        report_raise(EVENT_LAUNCH, true, NULL, 0, NULL,
                     "%s: a grid of (%u,%u,%u) blocks exceeds the limit (2147483647,65535,65535)", name, g.x, g.y, g.z);
    else if (b.x > 1024 || b.y > 1024 || b.z > 64 || (uint64_t)b.x * b.y * b.z > SIMT_THREADS_MAX)
        report_raise(EVENT_LAUNCH, true, NULL, 0, NULL, "%s: a block of (%u,%u,%u) threads, at most %u are allowed",
                     name, b.x, b.y, b.z, SIMT_THREADS_MAX);
    else if (l->shared_bytes > SIMT_SHARED_MAX)
        report_raise(EVENT_SHARED_MEMORY, true, NULL, 0, NULL,
                     "%s: %zu bytes of dynamic shared memory, at most %u are allowed", name, l->shared_bytes,
                     SIMT_SHARED_MAX);
    else
        return 0;
    return -1;
}

static int check_cluster(const struct simt_launch *l)
{
    const struct simt_dim g = l->grid, c = l->cluster;
    const char *name = l->name ? l->name : "kernel";
    if (!c.x || !c.y || !c.z || (uint64_t)c.x * c.y * c.z > CLUSTER_MAX)
        report_raise(EVENT_LAUNCH, true, NULL, 0, NULL,
                     "%s: a cluster of (%u,%u,%u) blocks, 1 to %u are allowed on every device", name, c.x, c.y, c.z,
                     CLUSTER_MAX);
    else if (g.x % c.x || g.y % c.y || g.z % c.z)
        report_raise(EVENT_LAUNCH, true, NULL, 0, NULL,
                     "%s: a grid of (%u,%u,%u) blocks is not made of clusters of (%u,%u,%u)", name, g.x, g.y, g.z, c.x,
                     c.y, c.z);
    else
        return 0;
    return -1;
}

/* The plan speaks of the kernel that is probed: another one beside it, that copies or merges, has blocks of its own. */
static void check_plan(const struct simt_launch *l, unsigned threads, unsigned workers)
{
    bool probed = false;
    for (unsigned i = 0; i < workers; i++)
        probed = probed || pool[i]->probed;
    if (probed && options.planned_threads && threads != (unsigned)options.planned_threads)
        report_raise(EVENT_LAUNCH, false, NULL, 0, NULL, "%s: launched with %u threads a block, the plan says %d",
                     l->name ? l->name : "kernel", threads, options.planned_threads);
}

/* Puts workers to each cluster that runs at a time, and runs until no block is left, or one failed. */
static unsigned run_blocks(const struct simt_launch *l)
{
    const unsigned threads = l->block.x * l->block.y * l->block.z;
    const unsigned in_cluster = l->cluster.x * l->cluster.y * l->cluster.z;
    now.n_blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z;
    now.n_clusters = now.n_blocks / in_cluster;
    now.done = 0;
    atomic_store(&now.next, 0);
    atomic_store(&now.stop, false);
    const unsigned wanted = cluster_count(threads, in_cluster) * in_cluster;
    pthread_t thread[WORKERS_MAX];
    unsigned n = 0, started = 0;
    for (; n < wanted && worker_get(n, threads); n++) {
        struct worker *w = pool[n];
        w->launch = l;
        w->order = options.lane_order;
        w->traps = options.fp_traps;
        w->stale = 0;
        w->probed = false;
        w->cluster = &clusters[n / in_cluster];
        w->rank = n % in_cluster;
        if (!w->rank)
            cluster_init(w->cluster, in_cluster);
        w->cluster->member[w->rank] = w;
    }
    const int failure = errno;
    const unsigned whole = n / in_cluster * in_cluster; /* fewer workers than wanted are only slower */
    for (; started < whole && !(errno = pthread_create(&thread[started], NULL, work, pool[started])); started++)
        ;
    const bool is_part = started % in_cluster > 0;
    if (!started || is_part)
        report_raise(EVENT_SYSTEM, true, NULL, 0, NULL, "cannot start a worker: %s",
                     strerror(started < whole ? errno : failure));
    if (is_part) { /* those of a cluster that is not whole wait for a turn that would not come */
        atomic_store(&now.stop, true);
        traps_end();
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < n; i += in_cluster)
        cluster_free(pool[i]->cluster);
    return started;
}

static int run(const struct simt_launch *asked)
{
    struct simt_launch l = *asked;
    const bool open = !l.cluster.x;
    now.said = (struct simt_dim){0, 0, 0};
    if (open)
        l.cluster = (struct simt_dim){1, 1, 1};
    if (check_cluster(&l))
        return -1;
    if (checks_wanted())
        checks_begin_launch();
    unsigned n = run_blocks(&l);
    if (open && now.said.x) { /* the kernel has told, before it did anything */
        l.cluster = now.said;
        n = check_cluster(&l) ? 0 : run_blocks(&l);
    }
    check_plan(&l, l.block.x * l.block.y * l.block.z, n);
    if (checks_wanted())
        checks_end_launch(pool, n);
    if (atomic_load(&cancelled))
        report_set_error("cancelled");
    return simt_error() ? -1 : 0;
}

/* The first thing in a kernel's body that has __cluster_dims__: whoever launches it in blocks alone learns it here. */
void simt_cluster_dims(unsigned x, unsigned y, unsigned z)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct worker *w = simt_tls.worker;
    const struct simt_dim c = w->launch->cluster;
    if (c.x == x && c.y == y && c.z == z)
        return;
    if (c.x * c.y * c.z > 1) {
        report_raise(EVENT_LAUNCH, true, NULL, 0, NULL,
                     "launched in clusters of (%u,%u,%u), where __cluster_dims__ says (%u,%u,%u)", c.x, c.y, c.z, x, y,
                     z);
        w->cluster->failed = true;
    }
    pthread_mutex_lock(&lock);
    now.said = (struct simt_dim){x, y, z};
    pthread_mutex_unlock(&lock);
    block_abandon(w);
}

void simt_refuse_launch(const char *why)
{
    if (rehearsal.on) /* the run itself says it */
        rehearsal.threads = rehearsal.threads ? rehearsal.threads : 1;
    else
        report_raise(EVENT_LAUNCH, true, NULL, 0, NULL, "%s", why);
}

int simt_launch(const struct simt_launch *launch)
{
    if (rehearsal.on) {
        const unsigned threads = launch->block.x * launch->block.y * launch->block.z;
        rehearsal.threads = threads > rehearsal.threads ? threads : rehearsal.threads;
        return 0;
    }
    pthread_mutex_lock(&launch_lock);
    traps_begin_launch();
    report_begin_launch();
    recorders_begin_launch();
    copies_begin_launch();
    atomic_store(&cancelled, false);
    allocated_reach_host(false);
    const int rc = check(launch) ? -1 : run(launch);
    allocated_reach_host(true);
    pthread_mutex_unlock(&launch_lock);
    return rc;
}
