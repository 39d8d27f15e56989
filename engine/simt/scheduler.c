#include "engine/simt/checks/checks.h"
#include "engine/simt/fiber.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <sched.h>
#include <stdatomic.h>

#define SPINS_BEFORE_YIELD 64
#define YIELDS_BEFORE_TURN 16

#define RANKS_LAST 32 /* picks, about: long enough for one side to run ahead by a barrier or two */

/* The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA'14). */
static uint32_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((x ^ x >> 31) >> 16);
}

static uint32_t draw(struct worker *w)
{
    return mix(w->drawn += UINT64_C(0x9E3779B97F4A7C15));
}

void schedule_begin_block(struct worker *w, uint64_t number)
{
    w->drawn = (uint64_t)w->order << 32 ^ number << 8;
    w->ranks = draw(w);
}

/* The one of the highest rank. Ranks stay for a while: with new ones at each pick all would keep step. */
static unsigned pick_ranked(struct worker *w, uint32_t set)
{
    unsigned best = 0;
    uint32_t highest = 0;
    if (draw(w) % RANKS_LAST == 0)
        w->ranks = draw(w);
    for (uint32_t rest = set; rest; rest &= rest - 1) {
        const unsigned i = (unsigned)__builtin_ctz(rest);
        const uint32_t rank = mix((uint64_t)w->ranks << 32 | i);
        if (rest == set || rank > highest) {
            best = i;
            highest = rank;
        }
    }
    return best;
}

static unsigned pick(struct worker *w, uint32_t set)
{
    return w->order >= SIMT_SHUFFLED     ? pick_ranked(w, set)
           : w->order == SIMT_DESCENDING ? 31u - (unsigned)__builtin_clz(set)
                                         : (unsigned)__builtin_ctz(set);
}

bool simt_early(void)
{
    struct worker *w = simt_tls.worker;
    return w->order >= SIMT_SHUFFLED && !w->checks && draw(w) % 2;
}

void schedule_ready(struct worker *w, unsigned warp, uint32_t lanes)
{
    if (!lanes)
        return;
    w->warp[warp].ready |= lanes;
    w->ready_warps |= 1u << warp;
}

/* The line of the kernel's body that an access belongs to, then the address: a compiler may have made two copies of a
   line, and lanes in both are to pass it before any comes to the next one. */
static uint64_t place_of(const struct fiber *f)
{
    enum { PLACES = 1 << 14 };
    static _Atomic uint64_t known[PLACES]; /* line over address */
    const uint32_t pc = (uint32_t)(uintptr_t)f->pc;
    _Atomic uint64_t *at = &known[pc * 0x9E3779B1u >> 18];
    uint64_t place = atomic_load_explicit(at, memory_order_relaxed);
    if (!pc || (uint32_t)place == pc)
        return pc ? place : 0;
    const int paused = traps_pause();
    struct simt_stack stack;
    const struct locate where = {.pc = pc, .body = (uintptr_t)f->body};
    locate_stack(&where, &stack);
    traps_resume(paused);
    place = (uint64_t)(uint32_t)locate_call(&stack).line << 32 | pc;
    atomic_store_explicit(at, place, memory_order_relaxed);
    return place;
}

/* Lanes that have come to the same place step together; first those that are behind in the code, so that lanes which a
   branch or a loop has parted meet again behind it. */
static unsigned pick_step(struct worker *w, unsigned warp)
{
    struct warp *p = &w->warp[warp];
    const struct fiber *lanes = w->fiber + (size_t)warp * 32;
    if (!(p->step & p->ready)) {
        uint64_t first = UINT64_MAX;
        p->step = 0;
        for (uint32_t rest = p->ready; rest; rest &= rest - 1) {
            const unsigned lane = (unsigned)__builtin_ctz(rest);
            const uint64_t at = place_of(&lanes[lane]);
            p->step = at < first ? 0 : p->step;
            first = at < first ? at : first;
            p->step |= at == first ? 1u << lane : 0;
        }
    }
    const unsigned lane = (unsigned)__builtin_ctz(p->step & p->ready);
    p->step &= ~(1u << lane);
    return lane;
}

