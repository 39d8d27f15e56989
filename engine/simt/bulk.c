#include "engine/simt/bulk.h"

#include "engine/base/dtype.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/mbarriers.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BULK_MAX 512u

struct bulk_copy {
    struct simt_tensor_map map; /* rank 0: plain bytes */
    int32_t at[5];
    unsigned char *shared; /* borrowed: the block's */
    uint64_t address;      /* the same as PTX has it, for the swizzle */
    unsigned char *global; /* of plain bytes; borrowed */
    uint32_t bytes, group;
    bool loads, adds;
    unsigned mbarrier; /* of a load: its number */
    unsigned thread;   /* of a store */
    struct checked_copy checked;
    const char *file;
    int line;
};

struct bulk {
    struct bulk_copy at[BULK_MAX]; /* under way, in order of issue */
    unsigned n;
    uint32_t issued;                  /* copies so far */
    uint32_t group[SIMT_THREADS_MAX]; /* how often a thread has committed */
};

void bulk_begin_block(struct worker *w)
{
    if (!w->bulk)
        return;
    w->bulk->n = w->bulk->issued = 0;
    memset(w->bulk->group, 0, sizeof w->bulk->group);
}

void bulk_free(struct worker *w)
{
    free(w->bulk);
}

/* Byte `offset` of a box that lies at this address: 16-byte pieces are exchanged by the bits of the address (PTX ISA,
   tensor swizzling modes; measured: study of Hopper). */
static size_t swizzled(const struct bulk_copy *c, size_t offset)
{
    const uint64_t a = c->address + offset;
    const uint64_t mask = c->map.swizzle_bytes / 16u ? c->map.swizzle_bytes / 16u - 1 : 0;
    return (size_t)((a ^ (a >> 7 & mask) << 4) - c->address);
}

static void add_element(const struct simt_tensor_map *map, unsigned char *to, const unsigned char *from)
{
    const enum dtype t = map->dtype == 6 ? DTYPE_F16 : map->dtype == 9 ? DTYPE_BF16 : DTYPE_F32;
    dtype_store(t, to, 0, dtype_load(t, to, 0) + dtype_load(t, from, 0));
}

/* One piece of a row, within 16 bytes of the box. */
static void piece(const struct bulk_copy *c, size_t offset, unsigned char *global, size_t bytes)
{
    unsigned char *shared = c->shared + swizzled(c, offset);
    if (c->loads)
        memcpy(shared, global, bytes);
    else if (!c->adds)
        memcpy(global, shared, bytes);
    for (size_t i = 0; c->adds && i < bytes; i += c->map.element_bytes)
        add_element(&c->map, global + i, shared + i);
}

static void outside(const struct bulk_copy *c, size_t offset)
{
    unsigned char *shared = c->shared + swizzled(c, offset);
    const bool nan = c->map.nan_outside;
    for (size_t i = 0; i < c->map.element_bytes; i++)
        shared[i] = nan ? 0xFF : 0; /* all bits set is a NaN of every type */
}

/* A row of the box along dimension 0; base NULL: all of it lies outside of the tensor. */
static void row(const struct bulk_copy *c, size_t offset, unsigned char *base)
{
    const struct simt_tensor_map *m = &c->map;
    const size_t e = m->element_bytes, per = e < 16 ? 16 / e : 1;
    for (int x = 0; x < m->box[0]; x++) {
        const int64_t at = (int64_t)c->at[0] + x;
        if (base && at >= 0 && (uint64_t)at < m->dims[0]) {
            size_t n = 1; /* up to the next 16 bytes of the box, the end of the row, of the tensor */
            while ((x + (int)n) % (int)per && x + (int)n < m->box[0] && (uint64_t)at + n < m->dims[0])
                n++;
            piece(c, offset + (size_t)x * e, base + (size_t)at * e, n * e);
            x += (int)n - 1;
        } else if (c->loads) {
            outside(c, offset + (size_t)x * e);
        }
    }
}

