#include "engine/base/path.h"
#include "engine/simt/bulk.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/fiber.h"
#include "engine/simt/report.h"
#include "engine/simt/shared.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <stdio.h>
#include <string.h>

__thread struct simt_tls simt_tls __attribute__((tls_model("local-exec")));

struct simt_dim simt_thread_index(void)
{
    return simt_tls.self->index;
}

struct simt_dim simt_block_index(void)
{
    return simt_tls.worker->block;
}

struct simt_dim simt_block_dim(void)
{
    return simt_tls.worker->launch->block;
}

struct simt_dim simt_grid_dim(void)
{
    return simt_tls.worker->launch->grid;
}

unsigned simt_lane(void)
{
    return simt_tls.self->lane;
}

uint64_t simt_clock(void)
{
    struct worker *w = simt_tls.worker;
    return w ? ++w->clock : 1;
}

void simt_place(int batch, int head, int q_tile)
{
    struct fiber *self = simt_tls.self;
    if (!self)
        return;
    simt_tls.worker->probed = true;
    if (self->batch != batch || self->head != head || self->q_tile != q_tile)
        self->visits++;
    self->batch = batch;
    self->head = head;
    self->q_tile = q_tile;
    self->kv_tile = -1;
    self->body = __builtin_return_address(0);
}

static const struct fiber *first_alive(const struct worker *w)
{
    for (unsigned i = 0; i < w->n_threads; i++)
        if (w->warp[i / 32].alive >> i % 32 & 1)
            return &w->fiber[i];
    return NULL;
}

/* ", those of warps 5 to 7" of the threads that are left, where they are so. */
static void say_warps(const struct worker *w, char *out, size_t bytes)
{
    const unsigned warps = (w->n_threads + 31) / 32;
    unsigned first = 0, last = warps - 1, threads = 0;
    out[0] = '\0';
    while (first < last && !w->warp[first].alive)
        first++;
    while (last > first && !w->warp[last].alive)
        last--;
    for (unsigned i = first; i <= last; i++)
        threads += i + 1 < warps || w->n_threads % 32 == 0 ? 32 : w->n_threads % 32;
    if (threads == w->n_alive && first == last)
        snprintf(out, bytes, ", those of warp %u", first);
    else if (threads == w->n_alive)
        snprintf(out, bytes, ", those of warps %u to %u", first, last);
}

/* `self` arrived last and runs on; NULL: the last thread that was not here has returned. */
static void barrier_release(struct worker *w, const struct fiber *self)
{
    int *result = w->result[w->epoch & 1];
    result[SIMT_BARRIER] = 0;
    result[SIMT_BARRIER_COUNT] = (int)w->sum;
    result[SIMT_BARRIER_AND] = w->sum == w->n_at_barrier;
    result[SIMT_BARRIER_OR] = w->sum != 0;
    if (w->n_alive != w->n_threads) {
        char warps[48];
        say_warps(w, warps, sizeof warps);
        report_raise(EVENT_BARRIER, false, w->barrier_file, w->barrier_line, first_alive(w),
                     "__syncthreads is reached by %u of %u threads%s; the others have returned", w->n_alive,
                     w->n_threads, warps);
    }
    for (unsigned i = 0; i * 32 < w->n_threads; i++) {
        uint32_t lanes = w->warp[i].alive;
        if (self && self->warp == i)
            lanes &= ~(1u << self->lane);
        schedule_ready(w, i, lanes);
    }
    if (w->checks)
        checks_barrier(w);
    w->n_at_barrier = 0;
    w->sum = 0;
    w->epoch++;
    w->clock++;
}

