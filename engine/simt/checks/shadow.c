/* Every byte of shared memory has a cell beside it: who wrote it last and who has read it since. */
#include "engine/simt/checks/state.h"
#include "engine/simt/checks/symbols.h"
#include "engine/simt/copies.h"
#include "engine/simt/shared.h"

#include <stdio.h>
#include <string.h>

#define PLACE_BYTES 160

static const char *place_of(const struct checks *c, size_t at, char text[PLACE_BYTES])
{
    symbols_describe((uintptr_t)simt_tls.worker->shared_begin + at, c->dynamic_bytes, text, PLACE_BYTES);
    return text;
}

/* Who else it was: of readers that only their warps are known of, the warp. */
static void say_other(const struct checks *c, unsigned self, uint32_t other, bool other_wrote, char which[WHO_BYTES])
{
    const unsigned thread = stamp_thread(other);
    const struct worker *block;
    checks_fiber(c, thread, &block);
    if (!other_wrote && other & READ_WARPS)
        snprintf(which, WHO_BYTES, "a lane of warp %u%s", (thread - block->checks->first) / 32,
                 block == c->worker ? "" : " of another block");
    else if (thread == self)
        snprintf(which, WHO_BYTES, "another lane of its warp");
    else
        checks_who(c, thread, which);
}

/* "thread (1,0,0) writes byte 4 of the shared array m, which thread (0,0,0) has written; nothing orders them" */
static void say_race(const struct checks *c, size_t at, bool write, unsigned self, uint32_t other, bool other_wrote,
                     char text[400])
{
    char place[PLACE_BYTES], which[WHO_BYTES], own[WHO_BYTES];
    const unsigned thread = stamp_thread(other);
    say_other(c, self, other, other_wrote, which);
    const bool copies = other_wrote && (other & STAMP_KIND) == WROTE_ASYNC;
    const char *from = copies ? copies_source(c->worker, thread, (const void *)(c->shared_begin + at)) : NULL;
    snprintf(text, 400, "%s %s %s, which %s %s%s%s; nothing orders them", checks_who(c, self, own),
             write ? "writes" : "reads", place_of(c, at, place), which,
             copies        ? "copies to by cp.async"
             : other_wrote ? "has written"
                           : "has read",
             from ? " from " : "", from ? from : "");
}

static struct mixture *mixture_of(struct checks *c, uint32_t reader, uint32_t writer)
{
    for (unsigned i = 0; i < c->n_mixtures; i++)
        if (c->mixture[i].reader == reader && c->mixture[i].writer == writer)
            return &c->mixture[i];
    if (c->n_mixtures == MIXTURES_MAX)
        return NULL;
    c->mixture[c->n_mixtures] = (struct mixture){.reader = reader, .writer = writer};
    return &c->mixture[c->n_mixtures++];
}

/* Two arrays overlap where a line reads, among numbers of its own, halves of longer ones that another line has written
   for others to read: of some of these writes it knows, so that no barrier is missing. */
static __attribute__((noinline, cold)) void tell_overlap(struct checks *c, struct mixture *m, size_t at, size_t bytes)
{
    char place[PLACE_BYTES];
    if (m->told || !m->ordered || !m->raced || !m->reads_own || !m->has_reader)
        return;
    m->told = true;
    if (finding_count(c, EVENT_OVERLAP, m->reader, m->writer))
        finding_tell(c, EVENT_OVERLAP, m->reader, m->writer, stamp_thread(c->stamp),
                     "reads, among numbers of %zu bytes, %s, a part of one of %u that is read elsewhere: two arrays "
                     "overlap, or a barrier is missing",
                     bytes, place_of(c, at, place), c->width[at]);
}

static bool is_part(unsigned bytes, unsigned width)
{
    return bytes < width && bytes <= 2 && (width == 4 || width == 8);
}

/* A read of what a store of some width has written. */
static void meet_widths(struct checks *c, size_t at, size_t bytes, uint32_t site)
{
    const unsigned width = c->width[at];
    const uint32_t w = c->cell[at].w, writer = c->sites[at].w;
    for (unsigned i = 0; i < c->n_mixtures && width == bytes; i++) {
        struct mixture *m = &c->mixture[i];
        m->reads_own |= m->reader == site;
        m->has_reader |= m->writer == writer && m->reader != site;
    }
    struct mixture *m = is_part((unsigned)bytes, width) ? mixture_of(c, site, writer) : NULL;
    if (!m)
        return;
    m->ordered |= stamp_thread(w) == stamp_thread(c->stamp) || is_before(c, w);
    tell_overlap(c, m, at, bytes);
}

/* The probe that has recorded this byte since it was written; 0: none. */
static uint32_t recorder_of(const struct checks *c, size_t at)
{
    return c->probe[at].stamp ? c->probe[at].site : 0;
}

