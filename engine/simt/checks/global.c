/* Accesses to the arrays of a launch: their exact ends, what nobody wrote, who wrote an output, and what. */
#include "engine/base/dtype.h"
#include "engine/simt/checks/state.h"

#include "engine/simt/allocated.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGIONS_MAX 256

/* Of an element of an output: who wrote it, 0: nobody. */
#define OWNER_ATOMIC ((uint64_t)1 << 63)
#define OWNER_BLOCK_SHIFT 30
struct owner {
    uint64_t who; /* 1 + block << 30 | stamp */
    uint32_t site;
};

static struct array {
    char name[64];
    unsigned serial; /* of its region */
    uintptr_t begin, end, page_begin, page_end;
    int dtype, output;
    size_t element_bytes;
    struct owner *owner; /* owned, one for each element of an output; NULL: not looked at */
    size_t owner_bytes;
    uint8_t *written; /* owned, one for each byte: 1: a thread has written it; NULL: an input */
} arrays[REGIONS_MAX];
static int n_arrays, n_configured; /* the first so many are the run's, behind them is what host code allocated */

/* Zeros, which take memory where they are changed. */
static void *make(const struct array *a, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED)
        return at;
    report_raise(EVENT_SYSTEM, true, NULL, 0, NULL, "out of memory for the access checks of %s", a->name);
    return NULL;
}

static void add(const struct simt_region *r)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (r->bytes && n_arrays == REGIONS_MAX)
        report_raise(EVENT_SYSTEM, false, NULL, 0, NULL, "%s is not checked: there are more than %d arrays", r->name,
                     REGIONS_MAX);
    if (!r->bytes || n_arrays == REGIONS_MAX)
        return;
    struct array *a = &arrays[n_arrays++];
    *a = (struct array){.serial = r->serial,
                        .begin = (uintptr_t)r->begin,
                        .end = (uintptr_t)r->begin + r->bytes,
                        .dtype = r->dtype,
                        .output = r->output,
                        .element_bytes = r->output ? dtype_bytes((enum dtype)r->dtype) : 1};
    snprintf(a->name, sizeof a->name, "%s", r->name);
    a->page_begin = a->begin / page * page;
    a->page_end = (a->end + page - 1) / page * page;
    a->written = r->unwritten ? make(a, r->bytes) : NULL;
}

static void drop(struct array *a)
{
    if (a->written)
        munmap(a->written, a->end - a->begin);
}

void global_configure(const struct simt_options *options)
{
    for (int i = 0; i < n_arrays; i++)
        drop(&arrays[i]);
    n_arrays = 0;
    for (int i = 0; i < options->n_regions; i++)
        add(&options->regions[i]);
    n_configured = n_arrays;
}

static bool is_allocated(unsigned serial)
{
    const struct simt_region *r = allocated_after(NULL);
    while (r && r->serial != serial)
        r = allocated_after(r);
    return r;
}

/* What host code has allocated since, and has freed. */
static void follow_allocations(void)
{
    int kept = n_configured;
    for (int i = n_configured; i < n_arrays; i++)
        if (is_allocated(arrays[i].serial))
            arrays[kept++] = arrays[i];
        else
            drop(&arrays[i]);
    n_arrays = kept;
    for (const struct simt_region *r = allocated_after(NULL); r; r = allocated_after(r)) {
        bool known = false;
        for (int i = n_configured; i < kept; i++)
            known = known || arrays[i].serial == r->serial;
        if (!known)
            add(r);
    }
}

void global_begin_launch(void)
{
    follow_allocations();
    for (int i = 0; i < n_arrays; i++) {
        struct array *a = &arrays[i];
        a->owner_bytes = (a->end - a->begin) / a->element_bytes * sizeof *a->owner;
        a->owner = a->output ? make(a, a->owner_bytes) : NULL;
    }
}

void global_end_launch(void)
{
    for (int i = 0; i < n_arrays; i++) {
        if (arrays[i].owner)
            munmap(arrays[i].owner, arrays[i].owner_bytes);
        arrays[i].owner = NULL;
    }
}