static struct fiber *take(struct worker *w, unsigned warp, unsigned lane)
{
    struct warp *p = &w->warp[warp];
    p->ready &= ~(1u << lane);
    if (!p->ready)
        w->ready_warps &= ~(1u << warp);
    return &w->fiber[warp * 32 + lane];
}

/* The rest of the same warp first: lanes of a warp reach their next meeting one after another, with warm caches. In a
   shuffled order anybody. */
static struct fiber *next_here(struct worker *w, unsigned warp)
{
    if (!w->warp[warp].ready && w->warp[warp].active)
        warp_release_active(w, warp);
    if (!w->warp[warp].ready || w->order >= SIMT_SHUFFLED) {
        if (!w->ready_warps)
            return NULL;
        warp = pick(w, w->ready_warps);
    }
    return take(w, warp, w->order == SIMT_LOCKSTEP ? pick_step(w, warp) : pick(w, w->warp[warp].ready));
}

struct fiber *schedule_next(struct worker *w, unsigned warp)
{
    struct fiber *next = next_here(w, warp);
    while (!next && cluster_turn(w, NULL))
        next = next_here(w, warp);
    return next;
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
    self->spinning = false;
    struct fiber *next = schedule_next(w, self->warp);
    if (!next)
        block_deadlock(w);
    if (next != self) /* else an __activemask that nobody else can join */
        run_other(w, self, next);
    if (w->masked)
        traps_rearm(w);
}

void schedule_hand(struct worker *w, struct fiber *self, unsigned warp, uint32_t lanes)
{
    schedule_ready(w, self->warp, 1u << self->lane);
    run_other(w, self, take(w, warp, (unsigned)__builtin_ctz(lanes)));
    if (w->masked)
        traps_rearm(w);
}

void schedule_hand_block(struct worker *w, struct fiber *self, struct worker *block)
{
    schedule_ready(w, self->warp, 1u << self->lane);
    cluster_turn(w, block);
    schedule_wait(w, self);
}

bool schedule_coin(const struct worker *w, uint32_t n)
{
    return mix((uint64_t)w->order << 48 ^ (uint64_t)w->block.x << 32 ^ (n * UINT64_C(0x9E3779B97F4A7C15))) & 1;
}

void schedule_step(struct worker *w, struct fiber *self, const void *pc)
{
    self->pc = pc;
    schedule_ready(w, self->warp, 1u << self->lane);
    schedule_wait(w, self);
}

void schedule_turn(struct worker *w, struct fiber *self)
{
    if (w->order < SIMT_SHUFFLED)
        return;
    schedule_ready(w, self->warp, 1u << self->lane);
    if (w->cluster->n > 1 && draw(w) % 4 == 0)
        cluster_turn(w, NULL);
    schedule_wait(w, self);
}

/* Round robin over the whole block, so that a spinning thread cannot keep the one it waits for from running. */
void simt_yield(void)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    if (!self)
        return;
    self->spins = 0;
    if (w->cluster->n > 1 &&
        ++w->yields % YIELDS_BEFORE_TURN == 0) { /* what it waits for may be another block's doing */
        schedule_ready(w, self->warp, 1u << self->lane);
        cluster_turn(w, NULL);
        schedule_wait(w, self);
        return;
    }
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

/* pc: where the kernel looks for what another thread writes. */
static void spin(const void *pc)
{
    struct fiber *self = simt_tls.self;
    if (!self || ++self->spins < SPINS_BEFORE_YIELD)
        return;
    self->pc = pc;
    self->file = NULL;
    self->line = 0;
    self->spinning = true;
    simt_yield();
}

void simt_spin(void)
{
    spin(__builtin_return_address(0));
}

void simt_atomic(const void *address)
{
    const struct worker *w = simt_tls.worker;
    if (simt_tls.self && (uintptr_t)address - (uintptr_t)w->stacks < w->n_stacks * FIBER_BYTES)
        report_raise(EVENT_ADDRESS, false, NULL, 0, NULL,
                     "an atomic operation on a local variable: undefined on a GPU, which has them of global and shared "
                     "memory alone");
    spin(__builtin_return_address(0));
}