int simt_barrier(enum simt_barrier_op op, int predicate, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    self->file = file;
    self->line = line;
    self->pc = __builtin_return_address(0);
    if (!w->n_at_barrier) {
        if (w->named[0].arrived)
            report_raise(EVENT_BARRIER, false, file, line, self,
                         "__syncthreads is barrier 0, which others use for %u threads (%s:%d)", w->named[0].expected,
                         path_name(w->named[0].file), w->named[0].line);
        w->barrier_file = file;
        w->barrier_line = line;
    } else if (line != w->barrier_line || (file != w->barrier_file && strcmp(file, w->barrier_file) != 0)) {
        report_raise(EVENT_BARRIER, false, file, line, self,
                     "threads of one block are at different __syncthreads (the other: %s:%d)",
                     path_name(w->barrier_file), w->barrier_line);
    }
    const unsigned epoch = w->epoch & 1;
    w->n_at_barrier++;
    w->sum += predicate != 0;
    if (w->n_at_barrier != w->n_alive) {
        schedule_wait(w, self);
    } else {
        barrier_release(w, self);
        if (w->masked)
            traps_rearm(w);
        schedule_turn(w, self);
    }
    return w->result[epoch][op];
}

/* "attn.cu:40, called at attn.cu:112" */
static void write_place(const struct fiber *f, char *out, size_t bytes)
{
    struct simt_stack stack;
    const struct locate where = {.pc = (uintptr_t)f->pc, .file = f->file, .line = f->line, .body = (uintptr_t)f->body};
    locate_stack(&where, &stack);
    const struct simt_frame call = locate_call(&stack);
    const int used = snprintf(out, bytes, "%s:%d", f->file ? path_name(f->file) : "?", f->line);
    if (stack.n > 1 && used > 0 && (size_t)used < bytes)
        snprintf(out + used, bytes - (size_t)used, ", called at %s:%d", path_name(call.file), call.line);
}

/* What threads i.. wait for, in words; returns the first thread that waits elsewhere. */
static unsigned describe_group(const struct worker *w, unsigned i, char *out, size_t bytes)
{
    const struct fiber *f = &w->fiber[i];
    const struct warp *p = &w->warp[f->warp];
    const uint32_t bit = 1u << f->lane;
    const bool dead = !(p->alive & bit), meets = p->waiting & bit, named = p->named & bit,
               counted = p->at_mbarrier & bit, clustered = p->at_cluster & bit;
    unsigned end = i + 1;
    for (; end < w->n_threads; end++) {
        const struct fiber *g = &w->fiber[end];
        const struct warp *q = &w->warp[g->warp];
        const uint32_t other = 1u << g->lane;
        if (dead != !(q->alive & other) || meets != !!(q->waiting & other) || named != !!(q->named & other) ||
            counted != !!(q->at_mbarrier & other) || clustered != !!(q->at_cluster & other))
            break;
        if ((named && f->barrier != g->barrier) || (counted && f->mbarrier != g->mbarrier))
            break;
        if (!dead && (g->line != f->line || g->file != f->file || (meets && (g->mask != f->mask || g->op != f->op))))
            break;
    }
    char place[400], counts[500], who[48];
    const char *const waits = end == i + 1 ? "waits" : "wait";
    write_place(f, place, sizeof place);
    if (end == i + 1)
        snprintf(who, sizeof who, "thread %u", i);
    else
        snprintf(who, sizeof who, "threads %u..%u", i, end - 1);
    if (dead)
        snprintf(out, bytes, "%s %s returned", who, end == i + 1 ? "has" : "have");
    else if (meets)
        snprintf(out, bytes, "%s %s in %s (mask %08x) at %s", who, waits, warp_op_name(f->op), f->mask, place);
    else if (named)
        snprintf(out, bytes, "%s %s at barrier %u (%u of %u threads have come) at %s", who, waits, f->barrier,
                 w->named[f->barrier].arrived, w->named[f->barrier].expected, place);
    else if (counted) {
        mbarrier_describe(&w->mbarriers, f->mbarrier, counts, sizeof counts);
        snprintf(out, bytes, "%s %s for %s, at %s", who, waits, counts, place);
    } else if (clustered)
        snprintf(out, bytes, "%s %s in barrier.cluster.wait (%u threads have not come) at %s", who, waits,
                 w->cluster->missing, place);
    else
        snprintf(out, bytes, "%s %s in __syncthreads at %s", who, waits, place);
    return end;
}

void block_abandon(struct worker *w)
{
    w->failed = true;
    simt_tls.self = NULL;
    void *abandoned;
    fiber_switch(&abandoned, w->main_sp);
    __builtin_unreachable();
}

