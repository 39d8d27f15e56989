#include "engine/simt/checks/checks.h"

#include "engine/simt/checks/state.h"
#include "engine/simt/checks/symbols.h"
#include "engine/simt/fiber.h"
#include "engine/simt/report.h"
#include "engine/simt/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In a kernel that is compiled with checks (simt_keywords.h). */
extern const int simt_checked __attribute__((weak));

bool checks_wanted(void)
{
    return &simt_checked != NULL;
}

struct checks *checks_new(void)
{
    return calloc(1, sizeof(struct checks));
}

void checks_free(struct checks *c)
{
    if (!c)
        return;
    free(c->cell);
    free(c->sites);
    free(c->warps);
    free(c->probe);
    free(c->filled);
    free(c->width);
    free(c);
}

void checks_configure(const struct simt_options *options)
{
    global_configure(options);
}

void checks_begin_launch(void)
{
    findings_begin_launch();
    global_begin_launch();
}

void checks_end_launch(struct worker *const *workers, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        findings_add(&workers[i]->checks->findings);
        findings_clear(&workers[i]->checks->findings);
        workers[i]->checks->n_mixtures = 0;
    }
    findings_end_launch();
    global_end_launch();
}

/* The cells are there. The block of the thread-local storage has the same size in every thread. */
static bool make_cells(struct checks *c, size_t bytes)
{
    if (c->cell)
        return true;
    c->cell = malloc(bytes * sizeof *c->cell);
    c->sites = calloc(bytes, sizeof *c->sites);
    c->warps = calloc(bytes, sizeof *c->warps);
    c->probe = calloc(bytes, sizeof *c->probe);
    c->filled = calloc(bytes, sizeof *c->filled);
    c->width = calloc(bytes, sizeof *c->width);
    c->dynamic_bytes = SIZE_MAX;
    return c->cell && c->sites && c->warps && c->probe && c->filled && c->width;
}

void checks_begin_block(struct worker *w, uint64_t number)
{
    struct checks *c = w->checks;
    const size_t bytes = (size_t)(w->shared_end - w->shared_begin);
    c->worker = w;
    c->block = number;
    c->stacks_begin = (uintptr_t)w->stacks;
    c->stacks_bytes = w->n_stacks * FIBER_BYTES;
    c->shared_begin = (uintptr_t)w->shared_begin;
    c->shared_bytes = make_cells(c, bytes) ? bytes : 0;
    if (!c->shared_bytes && bytes)
        report_raise(EVENT_SYSTEM, true, NULL, 0, NULL, "out of memory for the access checks");
    c->n_stores = c->twice.bytes = 0;
    symbols_read(c->shared_begin, bytes);
    if (c->shared_bytes)
        shadow_clear(c, w->launch->shared_bytes);
    order_begin_block(c, w->n_threads);
}

void checks_end_block(struct checks *c)
{
    checks_flush(c);
}

void checks_read(struct checks *c, const void *p, size_t bytes, uint32_t many, uint32_t site)
{
    const uintptr_t at = (uintptr_t)p - c->shared_begin;
    if (at < c->shared_bytes && bytes <= c->shared_bytes - at)
        shadow_read(c, at, bytes, many, site);
    else if ((uintptr_t)p - c->stacks_begin >= c->stacks_bytes)
        global_access(c, (uintptr_t)p, bytes, READ, false, site);
}

uint32_t checks_copy_issue(struct worker *w, const void *to, const void *from, size_t bytes, size_t read,
                           const void *call, const char *file, int line)
{
    struct checks *c = w->checks;
    const uint32_t site = site_of_line(call, file, line);
    const uintptr_t at = (uintptr_t)to - c->shared_begin;
    if (read)
        checks_read(c, from, read, 0, site);
    if (at < c->shared_bytes && bytes <= c->shared_bytes - at)
        shadow_write(c, at, bytes, WROTE_ASYNC, site);
    return site;
}

const struct fiber *checks_fiber(const struct checks *c, unsigned thread, const struct worker **block)
{
    const struct worker *w = c->worker;
    const unsigned rank = c->stride && c->order == &w->cluster->member[0]->checks->own ? thread / c->stride : w->rank;
    *block = w->cluster->member[rank];
    return &(*block)->fiber[thread - (*block)->checks->first];
}

const char *checks_who(const struct checks *c, unsigned thread, char text[WHO_BYTES])
{
    const struct worker *block;
    const struct simt_dim i = checks_fiber(c, thread, &block)->index, b = block->block;
    if (block == c->worker)
        snprintf(text, WHO_BYTES, "thread (%u,%u,%u)", i.x, i.y, i.z);
    else
        snprintf(text, WHO_BYTES, "thread (%u,%u,%u) of block (%u,%u,%u)", i.x, i.y, i.z, b.x, b.y, b.z);
    return text;
}

struct checks *checks_of(struct checks *running, struct worker *block)
{
    struct checks *c = block->checks;
    if (c != running) { /* that block does not run, and takes its own up again when it does */
        c->stamp = running->stamp;
        c->known = running->known;
        c->base = c->told.base;
    }
    return c;
}

struct checked_mbarrier checks_mbarrier_born(struct worker *w)
{
    return (struct checked_mbarrier){w->checks->stamp, false};
}

