#include "engine/simt/mbarriers.h"

#include "engine/base/path.h"
#include "engine/simt/bulk.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/report.h"
#include "engine/simt/shared.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* PTX ISA, mbarrier: "Limits on the values of the counts". */
#define COUNT_MAX 0xFFFFFu

void mbarriers_begin_block(struct worker *w)
{
    w->mbarriers.n = 0;
}

static unsigned number_of(const struct worker *w, const struct mbarrier *b)
{
    return (unsigned)(b - w->mbarriers.at);
}

static struct mbarrier *find(struct worker *w, uint64_t address)
{
    for (unsigned i = 0; i < w->mbarriers.n; i++)
        if (w->mbarriers.at[i].address == address)
            return &w->mbarriers.at[i];
    return NULL;
}

struct mbarrier *mbarrier_at(struct worker **block, uint64_t address, const char *what, const char *file, int line)
{
    const uint64_t own = shared_local(address);
    shared_in(address, 8, 8, what, file, line, block);
    struct mbarrier *b = find(*block, own);
    if (b)
        return b;
    report_raise(EVENT_BARRIER, true, file, line, NULL,
                 "%s: no mbarrier.init has come for the mbarrier at shared address 0x%" PRIx64, what, own);
    traps_end();
}

/* Where it was initialized, and by whom: a helper does that for all of them. Which one of those it is its address says,
   and its number among all that one instruction has initialized. */
static int write_name(const struct mbarriers *all, const struct mbarrier *b, char *text, unsigned size)
{
    char number[48] = "", called[256] = "";
    unsigned n = 0, own = 0;
    struct simt_stack stack;
    const struct locate where = {.pc = (uintptr_t)b->pc, .file = b->file, .line = b->line, .body = (uintptr_t)b->body};
    locate_stack(&where, &stack);
    const struct simt_frame call = locate_call(&stack);
    for (unsigned i = 0; i < all->n; i++) {
        n += all->at[i].address && all->at[i].pc == b->pc;
        own = &all->at[i] == b ? n : own;
    }
    if (stack.n > 1)
        snprintf(called, sizeof called, ", called at %s:%d", path_name(call.file), call.line);
    if (n > 1)
        snprintf(number, sizeof number, "%u of %u initialized there, ", own, n);
    return snprintf(text, size, "the mbarrier of %s:%d%s (%sshared address 0x%" PRIx64 ")", path_name(b->file), b->line,
                    called, number, b->address);
}

void mbarriers_left(struct worker *w)
{
    for (unsigned i = 0; i < w->mbarriers.n; i++) {
        const struct mbarrier *b = &w->mbarriers.at[i];
        char name[400];
        if (b->filled <= b->seen)
            continue;
        write_name(&w->mbarriers, b, name, sizeof name);
        report_raise(EVENT_NEVER_WAITED, false, b->copy_file, b->copy_line, simt_tls.self,
                     "a bulk copy to this block, whose last thread returns: nobody has waited for phase %u of %s, "
                     "which tells that it has come",
                     b->filled - 1, name);
    }
}

void simt_mbarrier_fence(void)
{
    struct worker *w = simt_tls.worker;
    for (unsigned i = 0; i < w->mbarriers.n; i++)
        if (w->mbarriers.at[i].by == simt_tls.self)
            w->mbarriers.at[i].born.fenced = true;
}

void mbarrier_filled(struct mbarrier *b, const char *file, int line)
{
    b->filled = b->phase + 1;
    b->copy_file = file;
    b->copy_line = line;
}

void simt_mbarrier_init(uint64_t address, uint32_t count, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    simt_shared_pointer(address, 8, 8, "mbarrier.init", file, line);
    struct mbarrier *b = find(w, address);
    if (!count || count > COUNT_MAX) {
        report_raise(EVENT_BARRIER, true, file, line, NULL, "mbarrier.init with a count of %u: 1 to %u are allowed",
                     count, COUNT_MAX);
        traps_end();
    }
    for (unsigned i = 0; !b && i < w->mbarriers.n; i++)
        b = w->mbarriers.at[i].address ? NULL : &w->mbarriers.at[i];
    if (!b && w->mbarriers.n == MBARRIERS_MAX) {
        report_raise(EVENT_BARRIER, true, file, line, NULL, "more than %u mbarriers in a block", MBARRIERS_MAX);
        traps_end();
    }
    if (!b)
        b = &w->mbarriers.at[w->mbarriers.n++];
    *b = (struct mbarrier){.address = address, .expected = count, .pending = count, .file = file, .line = line};
    b->pc = __builtin_return_address(0);
    b->body = simt_tls.self->body;
    b->by = simt_tls.self;
    if (w->checks)
        b->born = checks_mbarrier_born(w);
    if (w->checks)
        checks_mbarrier_init(w, number_of(w, b));
}

void simt_mbarrier_inval(uint64_t address, const char *file, int line)
{
    struct worker *w;
    mbarrier_at(&w, address, "mbarrier.inval", file, line)->address = 0;
}

/* Ends the phase if nothing is missing. All that wait are for this one: who waits for another has returned at once.
   Returns a warp of which some go on; -1: none does. */
