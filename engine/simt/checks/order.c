/* Which accesses of a block are in order. Only what CUDA promises to order memory does: __syncthreads, barriers by
   number, mbarriers, and __syncwarp for its lanes. Shuffles, votes and matrix operations do not (CUDA C++ Programming
   Guide, "Warp Shuffle Functions": they imply no memory barrier). */
#include "engine/simt/checks/state.h"

#include <string.h>

/* A new time; 0: there are no more. */
static uint32_t tick(struct order *o)
{
    if (o->exhausted)
        return 0;
    if (o->now == STAMP_TIME_MAX) {
        o->exhausted = true;
        memset(o->known, 0xFF, sizeof o->known);
        return 0;
    }
    return ++o->now;
}

/* The threads of a block have met: each knows what any of them knew. */
static void set_base(struct checks *c, unsigned threads)
{
    struct order *o = c->order;
    const unsigned first = c->first / 32, end = (c->first + threads + 31) / 32;
    c->told.base = o->now;
    if (!c->stride)
        o->partial = false;
    for (unsigned i = c->first; i < c->first + threads; i++)
        o->clock[i] = o->now;
    for (unsigned j = 0; c->stride && j < SIMT_WARPS_MAX; j++) {
        uint32_t most = 0;
        for (unsigned i = first; i < end; i++)
            most = o->known[i][j] > most ? o->known[i][j] : most;
        for (unsigned i = first; i < end; i++)
            o->known[i][j] = most;
    }
    for (unsigned i = first; i < end; i++)
        for (unsigned j = first; j < end; j++)
            o->known[i][j] = o->now;
}

/* Blocks of a cluster have one order, as far as its threads can be numbered. */
void order_begin_block(struct checks *c, unsigned threads)
{
    const struct worker *w = c->worker;
    const unsigned per_block = (threads + 31) / 32 * 32;
    const bool counted = w->cluster->n * per_block <= SIMT_THREADS_MAX;
    c->stride = w->cluster->n > 1 ? per_block : 0;
    c->first = counted ? w->rank * per_block : 0;
    c->order = counted ? &w->cluster->member[0]->checks->own : &c->own;
    struct order *o = c->order;
    if (o == &c->own) {
        o->now = 1;
        o->exhausted = !counted;
        o->partial = false;
        memset(o->known, counted ? 0 : 0xFF, sizeof o->known);
        memset(o->fenced, 0, sizeof o->fenced);
    }
    memset(c->told.said, 0, sizeof c->told.said);
    memset(c->told.came, 0, sizeof c->told.came);
    c->told.base = 0;
    if (counted)
        set_base(c, threads);
}

void checks_resume(struct worker *w)
{
    struct checks *c = w->checks;
    const unsigned thread = c->first + (unsigned)(simt_tls.self - w->fiber);
    c->stamp = c->order->clock[thread] << STAMP_TIME_SHIFT | thread;
    c->known = c->order->known[thread / 32];
    c->base = c->told.base;
}

void checks_barrier(struct worker *w)
{
    struct checks *c = w->checks;
    if (tick(c->order))
        set_base(c, w->n_threads);
    if (simt_tls.self)
        checks_resume(w);
}

/* The lanes meet: each knows from now on what any of them knew. first: the warp's first thread. */
static void meet_in_part(struct order *o, unsigned first, uint32_t lanes)
{
    uint32_t joined[32] = {0};
    if (!o->partial)
        memset(o->lane_known, 0, sizeof o->lane_known);
    o->partial = true;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t *row = o->lane_known[first + (unsigned)__builtin_ctz(rest)];
        for (unsigned i = 0; i < 32; i++)
            joined[i] = row[i] > joined[i] ? row[i] : joined[i];
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        joined[__builtin_ctz(rest)] = o->now;
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        memcpy(o->lane_known[first + (unsigned)__builtin_ctz(rest)], joined, sizeof joined);
}

void checks_syncwarp(struct worker *w, unsigned warp, uint32_t lanes)
{
    struct order *o = w->checks->order;
    const unsigned first = w->checks->first + warp * 32;
    if (tick(o)) {
        for (uint32_t rest = lanes; rest; rest &= rest - 1)
            o->clock[first + (unsigned)__builtin_ctz(rest)] = o->now;
        if (lanes == w->warp[warp].alive)
            o->known[first / 32][first / 32] = o->now;
        else
            meet_in_part(o, first, lanes);
    }
    if (simt_tls.self)
        checks_resume(w);
}

/* The thread's time begins anew, so that what it does from now on is told from what it did before. Lanes of a warp come
   together, one after another here: they have one time. `at`: of the block that has the barrier. */
static void come(struct worker *w, const struct fiber *self, struct checks *at, unsigned id)
{
    struct checks *c = w->checks;
    struct order *o = c->order;
    if (o != at->order || o->exhausted)
        return;
    const unsigned thread = c->first + (unsigned)(self - w->fiber), warp = thread / 32;
    struct came *came = &at->told.came[id][warp];
    const uint32_t bit = 1u << self->lane;
    if (!came->lanes || came->lanes & bit) {
        if (!tick(o))
            return;
        *came = (struct came){.time = o->now};
    }
    came->lanes |= bit;
    uint32_t *said = at->told.said[id];
    for (unsigned i = 0; i < SIMT_WARPS_MAX; i++)
        said[i] = o->known[warp][i] > said[i] ? o->known[warp][i] : said[i];
    said[warp] = came->time;
    o->clock[thread] = came->time;
    if (came->lanes == w->warp[self->warp].alive)
        came->lanes = 0;
    checks_resume(w);
}

/* A warp that goes on knows all that was said, also for the barrier's next round: rather a race unseen than one that
   is none. */
static void go(struct worker *w, unsigned warp, const struct checks *at, unsigned id)
{
    struct order *o = w->checks->order;
    if (o != at->order || o->exhausted)
        return;
    uint32_t *known = o->known[w->checks->first / 32 + warp];
    for (unsigned i = 0; i < SIMT_WARPS_MAX; i++)
        if (at->told.said[id][i] > known[i])
            known[i] = at->told.said[id][i];
}

void checks_named_come(struct worker *w, const struct fiber *self, unsigned id)
{
    come(w, self, w->checks, id);
}

void checks_named_go(struct worker *w, unsigned warp, unsigned id)
{
    go(w, warp, w->checks, id);
}

void checks_mbarrier_init(struct worker *w, unsigned number)
{
    struct said *t = &w->checks->told;
    memset(t->said[NAMED_BARRIERS + number], 0, sizeof t->said[0]);
    memset(t->came[NAMED_BARRIERS + number], 0, sizeof t->came[0]);
}

void checks_mbarrier_come(struct worker *w, const struct fiber *self, struct worker *block, unsigned number)
{
    come(w, self, block->checks, NAMED_BARRIERS + number);
}

void checks_mbarrier_go(struct worker *w, const struct fiber *self, unsigned number)
{
    go(w, self->warp, w->checks, NAMED_BARRIERS + number);
}

void checks_cluster_come(struct worker *w, const struct fiber *self)
{
    come(w, self, w->cluster->member[0]->checks, CLUSTER_BARRIER);
}

void checks_cluster_go(struct worker *w, const struct fiber *self)
{
    go(w, self->warp, w->cluster->member[0]->checks, CLUSTER_BARRIER);
}

void checks_proxy_fence(struct worker *w, const struct fiber *self)
{
    struct checks *c = w->checks;
    const unsigned thread = c->first + (unsigned)(self - w->fiber);
    if (!tick(c->order))
        return;
    c->order->clock[thread] = c->order->fenced[thread] = c->order->now;
    checks_resume(w);
}