static void make(const struct bulk_copy *c)
{
    const struct simt_tensor_map *m = &c->map;
    if (!m->rank) {
        memcpy(c->loads ? c->shared : c->global, c->loads ? c->global : c->shared, c->bytes);
        return;
    }
    size_t rows = 1;
    for (int d = 1; d < m->rank; d++)
        rows *= m->box[d];
    for (size_t r = 0; r < rows; r++) {
        unsigned char *base = (unsigned char *)(uintptr_t)m->base;
        size_t rest = r;
        for (int d = 1; d < m->rank; d++) {
            const int64_t at = (int64_t)c->at[d] + (int64_t)(rest % m->box[d]);
            rest /= m->box[d];
            if (at < 0 || (uint64_t)at >= m->dims[d])
                base = NULL;
            base = base ? base + (uint64_t)at * m->strides[d - 1] : NULL;
        }
        row(c, r * m->box[0] * m->element_bytes, base);
    }
}

static void finish(struct worker *w, const struct bulk_copy *c)
{
    make(c);
    if (!c->loads)
        return;
    if (w->checks)
        checks_bulk_done(w, c->shared, c->bytes, c->checked);
    mbarrier_brought(w, &w->mbarriers.at[c->mbarrier], c->bytes, c->file, c->line);
}

static void drop(struct bulk *b, unsigned i)
{
    memmove(b->at + i, b->at + i + 1, (--b->n - i) * sizeof *b->at);
}

void bulk_deliver(struct worker *w, struct mbarrier *to)
{
    const unsigned number = (unsigned)(to - w->mbarriers.at);
    for (unsigned i = 0; w->bulk && i < w->bulk->n;) {
        const struct bulk_copy c = w->bulk->at[i];
        if (!c.loads || c.mbarrier != number) {
            i++;
            continue;
        }
        drop(w->bulk, i);
        finish(w, &c);
    }
}

static bool anyone_waits(const struct mbarrier *b)
{
    for (unsigned i = 0; i < SIMT_WARPS_MAX; i++)
        if (b->waiting[i])
            return true;
    return false;
}

/* c is on its way. A load that somebody waits for already is made at once. */
static void issue(struct worker *w, struct bulk_copy *c, const char *what)
{
    const unsigned thread = (unsigned)(simt_tls.self - w->fiber);
    if (!w->bulk)
        w->bulk = calloc(1, sizeof *w->bulk);
    if (!w->bulk || w->bulk->n == BULK_MAX) {
        report_raise(EVENT_SYSTEM, true, c->file, c->line, NULL,
                     w->bulk ? "%s: more than %u bulk copies of a block are under way" : "%s: out of memory", what,
                     BULK_MAX);
        traps_end();
    }
    c->thread = thread;
    c->group = w->bulk->group[thread];
    if (w->checks)
        c->checked = c->loads ? checks_bulk_load(w, c->shared, c->bytes, c->mbarrier, c->file, c->line)
                              : checks_bulk_store(w, c->shared, c->bytes, c->file, c->line);
    if (c->loads && (schedule_coin(w, w->bulk->issued++) || anyone_waits(&w->mbarriers.at[c->mbarrier]))) {
        finish(w, c);
        return;
    }
    w->bulk->at[w->bulk->n++] = *c;
}

static struct bulk_copy tensor_copy(const void *map, int dims, const int32_t *at, uint64_t shared, const char *what,
                                    const char *file, int line)
{
    struct bulk_copy c = {.file = file, .line = line, .address = shared};
    memcpy(&c.map, map, sizeof c.map);
    if (c.map.magic != SIMT_TENSOR_MAP)
        simt_address_error("a bulk copy by a tensor map that cuTensorMapEncodeTiled has not made", file, line);
    if (c.map.rank != dims) {
        report_raise(EVENT_ADDRESS, true, file, line, NULL, "%s of %d dimensions by a tensor map of %d", what, dims,
                     c.map.rank);
        traps_end();
    }
    memcpy(c.at, at, (size_t)dims * sizeof *at);
    c.bytes = c.map.element_bytes;
    for (int d = 0; d < dims; d++)
        c.bytes *= c.map.box[d];
    c.shared = simt_shared_pointer(shared, c.bytes, 128, what, file, line);
    return c;
}

