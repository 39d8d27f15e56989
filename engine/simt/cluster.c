#include "engine/simt/cluster.h"

#include "engine/simt/checks/checks.h"
#include "engine/simt/fiber.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <errno.h>
#include <string.h>

void cluster_init(struct cluster *c, unsigned n)
{
    memset(c, 0, sizeof *c);
    c->n = n;
    for (unsigned i = 0; i < n; i++)
        sem_init(&c->turn[i], 0, 0);
}

void cluster_free(struct cluster *c)
{
    for (unsigned i = 0; i < c->n; i++)
        sem_destroy(&c->turn[i]);
}

struct simt_dim cluster_block(const struct simt_launch *l, uint64_t cluster, unsigned rank)
{
    const struct simt_dim g = l->grid, c = l->cluster;
    const uint32_t nx = g.x / c.x, ny = g.y / c.y;
    return (struct simt_dim){(uint32_t)(cluster % nx) * c.x + rank % c.x,
                             (uint32_t)(cluster / nx % ny) * c.y + rank / c.x % c.y,
                             (uint32_t)(cluster / nx / ny) * c.z + rank / c.x / c.y};
}

/* A signal that asks where the block stands interrupts it. */
static void wait_for_turn(struct worker *w)
{
    w->parked = true;
    while (sem_wait(&w->cluster->turn[w->rank]) && errno == EINTR)
        ;
    w->parked = false;
}

static void give_turn(const struct worker *to)
{
    sem_post(&to->cluster->turn[to->rank]);
}

bool cluster_next(struct worker *w, bool draw(uint64_t *number))
{
    struct cluster *c = w->cluster;
    if (w->rank) {
        wait_for_turn(w);
        return !c->over;
    }
    c->n_left = c->phase = 0;
    c->failed = false;
    if (draw(&c->number))
        return true;
    c->over = true;
    for (unsigned i = 1; i < c->n; i++)
        give_turn(c->member[i]);
    return false;
}

/* Whoever begins last runs first: in a descending order that is the last block, else the first. */
void cluster_begun(struct worker *w)
{
    struct cluster *c = w->cluster;
    if (w->rank == 0) {
        c->missing = 0;
        for (unsigned i = 0; i < c->n; i++)
            c->missing += w->n_threads;
    }
    if (w->rank + 1 < c->n) {
        give_turn(c->member[w->rank + 1]);
        wait_for_turn(w);
    } else if (c->n > 1 && w->order != SIMT_DESCENDING) {
        give_turn(c->member[0]);
        wait_for_turn(w);
    }
}

static struct worker *next_that_can(const struct worker *w)
{
    struct cluster *c = w->cluster;
    for (unsigned i = 1; i < c->n; i++) {
        struct worker *m = c->member[(w->rank + i) % c->n];
        if (!m->left && (m->ready_warps || c->failed))
            return m;
    }
    return NULL;
}

bool cluster_can_run(const struct worker *w)
{
    return next_that_can(w) != NULL;
}

void cluster_left(struct worker *w)
{
    struct cluster *c = w->cluster;
    w->left = true;
    if (c->n == 1)
        return;
    struct worker *next = ++c->n_left == c->n ? c->member[0] : next_that_can(w);
    if (!next) {
        block_say_deadlock(w);
        next = next_that_can(w);
    }
    if (next == w)
        return;
    give_turn(next);
    if (!w->rank) /* the last one to leave gives it */
        wait_for_turn(w);
}

bool cluster_turn(struct worker *w, struct worker *first)
{
    struct cluster *c = w->cluster;
    struct worker *next = first && !first->left && first->ready_warps ? first : next_that_can(w);
    if (!next)
        return false;
    if (w->checks)
        checks_flush(w->checks);
    give_turn(next);
    wait_for_turn(w);
    if (c->failed)
        block_abandon(w);
    if (w->checks)
        checks_resume(w);
    return true;
}

/* All that live have come. Registers of the warps that wait there are ready. */
static void complete(struct cluster *c)
{
    c->phase++;
    c->missing = 0;
    for (unsigned i = 0; i < c->n; i++) {
        struct worker *m = c->member[i];
        c->missing += m->n_alive;
        m->clock++;
        for (unsigned j = 0; j * 32 < m->n_threads; j++) {
            const uint32_t lanes = m->warp[j].at_cluster;
            m->warp[j].at_cluster = 0;
            schedule_ready(m, j, lanes);
        }
    }
}

void cluster_lane_left(struct worker *w, struct fiber *self)
{
    struct cluster *c = w->cluster;
    if (self->cluster_came != c->phase + 1 && !--c->missing)
        complete(c);
}

void simt_cluster_arrive(bool releases, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    struct cluster *c = w->cluster;
    self->file = file;
    self->line = line;
    self->pc = __builtin_return_address(0);
    if (self->cluster_came > self->cluster_waited) {
        report_raise(EVENT_BARRIER, false, file, line, self,
                     "barrier.cluster.arrive: this thread has arrived before, and not waited since");
        return;
    }
    self->cluster_came = c->phase + 1;
    if (w->checks && releases)
        checks_cluster_come(w, self);
    if (!--c->missing)
        complete(c);
}

void simt_cluster_wait(bool acquires, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    struct cluster *c = w->cluster;
    self->file = file;
    self->line = line;
    self->pc = __builtin_return_address(0);
    if (self->cluster_came == self->cluster_waited) {
        report_raise(EVENT_BARRIER, false, file, line, self,
                     "barrier.cluster.wait: this thread has not arrived at the cluster's barrier");
        return;
    }
    self->cluster_waited = self->cluster_came;
    if (c->phase < self->cluster_came) {
        w->warp[self->warp].at_cluster |= 1u << self->lane;
        schedule_wait(w, self);
    } else {
        schedule_turn(w, self);
    }
    if (w->checks && acquires)
        checks_cluster_go(w, self);
}

struct simt_dim simt_cluster_dim(void)
{
    return simt_tls.worker->launch->cluster;
}

unsigned simt_cluster_rank(void)
{
    return simt_tls.worker->rank;
}
