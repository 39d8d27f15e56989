#include "engine/simt/named_barriers.h"

#include "engine/base/path.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <string.h>

_Static_assert(SIMT_WARPS_MAX == 32, "struct named_barrier has room for so many");

void named_barriers_begin_block(struct worker *w)
{
    for (unsigned id = 0; id < NAMED_BARRIERS; id++)
        if (w->named[id].arrived)
            memset(&w->named[id], 0, sizeof w->named[id]);
}

/* given NULL: no number was given. */
static void check_arguments(const struct worker *w, unsigned id, const unsigned *given, const char *file, int line)
{
    const unsigned count = given ? *given : 32;
    if (id >= NAMED_BARRIERS)
        report_raise(EVENT_BARRIER, true, file, line, NULL, "barrier %u: a block has barriers 0 to %u", id,
                     NAMED_BARRIERS - 1);
    else if (!count || count % 32)
        report_raise(EVENT_BARRIER, true, file, line, NULL, "barrier %u for %u threads: that must be a multiple of 32",
                     id, count);
    else if (given && count > w->n_threads)
        report_raise(EVENT_BARRIER, true, file, line, NULL, "barrier %u for %u threads: the block has %u", id, count,
                     w->n_threads);
    else
        return;
    traps_end();
}

/* What a GPU would take without a word, and count otherwise than its programmer does. */
static void check_round(const struct worker *w, const struct named_barrier *b, unsigned id, unsigned count, bool waits,
                        const char *file, int line)
{
    const struct fiber *self = simt_tls.self;
    if (id == 0 && w->n_at_barrier)
        report_raise(EVENT_BARRIER, false, file, line, self,
                     "barrier 0 is that of __syncthreads, where others wait (%s:%d)", path_name(w->barrier_file),
                     w->barrier_line);
    if (b->arrived && b->expected != count)
        report_raise(EVENT_BARRIER, false, file, line, self, "barrier %u for %u threads: others use it for %u (%s:%d)",
                     id, count, b->expected, path_name(b->file), b->line);
    /* One that has arrived and now waits counts twice, as is meant: it is the last of two parts, and needs itself. */
    if (!waits && b->came[self->warp] >> self->lane & 1)
        report_raise(
            EVENT_BARRIER, false, file, line, self,
            "barrier %u: this thread arrives again before the barrier is complete (%u of %u threads have arrived)", id,
            b->arrived, b->expected);
}

/* An aligned instruction is executed by all threads of a warp together (PTX ISA, barrier{.cta}). */
static void check_aligned(const struct worker *w, const struct named_barrier *b, unsigned id)
{
    for (unsigned i = 0; i * 32 < w->n_threads; i++)
        if (b->came[i] && (b->came[i] & w->warp[i].alive) != w->warp[i].alive)
            report_raise(EVENT_BARRIER, false, b->file, b->line,
                         &w->fiber[i * 32 + (unsigned)__builtin_ctz(b->came[i])],
                         "barrier %u: of warp %u only lanes %08x came to an instruction that its lanes execute "
                         "together",
                         id, i, b->came[i]);
}

static const struct fiber *first_that_came(const struct worker *w, const struct named_barrier *b)
{
    unsigned warp = 0;
    while (!b->came[warp])
        warp++;
    return &w->fiber[warp * 32 + (unsigned)__builtin_ctz(b->came[warp])];
}

/* `self` came last and runs on; NULL: the last thread that was not here has returned. */
static void complete(struct worker *w, unsigned id, const struct fiber *self)
{
    struct named_barrier *b = &w->named[id];
    if (b->whole_block && w->n_alive != w->n_threads)
        report_raise(EVENT_BARRIER, false, b->file, b->line, first_that_came(w, b),
                     "barrier %u is reached by %u of %u threads: the others have returned", id, w->n_alive,
                     w->n_threads);
    for (unsigned i = 0; i * 32 < w->n_threads; i++) {
        uint32_t lanes = b->waiting[i];
        if (w->checks && lanes)
            checks_named_go(w, i, id);
        w->warp[i].named &= ~lanes;
        if (self && self->warp == i)
            lanes &= ~(1u << self->lane);
        schedule_ready(w, i, lanes);
    }
    memset(b, 0, sizeof *b);
    w->clock++;
}

void named_barriers_lane_left(struct worker *w)
{
    for (unsigned id = 0; id < NAMED_BARRIERS; id++)
        if (w->named[id].whole_block && w->named[id].arrived == w->n_alive)
            complete(w, id, NULL);
}

void simt_named_barrier(enum simt_named_op op, unsigned id, unsigned count, int aligned, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    const bool whole_block = op == SIMT_NAMED_SYNC_BLOCK, waits = op != SIMT_NAMED_ARRIVE;
    self->file = file;
    self->line = line;
    check_arguments(w, id, whole_block ? NULL : &count, file, line);
    if (whole_block)
        count = (w->n_threads + 31) / 32 * 32;
    /* Nobody waits here, so that a lane could come to the next round before another has come to this one. */
    if (!waits && aligned)
        simt_active_mask(file, line);
    self->pc = __builtin_return_address(0);
    struct named_barrier *b = &w->named[id];
    check_round(w, b, id, count, waits, file, line);
    const uint32_t bit = 1u << self->lane;
    if (!b->arrived) {
        b->expected = count;
        b->whole_block = whole_block;
        b->file = file;
        b->line = line;
    }
    b->arrived++;
    b->came[self->warp] |= bit;
    if (w->checks)
        checks_named_come(w, self, id);
    if (waits) {
        self->barrier = (uint8_t)id;
        b->waiting[self->warp] |= bit;
        w->warp[self->warp].named |= bit;
    }
    if (b->arrived == (b->whole_block ? w->n_alive : b->expected)) {
        if (aligned)
            check_aligned(w, b, id);
        complete(w, id, self);
        if (w->masked)
            traps_rearm(w);
    } else if (waits) {
        schedule_wait(w, self);
        return;
    }
    schedule_turn(w, self);
}