static __attribute__((noinline, cold)) void race(struct checks *c, size_t at, bool write, uint32_t other,
                                                 bool other_wrote, uint32_t site, uint32_t other_site)
{
    struct mixture *m = write == other_wrote ? NULL
                        : write              ? mixture_of(c, other_site, site)
                                             : mixture_of(c, site, other_site);
    if (m)
        m->raced = true;
    c->recorder = recorder_of(c, at);
    if (!finding_count(c, EVENT_RACE, site, other_site) && !finding_is_held(c, EVENT_RACE, site, other_site))
        return;
    char text[400];
    const unsigned self = stamp_thread(c->stamp);
    const struct simt_dim b = c->worker->block;
    say_race(c, at, write, self, other, other_wrote, text);
    finding_tell(c, EVENT_RACE, site, other_site, self, "%s (block (%u,%u,%u))", text, b.x, b.y, b.z);
}

void shadow_settle(struct checks *c)
{
    const struct twice t = c->twice;
    c->twice.bytes = 0;
    const bool same = memcmp((const void *)(c->shared_begin + t.at), t.before, t.bytes) == 0;
    c->recorder = t.recorder;
    const bool fresh = finding_count(c, EVENT_RACE, t.site, t.other_site);
    if (!fresh && (same || !finding_is_held(c, EVENT_RACE, t.site, t.other_site)))
        return;
    char text[400];
    const struct simt_dim b = c->worker->block;
    say_race(c, t.at, true, t.thread, t.other, true, text);
    if (same)
        finding_hold(c, EVENT_RACE, t.site, t.other_site, t.thread, "%s: the same value (block (%u,%u,%u))", text, b.x,
                     b.y, b.z);
    else
        finding_tell(c, EVENT_RACE, t.site, t.other_site, t.thread, "%s (block (%u,%u,%u))", text, b.x, b.y, b.z);
}

/* What stands there shows whether the store changes it, once it is made. */
static __attribute__((noinline, cold)) void wrote_twice(struct checks *c, size_t at, struct cell old, uint32_t site)
{
    struct twice *t = &c->twice;
    size_t end = at;
    while (end < c->store_end && c->cell[end].w == old.w && c->cell[end].r == old.r)
        end++;
    if (end == at || end - at > sizeof t->before || t->bytes) {
        race(c, at, true, old.w, true, site, c->sites[at].w);
        return;
    }
    *t = (struct twice){
        at, (uint32_t)(end - at), old.w, site, c->sites[at].w, stamp_thread(c->stamp), recorder_of(c, at), {0}};
    memcpy(t->before, (const void *)(c->shared_begin + at), t->bytes);
}

/* thread: of the probe or of the write, whichever is not the one that runs. */
static __attribute__((noinline, cold)) void probe_race(struct checks *c, size_t at, unsigned thread, bool writes,
                                                       uint32_t probe, uint32_t other)
{
    if (!finding_count(c, EVENT_PROBE_RACE, probe, other))
        return;
    char place[PLACE_BYTES], reader[WHO_BYTES], writer[WHO_BYTES];
    const unsigned self = stamp_thread(c->stamp);
    finding_tell(
        c, EVENT_PROBE_RACE, probe, other, writes ? thread : self,
        "the probe of %s reads %s, which %s writes; nothing orders them: what it records may be of another time",
        checks_who(c, writes ? thread : self, reader), place_of(c, at, place),
        checks_who(c, writes ? self : thread, writer));
}

/* Where the thread has no copies of that time under way itself it is not the wait that is missing, but a barrier. */
static __attribute__((noinline, cold)) void under_way(struct checks *c, size_t at, bool write, uint32_t other,
                                                      uint32_t site, uint32_t other_site)
{
    const unsigned self = stamp_thread(c->stamp), copier = stamp_thread(other);
    char place[PLACE_BYTES], who[WHO_BYTES];
    if (copies_waited(c->worker, self, copier, (const void *)(c->shared_begin + at))) {
        race(c, at, write, other, true, site, other_site);
        return;
    }
    if (!finding_count(c, EVENT_NEVER_WAITED, site, other_site))
        return;
    finding_tell(c, EVENT_NEVER_WAITED, site, other_site, self,
                 "%s %s while a cp.async of %s to it is in flight: no thread has waited for it",
                 write ? "writes" : "reads", place_of(c, at, place), checks_who(c, copier, who));
}

static __attribute__((noinline, cold)) void outside(struct checks *c, size_t at, bool write, uint32_t site)
{
    if (!finding_count(c, EVENT_BOUNDS, site, 0))
        return;
    char place[PLACE_BYTES];
    finding_tell(c, EVENT_BOUNDS, site, 0, stamp_thread(c->stamp), "%s %s", write ? "writes" : "reads",
                 place_of(c, at, place));
}

