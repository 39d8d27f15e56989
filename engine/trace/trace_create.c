#include "engine/trace/live.h"
#include "engine/trace/trace_file.h"

#include "engine/base/memory.h"
#include "engine/base/pool.h"
#include "engine/trace/trace_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20, PATTERN_BYTES = 1 << 16, PARTS = 9 };

/* Never written: a NaN pattern where the type has one. FP8 starts as 7F, NaN in both formats; integers as 0. */
static void fill_unwritten(int dtype, unsigned char *to, uint64_t bytes)
{
    if (dtype_has_unwritten((enum dtype)dtype)) {
        const uint16_t pattern = UNWRITTEN_16;
        for (uint64_t i = 0; i + sizeof pattern <= bytes; i += sizeof pattern)
            memcpy(to + i, &pattern, sizeof pattern);
    } else {
        memset(to, dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2 ? 0x7F : 0, bytes);
    }
}

static uint64_t tile_bytes(const struct asc_channel_map *map)
{
    return (uint64_t)map->rows * (uint64_t)map->cols * dtype_bytes((enum dtype)map->dtype);
}

/* What slots look like before the run: the part that exists once, then the part of one kv tile for each of them. */
struct blank {
    unsigned char *head, *kv; /* owned */
    uint64_t head_bytes, kv_bytes;
    uint64_t kv_period; /* bytes in kv: several kv tiles side by side, where one is small */
};

static void blank_free(struct blank *b)
{
    free(b->head);
    free(b->kv);
}

static int blank_make(const struct layout *l, struct blank *b, struct err *err)
{
    *b = (struct blank){.head_bytes = l->slot_stride};
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (l->channel[ch].dtype < 0 || !channel_per_kv(ch))
            continue;
        const uint64_t at = l->channel[ch].offset - l->slots_offset;
        b->kv_bytes = l->channel[ch].kv_stride;
        b->head_bytes = at < b->head_bytes ? at : b->head_bytes;
    }
    const uint64_t copies = b->kv_bytes && b->kv_bytes < PATTERN_BYTES ? PATTERN_BYTES / b->kv_bytes : 1;
    b->kv_period = copies * b->kv_bytes;
    b->head = calloc(1, b->head_bytes + 1);
    b->kv = calloc(1, b->kv_period + 1);
    if (!b->head || !b->kv) {
        blank_free(b);
        return err_no_memory(err, "live trace", "one kv tile of %llu bytes", (unsigned long long)b->kv_bytes);
    }
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct asc_channel_map *map = &l->channel[ch];
        const uint64_t at = map->offset - l->slots_offset;
        if (map->dtype >= 0)
            fill_unwritten(map->dtype, channel_per_kv(ch) ? b->kv + (at - b->head_bytes) : b->head + at,
                           tile_bytes(map));
    }
    for (uint64_t i = 1; i < copies; i++)
        memcpy(b->kv + i * b->kv_bytes, b->kv, b->kv_bytes);
    return 0;
}

/* A range of the file and what it is filled with. */
struct part {
    uint64_t offset, bytes;
    const unsigned char *from; /* borrowed, [period], over and over; NULL: the slots */
    uint64_t period;
};

struct job {
    int fd;
    unsigned char *mapping; /* borrowed */
    struct part parts[PARTS];
    struct blank blank;
    uint64_t slot_stride, page_bytes;
    atomic_llong next;  /* chunk, counted through all parts */
    atomic_int failure; /* errno */
};

/* Bytes at .. at + n of a pattern that repeats. */
static void put_pattern(unsigned char *to, const unsigned char *from, uint64_t period, uint64_t at, uint64_t n)
{
    for (uint64_t run; n; n -= run, at += run, to += run) {
        run = period - at % period;
        run = run < n ? run : n;
        memcpy(to, from + at % period, run);
    }
}