void simt_tma_load(uint64_t to, const void *map, int dims, const int32_t *at, uint64_t mbarrier, const char *file,
                   int line)
{
    static const char what[] = "cp.async.bulk.tensor";
    struct worker *w = simt_tls.worker;
    struct bulk_copy c = tensor_copy(map, dims, at, to, what, file, line);
    simt_tls.self->pc = __builtin_return_address(0);
    c.loads = true;
    c.mbarrier = (unsigned)(mbarrier_at(w, mbarrier, what, file, line) - w->mbarriers.at);
    issue(w, &c, what);
}

void simt_tma_store(const void *map, int dims, const int32_t *at, uint64_t from, bool adds, const char *file, int line)
{
    static const char what[] = "cp.async.bulk.tensor";
    struct bulk_copy c = tensor_copy(map, dims, at, from, what, file, line);
    simt_tls.self->pc = __builtin_return_address(0);
    c.adds = adds;
    if (adds && c.map.dtype != 6 && c.map.dtype != 7 && c.map.dtype != 9)
        simt_gpu_only("a TMA reduction of elements other than f16, bf16 and f32", file, line);
    issue(simt_tls.worker, &c, what);
}

/* PTX ISA, cp.async.bulk: sizes and addresses are multiples of 16 bytes. */
static struct bulk_copy plain_copy(uint64_t shared, const void *global, uint32_t bytes, const char *file, int line)
{
    struct bulk_copy c = {.file = file, .line = line, .address = shared, .bytes = bytes};
    if (bytes % 16 || (uintptr_t)global % 16)
        simt_misaligned_error("cp.async.bulk: sizes and addresses are multiples of 16 bytes", file, line);
    c.shared = simt_shared_pointer(shared, bytes, 16, "cp.async.bulk", file, line);
    c.global = (unsigned char *)(uintptr_t)global;
    return c;
}

void simt_bulk_load(uint64_t to, const void *from, uint32_t bytes, uint64_t mbarrier, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct bulk_copy c = plain_copy(to, from, bytes, file, line);
    simt_tls.self->pc = __builtin_return_address(0);
    c.loads = true;
    c.mbarrier = (unsigned)(mbarrier_at(w, mbarrier, "cp.async.bulk", file, line) - w->mbarriers.at);
    issue(w, &c, "cp.async.bulk");
}

void simt_bulk_store(void *to, uint64_t from, uint32_t bytes, const char *file, int line)
{
    struct bulk_copy c = plain_copy(from, to, bytes, file, line);
    simt_tls.self->pc = __builtin_return_address(0);
    issue(simt_tls.worker, &c, "cp.async.bulk");
}

void simt_bulk_commit(void)
{
    struct worker *w = simt_tls.worker;
    if (w->bulk)
        w->bulk->group[simt_tls.self - w->fiber]++;
}

/* The calling thread's stores, but for those of its last groups. */
static void store(struct worker *w, uint32_t groups_left)
{
    const unsigned thread = (unsigned)(simt_tls.self - w->fiber);
    for (unsigned i = 0; w->bulk && i < w->bulk->n;) {
        const struct bulk_copy c = w->bulk->at[i];
        if (c.loads || c.thread != thread || c.group + groups_left >= w->bulk->group[thread]) {
            i++;
            continue;
        }
        drop(w->bulk, i);
        finish(w, &c);
    }
}

void simt_bulk_wait(uint32_t groups_left)
{
    store(simt_tls.worker, groups_left);
}

void bulk_left(struct worker *w)
{
    if (!w->bulk)
        return;
    simt_bulk_commit();
    store(w, 0);
}