/* Bytes that were written by code without hooks, as that of libraries and what g++ loses, are poison no more. */
static bool is_poison(const struct checks *c, size_t at, size_t end)
{
    for (; at < end && !c->cell[at].w; at++) {
        const uintptr_t address = c->shared_begin + at;
        if (*(const volatile unsigned char *)address != (address & 1 ? SHARED_POISON >> 8 : SHARED_POISON & 0xFF))
            return false;
    }
    return true;
}

/* A read of bytes from `at` to `end` that begins with one that has no writer; what stands for that afterwards. */
static __attribute__((noinline, cold)) uint32_t unwritten(struct checks *c, size_t at, size_t end, uint32_t site)
{
    if (!is_poison(c, at, end))
        return WROTE_UNSEEN;
    if (finding_count(c, EVENT_UNINITIALIZED, site, 0)) {
        char place[PLACE_BYTES];
        finding_tell(c, EVENT_UNINITIALIZED, site, 0, stamp_thread(c->stamp),
                     "reads %s, which no thread of this block has written", place_of(c, at, place));
    }
    return 0;
}

/* The cell after a read. */
static struct cell read_cell(struct checks *c, size_t at, size_t end, uint32_t many, uint32_t site)
{
    struct cell old = c->cell[at];
    const uint32_t self = c->stamp, w = old.w, r = old.r;
    if (!w)
        old.w = unwritten(c, at, end, site);
    else if ((w & STAMP_KIND) == WROTE_OUTSIDE) {
        outside(c, at, false, site);
        return old;
    } else if ((w & STAMP_KIND) == WROTE_ASYNC)
        under_way(c, at, false, w, site, c->sites[at].w);
    else if ((many || stamp_thread(w) != stamp_thread(self)) && !is_before(c, w))
        race(c, at, false, w, true, site, c->sites[at].w);
    uint32_t others = many;
    if (r & READ_WARPS && stamp_time(r) >= c->base)
        others |= READ_WARPS;
    if (r && !is_before(c, r)) {
        if (stamp_warp(r) != stamp_warp(self))
            others |= READ_WARPS;
        else
            others |= stamp_thread(r) == stamp_thread(self) ? r & READ_LANES : READ_LANES;
    }
    old.r = self | others;
    return old;
}

/* Some warp that has read since the last barrier and that this one knows nothing of, as a cell's r; 0: none. One whose
   line is known comes first. A warp that it has met since may have read before that: it counts as ordered. */
static uint32_t unmet_reader(const struct checks *c, size_t at)
{
    const uint32_t readers = c->warps[at] & ~(1u << stamp_warp(c->stamp)), known = c->sites[at].other_warp;
    if (readers & 1u << known && c->known[known] <= c->base)
        return READ_WARPS | known * 32;
    for (uint32_t rest = readers; rest; rest &= rest - 1) {
        const uint32_t warp = (uint32_t)__builtin_ctz(rest);
        if (c->known[warp] <= c->base)
            return READ_WARPS | warp * 32;
    }
    return 0;
}

/* Where a warp has read a byte, as far as that is known; 0: it is not. */
static uint32_t site_of_reader(const struct checks *c, size_t at, uint32_t reader)
{
    const struct cell_sites *sites = &c->sites[at];
    return stamp_warp(reader) == stamp_warp(c->cell[at].r) ? sites->r
           : stamp_warp(reader) == sites->other_warp       ? sites->other
                                                           : 0;
}

static void check_write(struct checks *c, size_t at, struct cell old, uint32_t kind, uint32_t site)
{
    const bool atomic = kind == WROTE_ATOMIC;
    const uint32_t self = c->stamp, w = old.w, r = old.r;
    if ((w & STAMP_KIND) == WROTE_ASYNC && kind == WROTE_ASYNC && stamp_thread(w) != stamp_thread(self))
        race(c, at, true, w, true, site,
             c->sites[at].w); /* a ring is filled anew by the threads that filled it before */
    else if ((w & STAMP_KIND) == WROTE_ASYNC)
        under_way(c, at, true, w, site, c->sites[at].w);
    else if (w && stamp_thread(w) != stamp_thread(self) && !is_before(c, w) &&
             !(atomic && (w & STAMP_KIND) == WROTE_ATOMIC))
        wrote_twice(c, at, old, site);
    if (!r)
        return;
    const bool others = (stamp_thread(r) != stamp_thread(self) || r & READ_LANES) && !is_before(c, r);
    const uint32_t unmet = !others && r & READ_WARPS && stamp_time(r) >= c->base ? unmet_reader(c, at) : 0;
    const uint32_t reader = others ? r & ~STAMP_KIND : unmet;
    if (reader)
        race(c, at, true, reader, false, site, site_of_reader(c, at, reader));
}