/* Which array an access is meant for: that in whose pages it begins. -1: none of ours. */
static int array_at(struct checks *c, uintptr_t at)
{
    if (c->region < n_arrays &&
        at - arrays[c->region].page_begin < arrays[c->region].page_end - arrays[c->region].page_begin)
        return c->region;
    for (int i = 0; i < n_arrays; i++)
        if (at >= arrays[i].page_begin && at < arrays[i].page_end)
            return c->region = i;
    return -1;
}

static __attribute__((noinline, cold)) void outside(struct checks *c, const struct array *a, uintptr_t at, size_t bytes,
                                                    bool write, uint32_t site)
{
    if (!finding_count(c, EVENT_BOUNDS, site, 0))
        return;
    if (at < a->begin)
        finding_tell(c, EVENT_BOUNDS, site, 0, stamp_thread(c->stamp), "%s %zu bytes, %zu bytes before %s",
                     write ? "writes" : "reads", bytes, (size_t)(a->begin - at), a->name);
    else
        finding_tell(c, EVENT_BOUNDS, site, 0, stamp_thread(c->stamp),
                     "%s %zu bytes that end %zu bytes past the end of %s", write ? "writes" : "reads", bytes,
                     (size_t)(at + bytes - a->end), a->name);
}

static __attribute__((noinline, cold)) void two_writers(struct checks *c, const struct array *a, size_t element,
                                                        const struct owner *other, uint32_t site)
{
    const struct worker *w = c->worker;
    const uint64_t block = ((other->who & ~OWNER_ATOMIC) >> OWNER_BLOCK_SHIFT) - 1;
    const uint32_t stamp = (uint32_t)other->who & ~STAMP_KIND;
    const struct simt_dim grid = w->launch->grid, dim = w->launch->block;
    const unsigned thread = stamp_thread(stamp);
    const enum event_kind kind = block == c->block ? EVENT_RACE : EVENT_TWO_WRITERS;
    if (!finding_count(c, kind, site, other->site))
        return;
    char who[128];
    snprintf(who, sizeof who, "thread (%u,%u,%u)", thread % dim.x, thread / dim.x % dim.y, thread / dim.x / dim.y);
    const struct simt_dim self = simt_tls.self->index, b = w->block;
    if (kind == EVENT_RACE)
        finding_tell(c, kind, site, other->site, stamp_thread(c->stamp),
                     "thread (%u,%u,%u) writes element %zu of %s, which %s has written; nothing orders them (block "
                     "(%u,%u,%u))",
                     self.x, self.y, self.z, element, a->name, who, b.x, b.y, b.z);
    else
        finding_tell(c, kind, site, other->site, stamp_thread(c->stamp),
                     "thread (%u,%u,%u) of block (%u,%u,%u) writes element %zu of %s, which %s of block (%u,%u,%u) has "
                     "written",
                     self.x, self.y, self.z, b.x, b.y, b.z, element, a->name, who, (unsigned)(block % grid.x),
                     (unsigned)(block / grid.x % grid.y), (unsigned)(block / grid.x / grid.y));
}

static void own(struct checks *c, const struct array *a, uintptr_t at, size_t bytes, bool atomic, uint32_t site)
{
    const uint64_t me = ((c->block + 1) << OWNER_BLOCK_SHIFT | c->stamp) | (atomic ? OWNER_ATOMIC : 0);
    const size_t first = (at - a->begin) / a->element_bytes, last = (at + bytes - 1 - a->begin) / a->element_bytes;
    for (size_t i = first; i <= last; i++) {
        struct owner *o = &a->owner[i];
        const struct owner old = {__atomic_exchange_n(&o->who, me, __ATOMIC_RELAXED),
                                  __atomic_exchange_n(&o->site, site, __ATOMIC_RELAXED)};
        if (!old.who || (atomic && old.who & OWNER_ATOMIC))
            continue;
        const uint32_t stamp = (uint32_t)old.who & ~STAMP_KIND;
        const bool same_block = ((old.who & ~OWNER_ATOMIC) >> OWNER_BLOCK_SHIFT) == c->block + 1;
        if (!same_block || (stamp_thread(stamp) != stamp_thread(c->stamp) && !is_before(c, stamp)))
            two_writers(c, a, i, &old, site);
    }
}

