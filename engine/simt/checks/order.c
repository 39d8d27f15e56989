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

static void set_base(struct order *o, unsigned threads)
{
    o->base = o->now;
    o->partial = false;
    for (unsigned i = 0; i < threads; i++)
        o->clock[i] = o->now;
    for (unsigned i = 0; i * 32 < threads; i++)
        for (unsigned j = 0; j * 32 < threads; j++)
            o->known[i][j] = o->now;
}

void order_begin_block(struct order *o, unsigned threads)
{
    o->now = 1;
    o->exhausted = false;
    memset(o->said, 0, sizeof o->said);
    memset(o->came, 0, sizeof o->came);
    set_base(o, threads);
}

void checks_resume(struct worker *w)
{
    struct checks *c = w->checks;
    const unsigned thread = (unsigned)(simt_tls.self - w->fiber);
    c->stamp = c->order.clock[thread] << STAMP_TIME_SHIFT | thread;
    c->known = c->order.known[thread / 32];
    c->base = c->order.base;
}

void checks_barrier(struct worker *w)
{
    struct order *o = &w->checks->order;
    if (tick(o))
        set_base(o, w->n_threads);
    if (simt_tls.self)
        checks_resume(w);
}

/* The lanes meet: each knows from now on what any of them knew. */
static void meet_in_part(struct order *o, unsigned warp, uint32_t lanes)
{
    uint32_t joined[32] = {0};
    if (!o->partial)
        memset(o->lane_known, 0, sizeof o->lane_known);
    o->partial = true;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t *row = o->lane_known[warp * 32 + (unsigned)__builtin_ctz(rest)];
        for (unsigned i = 0; i < 32; i++)
            joined[i] = row[i] > joined[i] ? row[i] : joined[i];
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        joined[__builtin_ctz(rest)] = o->now;
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        memcpy(o->lane_known[warp * 32 + (unsigned)__builtin_ctz(rest)], joined, sizeof joined);
}

void checks_syncwarp(struct worker *w, unsigned warp, uint32_t lanes)
{
    struct order *o = &w->checks->order;
    if (tick(o)) {
        for (uint32_t rest = lanes; rest; rest &= rest - 1)
            o->clock[warp * 32 + (unsigned)__builtin_ctz(rest)] = o->now;
        if (lanes == w->warp[warp].alive)
            o->known[warp][warp] = o->now;
        else
            meet_in_part(o, warp, lanes);
    }
    if (simt_tls.self)
        checks_resume(w);
}

/* The thread's time begins anew, so that what it does from now on is told from what it did before. Lanes of a warp come
   together, one after another here: they have one time. */
void checks_named_come(struct worker *w, const struct fiber *self, unsigned id)
{
    struct order *o = &w->checks->order;
    struct came *came = &o->came[id][self->warp];
    const uint32_t bit = 1u << self->lane;
    if (!came->lanes || came->lanes & bit) {
        if (!tick(o))
            return;
        *came = (struct came){.time = o->now};
    }
    came->lanes |= bit;
    uint32_t *said = o->said[id];
    for (unsigned i = 0; i < SIMT_WARPS_MAX; i++)
        said[i] = o->known[self->warp][i] > said[i] ? o->known[self->warp][i] : said[i];
    said[self->warp] = came->time;
    o->clock[self - w->fiber] = came->time;
    if (came->lanes == w->warp[self->warp].alive)
        came->lanes = 0;
    checks_resume(w);
}

/* A warp that goes on knows all that was said, also for the barrier's next round: rather a race unseen than one that
   is none. */
void checks_named_go(struct worker *w, unsigned warp, unsigned id)
{
    struct order *o = &w->checks->order;
    if (o->exhausted)
        return;
    for (unsigned i = 0; i < SIMT_WARPS_MAX; i++)
        if (o->said[id][i] > o->known[warp][i])
            o->known[warp][i] = o->said[id][i];
}

void checks_mbarrier_init(struct worker *w, unsigned number)
{
    struct order *o = &w->checks->order;
    memset(o->said[NAMED_BARRIERS + number], 0, sizeof o->said[0]);
    memset(o->came[NAMED_BARRIERS + number], 0, sizeof o->came[0]);
}

void checks_mbarrier_come(struct worker *w, const struct fiber *self, unsigned number)
{
    checks_named_come(w, self, NAMED_BARRIERS + number);
}

void checks_mbarrier_go(struct worker *w, const struct fiber *self, unsigned number)
{
    checks_named_go(w, self->warp, NAMED_BARRIERS + number);
}
