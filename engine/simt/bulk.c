#include "engine/simt/bulk.h"

#include "engine/base/dtype.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/mbarriers.h"
#include "engine/simt/report.h"
#include "engine/simt/shared.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct bulk_copy {
    struct simt_tensor_map map; /* rank 0: plain bytes */
    int32_t at[5];
    unsigned char *shared;   /* borrowed: the block's */
    uint64_t address;        /* the same as PTX has it, for the swizzle */
    unsigned char *global;   /* of plain bytes; borrowed */
    struct worker *sender;   /* NULL, or the block whose shared memory `global` is */
    unsigned char value[16]; /* of st.async */
    uint32_t bytes, group;
    bool loads, adds, valued;
    unsigned mbarrier; /* of a load: its number in the block that gets it */
    unsigned thread;   /* of a store */
    struct checked_copy checked;
    const char *file;
    int line;
};

struct bulk {
    struct bulk_copy *at; /* owned, [capacity]; under way, in order of issue */
    unsigned n, capacity;
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
    if (w->bulk)
        free(w->bulk->at);
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
    if (c->valued) {
        memcpy(c->shared, c->value, c->bytes);
        return;
    }
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
    if (c->sender && !c->sender->n_alive)
        report_raise(EVENT_ADDRESS, false, c->file, c->line, NULL,
                     "cp.async.bulk from the shared memory of block (%u,%u,%u) of the cluster, whose threads have all "
                     "returned before it was made",
                     c->sender->block.x, c->sender->block.y, c->sender->block.z);
    make(c);
    if (!c->loads)
        return;
    if (w->checks)
        checks_bulk_done(w, c->shared, c->bytes, c->checked);
    mbarrier_brought(w, &w->mbarriers.at[c->mbarrier], c->bytes, c->file, c->line);
}

void bulk_deliver(struct worker *w, struct mbarrier *to)
{
    const unsigned number = (unsigned)(to - w->mbarriers.at);
    struct bulk *b = w->bulk;
    unsigned kept = 0;
    for (unsigned i = 0; b && i < b->n; i++) {
        const struct bulk_copy *c = &b->at[i];
        if (c->loads && c->mbarrier == number)
            finish(w, c);
        else if (kept++ != i)
            b->at[kept - 1] = *c;
    }
    if (b)
        b->n = kept;
}

static bool anyone_waits(const struct mbarrier *b)
{
    for (unsigned i = 0; i < SIMT_WARPS_MAX; i++)
        if (b->waiting[i])
            return true;
    return false;
}

static struct bulk *bulk_of(struct worker *w, const struct bulk_copy *c, const char *what)
{
    struct bulk *b = w->bulk ? w->bulk : calloc(1, sizeof *b);
    w->bulk = b;
    if (b && b->n == b->capacity) {
        const unsigned more = b->capacity ? 2 * b->capacity : 64;
        struct bulk_copy *at = realloc(b->at, more * sizeof *at);
        b->capacity = at ? more : b->capacity;
        b->at = at ? at : b->at;
    }
    if (b && b->n < b->capacity)
        return b;
    report_raise(EVENT_SYSTEM, true, c->file, c->line, NULL, "%s: out of memory", what);
    traps_end();
}

/* c is on its way, to block w or from the calling one. A load that somebody waits for already is made at once. */
static void issue(struct worker *w, struct bulk_copy *c, const char *what)
{
    struct bulk *b = bulk_of(w, c, what);
    if (!c->loads) {
        c->thread = (unsigned)(simt_tls.self - w->fiber);
        c->group = b->group[c->thread];
    } else {
        mbarrier_filled(&w->mbarriers.at[c->mbarrier], c->file, c->line);
    }
    if (w->checks)
        c->checked = c->loads ? checks_bulk_load(w, c->shared, c->bytes, c->mbarrier, c->file, c->line)
                              : checks_bulk_store(w, c->shared, c->bytes, c->file, c->line);
    if (c->loads && (schedule_coin(w, b->issued++) || anyone_waits(&w->mbarriers.at[c->mbarrier]))) {
        finish(w, c);
        return;
    }
    b->at[b->n++] = *c;
}

/* Its mbarrier is in the block that gets it. */
static void issue_load(struct bulk_copy *c, struct worker *to, uint64_t mbarrier, const char *what)
{
    struct worker *block;
    struct mbarrier *b = mbarrier_at(&block, mbarrier, what, c->file, c->line);
    if (block != to)
        simt_address_error("the mbarrier of a bulk copy is in another block of the cluster than the copy", c->file,
                           c->line);
    if (block->checks && !(c->valued && block == simt_tls.worker))
        checks_mbarrier_far(block, b->born, !c->valued, c->file, c->line);
    c->loads = true;
    c->mbarrier = (unsigned)(b - block->mbarriers.at);
    issue(block, c, what);
}

/* *block: whose shared memory it is. */
static struct bulk_copy tensor_copy(const void *map, int dims, const int32_t *at, uint64_t shared, const char *what,
                                    const char *file, int line, struct worker **block)
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
    c.shared = shared_in(shared, c.bytes, 128, what, file, line, block);
    return c;
}

static void load_tensor(uint64_t to, const void *map, int dims, const int32_t *at, uint64_t mbarrier, const char *file,
                        int line)
{
    static const char what[] = "cp.async.bulk.tensor";
    struct worker *block;
    struct bulk_copy c = tensor_copy(map, dims, at, to, what, file, line, &block);
    issue_load(&c, block, mbarrier, what);
}