static bool is_first_pattern(const struct array *a, size_t i)
{
    return ((const volatile unsigned char *)a->begin)[i] == (i & 1 ? ARRAY_POISON_16 >> 8 : ARRAY_POISON_16 & 0xFF);
}

static bool is_written(const struct array *a, size_t i)
{
    return __atomic_load_n(&a->written[i], __ATOMIC_RELAXED);
}

/* The host and code without hooks write too: both bytes of the pattern are to be there still. */
static bool is_left(const struct array *a, size_t i)
{
    return !is_written(a, i) && is_first_pattern(a, i) && (is_written(a, i ^ 1) || is_first_pattern(a, i ^ 1));
}

/* A read that begins `at` bytes into the array. */
static void check_written(struct checks *c, const struct array *a, size_t at, size_t bytes, uint32_t site)
{
    size_t i = at;
    while (i < at + bytes && !is_left(a, i))
        i++;
    if (i < at + bytes && finding_count(c, EVENT_UNINITIALIZED, site, 0))
        finding_tell(c, EVENT_UNINITIALIZED, site, 0, stamp_thread(c->stamp),
                     "reads %s %zu of %s, which no thread has written", a->output ? "element" : "byte",
                     i / a->element_bytes, a->name);
}

static bool finds_nan(int dtype, const unsigned char *from, size_t bytes)
{
    const size_t n = bytes / dtype_bytes((enum dtype)dtype);
    for (size_t i = 0; i < n; i++)
        if (isnan(dtype_load((enum dtype)dtype, from, i)))
            return true;
    return false;
}

/* An input that holds a NaN itself; NULL: none. */
static const char *nan_input(void)
{
    for (int i = 0; i < n_arrays; i++)
        if (!arrays[i].output && arrays[i].dtype >= 0 &&
            finds_nan(arrays[i].dtype, (const unsigned char *)arrays[i].begin, arrays[i].end - arrays[i].begin))
            return arrays[i].name;
    return NULL;
}

static void look_at(struct checks *c, const struct store *s)
{
    const struct array *a = &arrays[s->region];
    if (!finds_nan(a->dtype, (const unsigned char *)s->at, s->bytes) || !finding_count(c, EVENT_NAN_STORE, s->site, 0))
        return;
    const char *input = nan_input();
    finding_tell(c, EVENT_NAN_STORE, s->site, 0, s->thread, "writes a NaN to %s, element %zu%s%s%s", a->name,
                 (size_t)(s->at - a->begin) / a->element_bytes, input ? " (" : "", input ? input : "",
                 input ? " holds a NaN itself)" : "");
}

void checks_flush(struct checks *c)
{
    if (c->twice.bytes)
        shadow_settle(c);
    if (!c->n_stores)
        return;
    const int paused = traps_pause();
    for (unsigned i = 0; i < c->n_stores; i++)
        look_at(c, &c->store[i]);
    c->n_stores = 0;
    traps_resume(paused);
}

void global_access(struct checks *c, uintptr_t at, size_t bytes, enum access access, bool atomic, uint32_t site)
{
    const int region = array_at(c, at);
    if (region < 0)
        return;
    const struct array *a = &arrays[region];
    if (at < a->begin || at + bytes > a->end) {
        outside(c, a, at, bytes, access != READ, site);
        return;
    }
    if (!a->written)
        return;
    if (access != WRITE)
        check_written(c, a, at - a->begin, bytes, site);
    if (access == READ)
        return;
    for (size_t i = at - a->begin; i < at - a->begin + bytes; i++)
        __atomic_store_n(&a->written[i], 1, __ATOMIC_RELAXED);
    if (!a->output)
        return;
    if (a->owner)
        own(c, a, at, bytes, atomic, site);
    if (c->n_stores == STORES_MAX)
        checks_flush(c);
    c->store[c->n_stores++] = (struct store){at, (uint32_t)bytes, site, region, stamp_thread(c->stamp)};
}