void block_say_deadlock(struct worker *w)
{
    struct cluster *c = w->cluster;
    char text[4096];
    const struct worker *stuck = w->n_alive ? w : NULL;
    snprintf(text, sizeof text, "no thread of the %s can continue: they wait for each other",
             c->n > 1 ? "cluster" : "block");
    for (unsigned m = 0; m < c->n; m++) {
        const struct worker *b = c->member[m];
        stuck = stuck ? stuck : b->n_alive ? b : NULL;
        if (c->n > 1) {
            const size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "\nblock (%u,%u,%u), rank %u of the cluster:", b->block.x,
                     b->block.y, b->block.z, m);
        }
        for (unsigned i = 0; i < b->n_threads;) {
            char group[1200];
            i = describe_group(b, i, group, sizeof group);
            const size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "\n%s", group);
        }
    }
    const struct fiber *first = stuck ? first_alive(stuck) : NULL;
    c->failed = true;
    report_raise(EVENT_DEADLOCK, true, first ? first->file : NULL, first ? first->line : 0, first, "%s", text);
}

void block_deadlock(struct worker *w)
{
    block_say_deadlock(w);
    block_abandon(w);
}

static void leave(struct worker *w, struct fiber *self)
{
    if (w->copying)
        copies_left(w);
    if (w->multiplying)
        wgmma_left(w);
    bulk_left(w);
    w->warp[self->warp].alive &= ~(1u << self->lane);
    if (!--w->n_alive) {
        bulk_block_left(w);
        wgmma_block_left(w);
    }
    warp_lane_left(w, self->warp);
    if (w->n_alive && w->n_at_barrier == w->n_alive)
        barrier_release(w, NULL);
    named_barriers_lane_left(w);
    cluster_lane_left(w, self);
    struct fiber *next = w->n_alive ? schedule_next(w, self->warp) : NULL;
    if (!next && w->n_alive)
        block_deadlock(w);
    simt_tls.self = next;
    void *abandoned;
    fiber_switch(&abandoned, next ? next->sp : w->main_sp);
}

static void fiber_main(void)
{
    struct worker *w = simt_tls.worker;
    simt_tls.checks = w->checks;
    if (w->checks)
        checks_resume(w);
    w->launch->entry(w->launch->args);
    leave(w, simt_tls.self);
    __builtin_unreachable();
}

static void reset(struct worker *w, uint64_t number)
{
    const struct simt_launch *launch = w->launch;
    const struct simt_dim dim = launch->block;
    w->n_threads = w->n_alive = dim.x * dim.y * dim.z;
    w->n_at_barrier = w->sum = w->epoch = 0;
    w->ready_warps = 0;
    w->clock = 0;
    w->failed = w->masked = w->left = false;
    copies_begin_block(w);
    mbarriers_begin_block(w);
    bulk_begin_block(w);
    wgmma_begin_block(w);
    named_barriers_begin_block(w);
    schedule_begin_block(w, number);
    memset(w->warp, 0, sizeof w->warp);
    for (unsigned i = 0; i * 32 < w->n_threads; i++) {
        const unsigned left = w->n_threads - i * 32;
        w->warp[i].alive = left >= 32 ? UINT32_MAX : (1u << left) - 1;
        schedule_ready(w, i, w->warp[i].alive);
    }
    for (unsigned i = 0; i < w->n_threads; i++) {
        struct fiber *f = &w->fiber[i];
        memset(f, 0, sizeof *f);
        f->lane = (uint8_t)(i % 32);
        f->warp = (uint8_t)(i / 32);
        f->batch = f->head = f->q_tile = f->kv_tile = -1;
        f->index = (struct simt_dim){i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
        f->sp = fiber_start(w->stacks, i, fiber_main);
    }
}

void block_set_up(struct worker *w, uint64_t number)
{
    reset(w, number);
    shared_poison(w->launch->shared_bytes);
    if (w->checks)
        checks_begin_block(w, number);
}

void block_run(struct worker *w)
{
    if (w->traps)
        traps_on();
    simt_tls.self = schedule_next(w, 0);
    fiber_switch(&w->main_sp, simt_tls.self->sp);
    if (w->traps)
        traps_off();
    simt_tls.checks = NULL;
    if (w->checks)
        checks_end_block(w->checks);
}
