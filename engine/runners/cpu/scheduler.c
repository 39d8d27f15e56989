#include "engine/runners/cpu/checks/checks.h"
#include "engine/runners/cpu/fiber.h"
#include "engine/runners/cpu/traps.h"
#include "engine/runners/cpu/worker.h"

#include <sched.h>

#define SPINS_BEFORE_YIELD 64

static unsigned pick(const struct worker *w, uint32_t set)
{
    return w->descending ? 31u - (unsigned)__builtin_clz(set) : (unsigned)__builtin_ctz(set);
}

void schedule_ready(struct worker *w, unsigned warp, uint32_t lanes)
{
    if (!lanes)
        return;
    w->warp[warp].ready |= lanes;
    w->ready_warps |= 1u << warp;
}

static struct fiber *take(struct worker *w, unsigned warp, unsigned lane)
{
    struct warp *p = &w->warp[warp];
    p->ready &= ~(1u << lane);
    if (!p->ready)
        w->ready_warps &= ~(1u << warp);
    return &w->fiber[warp * 32 + lane];
}

/* The rest of the same warp first: lanes of a warp reach their next meeting one after another, with warm caches. */
struct fiber *schedule_next(struct worker *w, unsigned warp)
{
    if (!w->warp[warp].ready && w->warp[warp].active)
        warp_release_active(w, warp);
    if (!w->warp[warp].ready) {
        if (!w->ready_warps)
            return NULL;
        warp = pick(w, w->ready_warps);
    }
    return take(w, warp, pick(w, w->warp[warp].ready));
}

/* To another thread and, some time, back. */
static void run_other(const struct worker *w, struct fiber *self, struct fiber *next)
{
    struct checks *checks = simt_tls.checks;
    if (w->checks)
        checks_flush(w->checks);
    simt_tls.self = next;
    fiber_switch(&self->sp, next->sp);
    simt_tls.checks = checks;
    if (w->checks)
        checks_resume(simt_tls.worker);
}

void schedule_wait(struct worker *w, struct fiber *self)
{
    struct fiber *next = schedule_next(w, self->warp);
    if (!next)
        block_deadlock(w);
    if (next != self) /* else an __activemask that nobody else can join */
        run_other(w, self, next);
    if (w->masked)
        traps_rearm(w);
}

/* Round robin over the whole block, so that a spinning thread can not keep the one it waits for from running. */
void simt_yield(void)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    if (!self)
        return;
    self->spins = 0;
    if (w->warp[self->warp].active)
        warp_release_active(w, self->warp);
    if (!w->ready_warps) {
        sched_yield(); /* what it waits for may come from another block */
        return;
    }
    unsigned warp = self->warp;
    const uint32_t later = w->warp[warp].ready & ~((2u << self->lane) - 1u);
    struct fiber *next;
    if (later) {
        next = take(w, warp, (unsigned)__builtin_ctz(later));
    } else {
        const uint32_t later_warps = w->ready_warps & ~((2u << warp) - 1u);
        warp = (unsigned)__builtin_ctz(later_warps ? later_warps : w->ready_warps);
        next = take(w, warp, (unsigned)__builtin_ctz(w->warp[warp].ready));
    }
    schedule_ready(w, self->warp, 1u << self->lane);
    run_other(w, self, next);
}

void simt_spin(void)
{
    struct fiber *self = simt_tls.self;
    if (self && ++self->spins >= SPINS_BEFORE_YIELD)
        simt_yield();
}