/* Bytes at .. at + n of the slots, which lie one behind the other. */
static void put_slots(const struct job *job, unsigned char *to, uint64_t at, uint64_t n)
{
    const struct blank *b = &job->blank;
    for (uint64_t run; n; n -= run, at += run, to += run) {
        const uint64_t in = at % job->slot_stride, left = job->slot_stride - in;
        run = in < b->head_bytes ? b->head_bytes - in : left;
        run = run < n ? run : n;
        if (in < b->head_bytes)
            memcpy(to, b->head + in, run);
        else
            put_pattern(to, b->kv, b->kv_period, in - b->head_bytes, run);
    }
}

/* Makes the pages of a range, of which a neighbor may have written what lies before it. Linux before 5.14 cannot do
   it through the mapping. */
static int make_pages(const struct job *job, uint64_t offset, uint64_t n)
{
    const uint64_t page = job->page_bytes, begin = offset / page * page, end = offset + n;
    if (madvise(job->mapping + begin, end - begin, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (errno != EINVAL)
        return -1;
    for (uint64_t at = offset; at < end; at = at / page * page + page)
        if (pwrite(job->fd, "", 1, (off_t)at) != 1)
            return -1;
    return 0;
}

static int fill_chunk(void *ctx, int worker)
{
    struct job *job = ctx;
    uint64_t chunk = (uint64_t)atomic_fetch_add(&job->next, 1);
    (void)worker;
    for (int i = 0; i < PARTS; i++) {
        const struct part *part = &job->parts[i];
        const uint64_t chunks = (part->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
        if (chunk >= chunks) {
            chunk -= chunks;
            continue;
        }
        const uint64_t at = chunk * CHUNK_BYTES, left = part->bytes - at, n = left < CHUNK_BYTES ? left : CHUNK_BYTES;
        if (atomic_load(&job->failure))
            return 0;
        if (make_pages(job, part->offset + at, n) != 0) {
            atomic_store(&job->failure, errno);
            return 0;
        }
        if (part->from)
            put_pattern(job->mapping + part->offset + at, part->from, part->period, at, n);
        else
            put_slots(job, job->mapping + part->offset + at, at, n);
        return 1;
    }
    return 0;
}

static struct part given_part(const struct layout_part *to, const void *given, const unsigned char *unknown)
{
    return given ? (struct part){to->offset, to->bytes, given, to->bytes}
                 : (struct part){to->offset, to->bytes, unknown, PATTERN_BYTES};
}

/* The inputs, and the never-written pattern wherever the run may write. mapping: the whole memory file fd, writable.
   pool: whose threads do it; NULL: the calling one does. ERR_SYSTEM where there is no space: every page is made before
   it is written, so that no store raises SIGBUS, here or later. */
static int fill_all(int fd, unsigned char *mapping, const struct layout *l, const struct trace_inputs *inputs,
                    struct pool *pool, struct err *err)
{
    unsigned char o[PATTERN_BYTES], lse[PATTERN_BYTES], unknown[PATTERN_BYTES];
    struct job job = {.fd = fd,
                      .mapping = mapping,
                      .parts = {{l->q.offset, l->q.bytes, inputs->of[0], l->q.bytes},
                                {l->k.offset, l->k.bytes, inputs->of[1], l->k.bytes},
                                {l->v.offset, l->v.bytes, inputs->of[2], l->v.bytes},
                                given_part(&l->q_given, inputs->given[0], unknown),
                                given_part(&l->k_given, inputs->given[1], unknown),
                                given_part(&l->v_given, inputs->given[2], unknown),
                                {l->o.offset, l->o.bytes, o, sizeof o},
                                {l->lse.offset, l->lse.bytes, lse, sizeof lse},
                                {l->slots_offset, l->slot_stride * (uint64_t)l->n_slots, NULL, 0}},
                      .slot_stride = l->slot_stride,
                      .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
    if (blank_make(l, &job.blank, err) != 0)
        return -1;
    fill_unwritten(l->o.dtype, o, sizeof o);
    fill_unwritten(l->lse.dtype, lse, sizeof lse);
    fill_unwritten(DTYPE_F16, unknown, sizeof unknown);
    if (pool) {
        pool_start(pool, fill_chunk, &job);
        pool_wait(pool);
    } else {
        while (fill_chunk(&job, 0))
            ;
    }
    blank_free(&job.blank);
    errno = atomic_load(&job.failure);
    return errno ? err_errno(err, "live trace", "no space for the recorded values") : 0;
}

/* Every page of the memfd is written, here with pwrite or in fill_all(): missing space is then an error now, not a
   SIGBUS in some later store. */
static int write_at(int fd, const void *bytes, size_t n, uint64_t offset, struct err *err)
{
    const char *from = bytes;
    while (n) {
        const ssize_t done = pwrite(fd, from, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return err_errno(err, "live trace", "no space for the recorded values");
        from += done;
        n -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

/* Zeros from the end of one part to the next: what an earlier trace left there goes as well. */
static int write_zeros(int fd, uint64_t from, uint64_t to, struct err *err)
{
    static const unsigned char zeros[ASC_HEADER_BYTES];
    for (uint64_t n; from < to; from += n) {
        n = to - from < sizeof zeros ? to - from : sizeof zeros;
        if (write_at(fd, zeros, n, from, err) != 0)
            return -1;
    }
    return 0;
}

/* The tables that this process follows are its own copies: what lies in the mapping, a stray write can change. */
static int write_index(int fd, struct trace *t, const int32_t (*slots)[3], struct err *err)
{
    const struct layout *l = &t->layout;
    int32_t *index = malloc(l->slot_index.bytes), *places = malloc(l->slots.bytes);
    t->slot_index = index;
    t->slots = places;
    if (!index || !places)
        return err_no_memory(err, "live trace", "the slot table");
    memcpy(places, slots, l->slots.bytes);
    if (trace_index_slots(t, slots, "live trace", index, err) != 0 ||
        write_at(fd, index, l->slot_index.bytes, l->slot_index.offset, err) != 0)
        return -1;
    return write_at(fd, slots, l->slots.bytes, l->slots.offset, err);
}

static int write_header(int fd, const struct trace *t, const struct layout_types *types, struct err *err)
{
    const struct live_header header = {
        .magic = LIVE_MAGIC,
        .abi = ASC_ABI_VERSION,
        .header_bytes = sizeof header,
        .total_bytes = t->layout.total_bytes,
        .problem = t->problem,
        .plan = t->plan,
        .conventions = t->conventions,
        .types = *types,
        .layout = t->layout,
    };
    return write_at(fd, &header, sizeof header, 0, err);
}

/* The gaps between the parts, which are laid out in this order. */
static int write_gaps(int fd, const struct layout *l, struct err *err)
{
    enum { PARTS = 18 };
    const struct layout_part *parts[PARTS] = {&l->q,          &l->k,       &l->v,       &l->o,       &l->lse,
                                              &l->sink,       &l->alibi,   &l->bias,    &l->q_scale, &l->k_scale,
                                              &l->v_scale,    &l->q_given, &l->k_given, &l->v_given, &l->slots,
                                              &l->slot_index, &l->dropped, &l->mistyped};
    int result = write_zeros(fd, 0, l->q.offset, err);
    for (size_t i = 0; i < PARTS && result == 0; i++)
        result = write_zeros(fd, parts[i]->offset + parts[i]->bytes,
                             i + 1 < PARTS ? parts[i + 1]->offset : l->slots_offset, err);
    return result;
}

static int open_memory(struct trace *t, struct err *err)
{
    const uint64_t n_bytes = t->layout.total_bytes;
    struct trace_memory memory;
    t->n_bytes = n_bytes;
    if (trace_store_take(t->store, n_bytes, &memory)) {
        t->fd = memory.fd;
        t->bytes = memory.mapping;
        return write_gaps(t->fd, &t->layout, err);
    }
    if (memory_check(n_bytes, "live trace", "record less", err) != 0)
        return -1;
    t->fd = memfd_create("attnscope trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (t->fd < 0)
        return err_errno(err, "live trace", "no memory file");
    if (ftruncate(t->fd, (off_t)n_bytes) != 0)
        return err_errno(err, "live trace", "no space for %llu bytes", (unsigned long long)n_bytes);
    void *mapping = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, t->fd, 0);
    if (mapping == MAP_FAILED)
        return err_errno(err, "live trace", "mapping %zu bytes", t->n_bytes);
    t->bytes = mapping;
    return 0;
}

/* Sinks, biases and scales, of which the problem need not have any. */
static int write_terms(int fd, const struct layout *l, const struct asc_problem *terms, struct err *err)
{
    const struct {
        const float *from;
        const struct layout_part *to;
    } parts[] = {{terms->sink, &l->sink},       {terms->alibi, &l->alibi},     {terms->bias, &l->bias},
                 {terms->q_scale, &l->q_scale}, {terms->k_scale, &l->k_scale}, {terms->v_scale, &l->v_scale}};
    int failed = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !failed; i++)
        failed = write_at(fd, parts[i].from, parts[i].to->bytes, parts[i].to->offset, err);
    return failed;
}

/* The mapping is writable for this long. */
static int fill(const struct trace *t, const struct trace_inputs *inputs, struct err *err)
{
    unsigned char *mapping = (unsigned char *)(uintptr_t)t->bytes;
    if (mprotect(mapping, t->n_bytes, PROT_READ | PROT_WRITE) != 0)
        return err_errno(err, "live trace", "a writable mapping");
    const int failed = fill_all(t->fd, mapping, &t->layout, inputs, trace_store_fillers(t->store), err);
    if (mprotect(mapping, t->n_bytes, PROT_READ) != 0 && !failed)
        return err_errno(err, "live trace", "a read-only mapping");
    return failed;
}

static int create(struct trace *t, const struct layout_types *types, const int32_t (*slots)[3],
                  const struct trace_inputs *inputs, const struct asc_problem *terms, struct err *err)
{
    static const uint64_t zeros[ASC_CHANNELS];
    const struct layout *l = &t->layout;
    if (open_memory(t, err) != 0)
        return -1;
    if (write_header(t->fd, t, types, err) != 0 || write_terms(t->fd, l, terms, err) != 0 ||
        write_index(t->fd, t, slots, err) != 0 || write_at(t->fd, zeros, sizeof zeros, l->dropped.offset, err) != 0 ||
        write_at(t->fd, zeros, sizeof zeros, l->mistyped.offset, err) != 0 || fill(t, inputs, err) != 0)
        return -1;
    /* A debuggee that shrank the file would take this process down with it. */
    if (fcntl(t->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return err_errno(err, "live trace", "sealing its size");
    return 0;
}

int trace_create(const struct asc_problem *p, const struct asc_plan *plan, const struct asc_conventions *conventions,
                 const struct layout_types *types, const int32_t (*slots)[3], int n_slots, const void *q, const void *k,
                 const void *v, struct trace **out, struct err *err)
{
    const struct trace_inputs inputs = {.of = {q, k, v}};
    return trace_create_in(NULL, p, plan, conventions, types, slots, n_slots, &inputs, out, err);
}

int trace_create_in(struct trace_store *store, const struct asc_problem *p, const struct asc_plan *plan,
                    const struct asc_conventions *conventions, const struct layout_types *types,
                    const int32_t (*slots)[3], int n_slots, const struct trace_inputs *inputs, struct trace **out,
                    struct err *err)
{
    struct trace *t = calloc(1, sizeof *t);
    if (!t)
        return err_no_memory(err, "live trace", "the trace");
    t->fd = -1;
    t->live = 1;
    t->store = trace_store_hold(store);
    t->problem = *p;
    t->problem.q = t->problem.k = t->problem.v = NULL;
    t->problem.o = NULL;
    t->problem.lse = NULL;
    t->problem.sink = t->problem.alibi = t->problem.bias = NULL;
    t->problem.q_scale = t->problem.k_scale = t->problem.v_scale = NULL;
    t->problem.workspace = NULL;
    t->plan = *plan;
    t->conventions = *conventions;
    conventions_resolve(&t->conventions, p);
    t->plan.l_lanes = conventions->l_lanes;
    if (conventions_check(conventions, "registration", err) != 0 ||
        layout_make(&t->problem, &t->plan, types, n_slots, &t->layout, err) != 0 ||
        create(t, types, slots, inputs, p, err) != 0) {
        trace_free(t);
        return -1;
    }
    *out = t;
    return 0;
}