static inline bool same(struct cell a, struct cell b)
{
    return a.w == b.w && a.r == b.r;
}

void shadow_read(struct checks *c, size_t at, size_t bytes, uint32_t many, uint32_t site)
{
    const struct cell *const cell = c->cell;
    const uint32_t mine = c->stamp | many;
    for (size_t i = at, end = at + bytes; i < end;) {
        if (cell[i].r == mine) {
            i++;
            continue;
        }
        if (c->width[i] && !many)
            meet_widths(c, i, bytes, site);
        const struct cell old = cell[i], new = read_cell(c, i, end, many, site);
        const uint32_t bits = 1u << stamp_warp(old.r) | 1u << stamp_warp(new.r);
        const bool is_other = old.r && stamp_warp(old.r) != stamp_warp(new.r);
        for (; i < end && same(cell[i], old); i++) {
            if (is_other) {
                c->sites[i].other = c->sites[i].r;
                c->sites[i].other_warp = stamp_warp(old.r);
            }
            if (new.r & READ_WARPS)
                c->warps[i] = (old.r & READ_WARPS ? c->warps[i] : 0) | bits;
            c->cell[i] = new;
            c->sites[i].r = site;
        }
    }
}

void shadow_probe(struct checks *c, size_t at, size_t bytes, uint32_t site)
{
    c->probed = true;
    for (size_t i = at; i < at + bytes; i++) {
        const uint32_t w = c->cell[i].w;
        if (w > WROTE_UNSEEN && (w & STAMP_KIND) != WROTE_OUTSIDE && stamp_thread(w) != stamp_thread(c->stamp) &&
            !is_before(c, w))
            probe_race(c, i, stamp_thread(w), false, site, c->sites[i].w);
        c->probe[i] = (struct cell_probe){c->stamp, site};
    }
}

/* A write of what a probe has read, which does not know that it has. */
static void meet_probes(struct checks *c, size_t at, size_t bytes, uint32_t site)
{
    for (size_t i = at; i < at + bytes; i++) {
        const struct cell_probe p = c->probe[i];
        if (p.stamp && stamp_thread(p.stamp) != stamp_thread(c->stamp) && !is_before(c, p.stamp))
            probe_race(c, i, stamp_thread(p.stamp), true, p.site, site);
        c->probe[i].stamp = 0;
    }
}

void shadow_write(struct checks *c, size_t at, size_t bytes, uint32_t kind, uint32_t site)
{
    const struct cell *const cell = c->cell;
    const uint32_t mine = c->stamp | kind;
    for (size_t i = at, end = at + bytes; i < end;) {
        if (cell[i].w == mine && (!cell[i].r || cell[i].r == c->stamp)) {
            i++;
            continue;
        }
        const struct cell old = cell[i];
        if ((old.w & STAMP_KIND) == WROTE_OUTSIDE) {
            outside(c, i, true, site);
            for (; i < end && same(cell[i], old); i++)
                ;
            continue;
        }
        c->store_end = kind == WROTE_PLAIN ? end : 0;
        check_write(c, i, old, kind, site);
        for (; i < end && same(cell[i], old); i++) {
            c->cell[i] = (struct cell){mine, 0};
            c->sites[i].w = site;
            c->filled[i] = kind == WROTE_ASYNC;
            c->width[i] = kind == WROTE_PLAIN && bytes <= 8 ? (uint8_t)bytes : 0;
        }
    }
    if (c->probed)
        meet_probes(c, at, bytes, site);
}

void shadow_update(struct checks *c, size_t at, size_t bytes, uint32_t site)
{
    for (size_t i = at; i < at + bytes; i++)
        if (!c->cell[i].w && !unwritten(c, i, at + bytes, site))
            break;
    shadow_write(c, at, bytes, WROTE_ATOMIC, site);
}

/* Cells outside of all arrays stay as they are from block to block. */
void shadow_clear(struct checks *c, size_t dynamic_bytes)
{
    const struct symbols *s = symbols_get();
    if (c->probed)
        memset(c->probe, 0, c->shared_bytes * sizeof *c->probe);
    c->probed = false;
    if (c->dynamic_bytes != dynamic_bytes) {
        for (size_t i = 0; i < c->shared_bytes; i++)
            c->cell[i] = (struct cell){WROTE_OUTSIDE, 0};
        c->dynamic_bytes = dynamic_bytes;
    }
    for (size_t i = 0; i < s->n; i++)
        memset(c->cell + s->at[i].offset, 0, s->at[i].bytes * sizeof *c->cell);
    memset(c->cell + s->dynamic_offset, 0, dynamic_bytes * sizeof *c->cell);
}