void checks_mbarrier_far(struct worker *block, struct checked_mbarrier born, bool copies, const char *file, int line)
{
    struct checks *c = simt_tls.worker->checks;
    if (born.fenced || c->order->exhausted || (!copies && is_before(c, born.stamp)))
        return;
    const uint32_t site = site_of_line(simt_tls.self->pc, file, line);
    if (finding_count(c, EVENT_FENCE, site, 0))
        finding_tell(c, EVENT_FENCE, site, 0, stamp_thread(c->stamp),
                     "%s an mbarrier%s without fence.mbarrier_init behind its mbarrier.init",
                     copies ? "a copy tells" : "a thread arrives at",
                     block == simt_tls.worker ? "" : " of another block of the cluster");
}

void checks_wgmma_unfenced(struct worker *w, const char *file, int line)
{
    struct checks *c = w->checks;
    const uint32_t site = site_of_line(simt_tls.self->pc, file, line);
    if (finding_count(c, EVENT_FENCE, site, 0))
        finding_tell(c, EVENT_FENCE, site, 0, stamp_thread(c->stamp),
                     "wgmma without wgmma.fence since this thread last waited: its registers may still be in use");
}

struct checked_copy checks_bulk_load(struct worker *w, const void *to, size_t bytes, unsigned mbarrier,
                                     const char *file, int line)
{
    struct worker *self = simt_tls.worker;
    struct checks *c = checks_of(self->checks, w);
    const struct checked_copy copy = {site_of_line(simt_tls.self->pc, file, line), c->stamp};
    const uintptr_t at = (uintptr_t)to - c->shared_begin;
    if (at < c->shared_bytes && bytes <= c->shared_bytes - at)
        shadow_write(c, at, bytes, WROTE_ASYNC, copy.site);
    checks_mbarrier_come(self, simt_tls.self, w, mbarrier); /* who passes it knows of the load */
    return copy;
}

struct checked_copy checks_bulk_store(struct worker *w, const void *from, size_t bytes, const char *file, int line)
{
    struct checks *c = w->checks;
    const struct checked_copy copy = {site_of_line(simt_tls.self->pc, file, line), c->stamp};
    checks_async_read(w, from, bytes, file, line);
    checks_read(c, from, bytes, 0, copy.site);
    return copy;
}

/* The last fence of the running thread's warp. */
static uint32_t fenced_here(const struct checks *c)
{
    uint32_t last = 0;
    for (unsigned i = stamp_warp(c->stamp) * 32, end = i + 32; i < end; i++)
        last = c->order->fenced[i] > last ? c->order->fenced[i] : last;
    return last;
}

void checks_async_read(struct worker *w, const void *p, size_t bytes, const char *file, int line)
{
    struct checks *c = w->checks;
    const uintptr_t at = (uintptr_t)p - c->shared_begin;
    const uint32_t here = fenced_here(c);
    for (size_t i = at; at < c->shared_bytes && i < at + bytes && i < c->shared_bytes; i++) {
        const uint32_t by = c->cell[i].w, kind = by & STAMP_KIND;
        if (by <= WROTE_UNSEEN || (kind != WROTE_PLAIN && kind != WROTE_ATOMIC) || c->filled[i] || c->order->exhausted)
            continue;
        const unsigned thread = stamp_thread(by);
        if (c->order->fenced[thread] > stamp_time(by) || here > stamp_time(by))
            continue;
        const uint32_t site = site_of_line(simt_tls.self->pc, file, line);
        if (finding_count(c, EVENT_FENCE, site, c->sites[i].w)) {
            char place[160], who[WHO_BYTES];
            symbols_describe((uintptr_t)p + (i - at), c->dynamic_bytes, place, sizeof place);
            finding_tell(c, EVENT_FENCE, site, c->sites[i].w, stamp_thread(c->stamp),
                         "TMA or wgmma reads %s, which %s has written with a store; no fence.proxy.async is between",
                         place, checks_who(c, thread, who));
        }
        return;
    }
}

void checks_bulk_done(struct worker *w, const void *to, size_t bytes, struct checked_copy copy)
{
    struct checks *c = w->checks;
    const uintptr_t at = (uintptr_t)to - c->shared_begin;
    for (size_t i = at; at < c->shared_bytes && i < at + bytes && i < c->shared_bytes; i++)
        if ((c->cell[i].w & STAMP_KIND) == WROTE_ASYNC) {
            c->cell[i] = (struct cell){copy.stamp, 0};
            c->sites[i].w = copy.site;
        }
}

void checks_copy_done(struct worker *w, const void *to, size_t bytes, uint32_t site)
{
    struct checks *c = w->checks;
    const uintptr_t at = (uintptr_t)to - c->shared_begin;
    for (size_t i = at; at < c->shared_bytes && i < at + bytes && i < c->shared_bytes; i++)
        if ((c->cell[i].w & STAMP_KIND) == WROTE_ASYNC) {
            c->cell[i] = (struct cell){c->stamp, 0};
            c->sites[i].w = site;
        }
}

void checks_copy_left(struct worker *w, const void *to, size_t bytes, uint32_t site, const char *from)
{
    struct checks *c = w->checks;
    const unsigned thread = (unsigned)(simt_tls.self - w->fiber);
    if (!finding_count(c, EVENT_NEVER_WAITED, site, 0))
        return;
    char place[160];
    symbols_describe((uintptr_t)to, c->dynamic_bytes, place, sizeof place);
    finding_tell(c, EVENT_NEVER_WAITED, site, 0, thread,
                 "returns without having waited for its cp.async of %zu bytes%s%s to %s", bytes, from ? " from " : "",
                 from ? from : "", place);
}
