#include "engine/base/path.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/report.h"
#include "engine/simt/worker.h"

#include <string.h>

const char *warp_op_name(enum simt_warp_op op)
{
    static const char *const names[] = {
#define SIMT_WARP_OP(id, name) name,
#include "engine/simt/include/simt_warp_ops.def"
#undef SIMT_WARP_OP
    };
    return names[op];
}

static bool same_line(const struct fiber *a, const struct fiber *b)
{
    return a->line == b->line && (a->file == b->file || !strcmp(a->file, b->file));
}

static bool same_meeting(const struct fiber *a, const struct fiber *b)
{
    return a->mask == b->mask && a->op == b->op && a->combine == b->combine;
}

/* All of `need` wait: do they wait for each other? */
static bool all_meet(struct worker *w, unsigned warp, uint32_t need)
{
    const struct fiber *lanes = worker_lanes(w, warp);
    const struct fiber *first = &lanes[__builtin_ctz(need)];
    for (uint32_t rest = need & (need - 1); rest; rest &= rest - 1)
        if (!same_meeting(first, &lanes[__builtin_ctz(rest)]))
            return false;
    return true;
}

/* __syncwarp may be reached at different lines; of the others CUDA asks that the lanes execute the same intrinsic. */
static void check_lines(struct worker *w, unsigned warp, uint32_t need)
{
    const struct fiber *lanes = worker_lanes(w, warp);
    const struct fiber *first = &lanes[__builtin_ctz(need)];
    if (first->op == SIMT_SYNCWARP)
        return;
    for (uint32_t rest = need & (need - 1); rest; rest &= rest - 1) {
        const struct fiber *f = &lanes[__builtin_ctz(rest)];
        if (!same_line(first, f)) {
            report_raise(EVENT_SHUFFLE, false, f->file, f->line, f,
                         "lanes of one warp are in %s at different lines (also %s:%d)", warp_op_name(f->op),
                         path_name(first->file), first->line);
            return;
        }
    }
}

static void complete(struct worker *w, unsigned warp, uint32_t need)
{
    struct warp *p = &w->warp[warp];
    p->waiting &= ~need;
    p->met &= ~need;
    const struct fiber *first = &w->fiber[warp * 32 + (unsigned)__builtin_ctz(need)];
    if (first->combine) { /* its accesses are the warp's: it says itself which */
        struct checks *checks = simt_tls.checks;
        simt_tls.checks = NULL;
        first->combine(p->arg, need);
        simt_tls.checks = checks;
    }
    if (w->checks && first->op == SIMT_SYNCWARP)
        checks_syncwarp(w, warp, need);
}

void simt_warp_meet(uint32_t mask, enum simt_warp_op op, simt_combine_fn *combine, void *arg, const char *file,
                    int line)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    struct warp *p = &w->warp[self->warp];
    const uint32_t bit = 1u << self->lane;
    self->file = file;
    self->line = line;
    self->pc = __builtin_return_address(0);
    if (!(mask & bit)) {
        report_raise(EVENT_SHUFFLE, false, file, line, self,
                     "lane %u calls %s with mask %08x, which does not include it", self->lane, warp_op_name(op), mask);
        mask |= bit;
    }
    self->op = op;
    self->mask = mask;
    self->combine = combine;
    p->arg[self->lane] = arg;
    p->waiting |= bit;
    /* Lanes that have returned, or that the block never had, are not waited for. */
    const uint32_t need = mask & p->alive;
    const struct fiber *first = &w->fiber[self->warp * 32 + p->first];
    if (!p->met) {
        p->first = self->lane;
        p->met = bit;
    } else if (same_meeting(first, self)) {
        p->met |= bit;
    }
    if ((p->waiting & need) != need || ((p->met & need) != need && !all_meet(w, self->warp, need))) {
        schedule_wait(w, self);
        return;
    }
    check_lines(w, self->warp, need);
    complete(w, self->warp, need);
    schedule_ready(w, self->warp, need & ~bit);
    schedule_turn(w, self);
}

void warp_lane_left(struct worker *w, unsigned warp)
{
    struct warp *p = &w->warp[warp];
    p->met = 0; /* its first lane's `need` has changed: let all_meet decide again */
    for (uint32_t rest = p->waiting; rest; rest &= rest - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(rest);
        if (!(p->waiting >> lane & 1))
            continue;
        const uint32_t need = w->fiber[warp * 32 + lane].mask & p->alive;
        if ((p->waiting & need) != need || !all_meet(w, warp, need))
            continue;
        check_lines(w, warp, need);
        complete(w, warp, need);
        schedule_ready(w, warp, need);
    }
}

/* The lanes at the line that comes first in the source go on together, the rest at the next turn: so both sides of a
   branch have been left before the lanes meet behind it. */
void warp_release_active(struct worker *w, unsigned warp)
{
    struct warp *p = &w->warp[warp];
    const struct fiber *lanes = worker_lanes(w, warp), *first = &lanes[__builtin_ctz(p->active)];
    for (uint32_t rest = p->active; rest; rest &= rest - 1)
        if (lanes[__builtin_ctz(rest)].line < first->line)
            first = &lanes[__builtin_ctz(rest)];
    uint32_t together = 0;
    for (uint32_t rest = p->active; rest; rest &= rest - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(rest);
        if (same_line(first, &lanes[lane]))
            together |= 1u << lane;
    }
    for (uint32_t rest = together; rest; rest &= rest - 1)
        *(uint32_t *)p->arg[__builtin_ctz(rest)] = together;
    p->active &= ~together;
    schedule_ready(w, warp, together);
}

uint32_t simt_active_mask(const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct fiber *self = simt_tls.self;
    struct warp *p = &w->warp[self->warp];
    uint32_t lanes = 0;
    self->op = SIMT_ACTIVE;
    self->file = file;
    self->line = line;
    self->pc = __builtin_return_address(0);
    p->arg[self->lane] = &lanes;
    p->active |= 1u << self->lane;
    schedule_wait(w, self);
    return *(volatile uint32_t *)&lanes;
}

void simt_shuffle_report(int lane, int source)
{
    const struct worker *w = simt_tls.worker;
    const struct fiber *f = &w->fiber[simt_tls.self->warp * 32u + (unsigned)lane];
    report_raise(EVENT_SHUFFLE, false, f->file, f->line, f,
                 "lane %d reads lane %d, which is not in the mask or has returned: undefined on a GPU", lane, source);
}