static int advance(struct worker *w, struct mbarrier *b)
{
    int woken = -1;
    if (b->pending || b->bytes)
        return -1;
    b->phase++;
    b->pending = b->expected;
    w->clock++;
    for (unsigned i = 0; i * 32 < w->n_threads; i++) {
        const uint32_t lanes = b->waiting[i];
        if (!lanes)
            continue;
        b->waiting[i] = 0;
        w->warp[i].at_mbarrier &= ~lanes;
        schedule_ready(w, i, lanes);
        woken = (int)i;
    }
    return woken;
}

static void add_bytes(struct mbarrier *b, int64_t bytes, const char *file, int line)
{
    b->bytes += bytes;
    if (b->bytes > (int64_t)COUNT_MAX || b->bytes < -(int64_t)COUNT_MAX)
        report_raise(EVENT_BARRIER, false, file, line, simt_tls.self,
                     "the mbarrier of %s:%d counts %" PRId64 " bytes: it can count to %u", path_name(b->file), b->line,
                     b->bytes, COUNT_MAX);
}

void mbarrier_brought(struct worker *w, struct mbarrier *b, int64_t bytes, const char *file, int line)
{
    add_bytes(b, -bytes, file, line);
    advance(w, b);
}

void simt_mbarrier_transactions(uint64_t address, int64_t bytes, const char *file, int line)
{
    struct worker *w;
    struct mbarrier *b =
        mbarrier_at(&w, address, bytes < 0 ? "mbarrier.complete_tx" : "mbarrier.expect_tx", file, line);
    add_bytes(b, bytes, file, line);
    if (bytes < 0)
        advance(w, b);
}

uint64_t simt_mbarrier_arrive(uint64_t address, uint32_t count, uint32_t expected_bytes, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct worker *block;
    struct fiber *self = simt_tls.self;
    struct mbarrier *b = mbarrier_at(&block, address, "mbarrier.arrive", file, line);
    const uint32_t phase = b->phase;
    self->file = file;
    self->line = line;
    self->pc = __builtin_return_address(0);
    if (w->checks && block != w)
        checks_mbarrier_far(block, b->born, false, file, line);
    if (w->checks)
        checks_mbarrier_come(w, self, block, number_of(block, b));
    add_bytes(b, expected_bytes, file, line);
    if (count > b->pending) {
        report_raise(EVENT_BARRIER, false, file, line, self,
                     "mbarrier.arrive of %u, where %u of %u arrivals are left in this phase (mbarrier.init at %s:%d)",
                     count, b->pending, b->expected, path_name(b->file), b->line);
        count = b->pending;
    }
    b->pending -= count;
    const int woken = advance(block, b);
    /* Who has waited goes first: what the arriving thread still does to what it has handed over shows. */
    if (woken >= 0 && block != w && w->order < SIMT_SHUFFLED)
        schedule_hand_block(w, self, block);
    else if (woken >= 0 && w->order < SIMT_SHUFFLED)
        schedule_hand(w, self, (unsigned)woken, w->warp[woken].ready);
    else
        schedule_turn(w, self);
    return phase;
}

static void pass(struct worker *w, struct mbarrier *b, const struct fiber *self)
{
    b->seen = b->phase;
    if (w->checks)
        checks_mbarrier_go(w, self, number_of(w, b));
}

bool simt_mbarrier_wait(uint64_t address, uint32_t parity, bool waits, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    const char *const what = waits ? "mbarrier.try_wait" : "mbarrier.test_wait";
    struct worker *block;
    struct mbarrier *b = mbarrier_at(&block, address, what, file, line);
    if (block != w)
        simt_address_error("an mbarrier of another block of the cluster can not be waited for", file, line);
    self->file = file;
    self->line = line;
    self->pc = __builtin_return_address(0);
    if (parity > 1)
        report_raise(EVENT_BARRIER, false, file, line, self, "an mbarrier's phases have parity 0 and 1, not %u",
                     parity);
    if ((b->phase & 1) == (parity & 1))
        bulk_deliver(w, b); /* what it waits for comes as late as it can */
    if ((b->phase & 1) != (parity & 1)) {
        pass(w, b, self);
        schedule_turn(w, self);
        return true;
    }
    if (!waits) {
        simt_yield();
        return false;
    }
    const unsigned number = number_of(w, b);
    self->mbarrier = (uint8_t)number;
    b->waiting[self->warp] |= 1u << self->lane;
    w->warp[self->warp].at_mbarrier |= 1u << self->lane;
    schedule_wait(w, self);
    pass(w, b, self);
    return true;
}

void mbarrier_describe(const struct mbarriers *all, unsigned number, char *text, unsigned size)
{
    const struct mbarrier *b = &all->at[number];
    int used = write_name(all, b, text, size);
    if (used > 0 && (unsigned)used < size)
        used += snprintf(text + used, size - (unsigned)used, ", phase %u: %u of %u arrivals are missing", b->phase,
                         b->pending, b->expected);
    if (b->bytes && used > 0 && (unsigned)used < size)
        snprintf(text + used, size - (unsigned)used, ", and %" PRId64 " bytes %s", b->bytes > 0 ? b->bytes : -b->bytes,
                 b->bytes > 0 ? "that it expects" : "came unexpected");
}