void simt_tma_load(uint64_t to, const void *map, int dims, const int32_t *at, uint64_t mbarrier, const char *file,
                   int line)
{
    simt_tls.self->pc = __builtin_return_address(0);
    load_tensor(to, map, dims, at, mbarrier, file, line);
}

void simt_tma_multicast(uint64_t to, const void *map, int dims, const int32_t *at, uint64_t mbarrier, uint32_t ranks,
                        const char *file, int line)
{
    simt_tls.self->pc = __builtin_return_address(0);
    for (uint32_t rest = ranks & 0xFFFFu; rest; rest &= rest - 1) {
        const uint32_t rank = (uint32_t)__builtin_ctz(rest);
        load_tensor(simt_cluster_address(to, rank, file, line), map, dims, at,
                    simt_cluster_address(mbarrier, rank, file, line), file, line);
    }
}

void simt_tma_store(const void *map, int dims, const int32_t *at, uint64_t from, bool adds, const char *file, int line)
{
    static const char what[] = "cp.async.bulk.tensor";
    struct worker *block;
    struct bulk_copy c = tensor_copy(map, dims, at, from, what, file, line, &block);
    simt_tls.self->pc = __builtin_return_address(0);
    c.adds = adds;
    if (adds && c.map.dtype != 6 && c.map.dtype != 7 && c.map.dtype != 9)
        simt_gpu_only("a TMA reduction of elements other than f16, bf16 and f32", file, line);
    if (block != simt_tls.worker)
        simt_address_error("a bulk copy from another block of the cluster", file, line);
    issue(block, &c, what);
}

/* PTX ISA, cp.async.bulk: sizes and addresses are multiples of 16 bytes. */
static struct bulk_copy plain_copy(uint64_t shared, const void *global, uint32_t bytes, const char *file, int line,
                                   struct worker **block)
{
    struct bulk_copy c = {.file = file, .line = line, .address = shared, .bytes = bytes};
    if (bytes % 16 || (uintptr_t)global % 16)
        simt_misaligned_error("cp.async.bulk: sizes and addresses are multiples of 16 bytes", file, line);
    c.shared = shared_in(shared, bytes, 16, "cp.async.bulk", file, line, block);
    c.global = (unsigned char *)(uintptr_t)global;
    return c;
}

static void load_bytes(uint64_t to, const void *from, uint32_t bytes, uint64_t mbarrier, const char *file, int line)
{
    struct worker *block;
    struct bulk_copy c = plain_copy(to, from, bytes, file, line, &block);
    issue_load(&c, block, mbarrier, "cp.async.bulk");
}

void simt_bulk_load(uint64_t to, const void *from, uint32_t bytes, uint64_t mbarrier, const char *file, int line)
{
    simt_tls.self->pc = __builtin_return_address(0);
    load_bytes(to, from, bytes, mbarrier, file, line);
}

void simt_bulk_multicast(uint64_t to, const void *from, uint32_t bytes, uint64_t mbarrier, uint32_t ranks,
                         const char *file, int line)
{
    simt_tls.self->pc = __builtin_return_address(0);
    for (uint32_t rest = ranks & 0xFFFFu; rest; rest &= rest - 1) {
        const uint32_t rank = (uint32_t)__builtin_ctz(rest);
        load_bytes(simt_cluster_address(to, rank, file, line), from, bytes,
                   simt_cluster_address(mbarrier, rank, file, line), file, line);
    }
}

void simt_bulk_send(uint64_t to, uint64_t from, uint32_t bytes, uint64_t mbarrier, const char *file, int line)
{
    struct worker *w = simt_tls.worker, *block;
    simt_tls.self->pc = __builtin_return_address(0);
    const void *source = simt_shared_pointer(from, bytes, 16, "cp.async.bulk", file, line);
    struct bulk_copy c = plain_copy(to, source, bytes, file, line, &block);
    c.sender = block == w ? NULL : w;
    if (w->checks)
        checks_bulk_store(w, source, bytes, file, line);
    issue_load(&c, block, mbarrier, "cp.async.bulk");
}

void simt_store_async(uint64_t to, const void *values, uint32_t bytes, uint64_t mbarrier, const char *file, int line)
{
    struct bulk_copy c = {.file = file, .line = line, .address = to, .bytes = bytes, .valued = true};
    struct worker *block;
    simt_tls.self->pc = __builtin_return_address(0);
    c.shared = shared_in(to, bytes, bytes, "st.async", file, line, &block);
    memcpy(c.value, values, bytes);
    issue_load(&c, block, mbarrier, "st.async");
}

void simt_bulk_store(void *to, uint64_t from, uint32_t bytes, const char *file, int line)
{
    struct worker *block;
    struct bulk_copy c = plain_copy(from, to, bytes, file, line, &block);
    simt_tls.self->pc = __builtin_return_address(0);
    if (block != simt_tls.worker)
        simt_address_error("a bulk copy from another block of the cluster", file, line);
    issue(block, &c, "cp.async.bulk");
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
    struct bulk *b = w->bulk;
    unsigned kept = 0;
    for (unsigned i = 0; b && i < b->n; i++) {
        const struct bulk_copy *c = &b->at[i];
        if (!c->loads && c->thread == thread && c->group + groups_left < b->group[thread])
            finish(w, c);
        else if (kept++ != i)
            b->at[kept - 1] = *c;
    }
    if (b)
        b->n = kept;
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

void bulk_block_left(struct worker *w)
{
    mbarriers_left(w);
    if (w->bulk)
        w->bulk->n = 0;
}
