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

enum { CHUNK_BYTES = 1 << 20, PATTERN_BYTES = 1 << 16, PARTS = 10 + ASC_ALL_CHANNELS };

/* A range of the file and what it is filled with. */
struct part {
    uint64_t offset, bytes;
    const unsigned char *from; /* borrowed, [period], over and over */
    uint64_t period;
};

struct job {
    int fd;
    unsigned char *mapping; /* borrowed */
    struct part parts[PARTS];
    uint64_t page_bytes;
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
        put_pattern(job->mapping + part->offset + at, part->from, part->period, at, n);
        return 1;
    }
    return 0;
}

static struct part given_part(const struct layout_part *to, const void *given, const unsigned char *unknown)
{
    return given ? (struct part){to->offset, to->bytes, given, to->bytes}
                 : (struct part){to->offset, to->bytes, unknown, PATTERN_BYTES};
}

/* What types begin with, each pattern PATTERN_BYTES long. */
struct patterns {
    unsigned char *of[DTYPE_COUNT]; /* owned */
};

static int patterns_make(struct patterns *p, struct err *err)
{
    bool failed = false;
    for (int type = 0; type < DTYPE_COUNT; type++) {
        const uint16_t pattern = dtype_unwritten_pattern((enum dtype)type);
        p->of[type] = malloc(PATTERN_BYTES);
        failed = failed || !p->of[type];
        for (size_t i = 0; p->of[type] && i < PATTERN_BYTES; i += sizeof pattern)
            memcpy(p->of[type] + i, &pattern, sizeof pattern);
    }
    return failed ? err_no_memory(err, "live trace", "the never-written values") : 0;
}

static void patterns_free(struct patterns *p)
{
    for (int type = 0; type < DTYPE_COUNT; type++)
        free(p->of[type]);
}

/* Everything but what is written before, and the values: the inputs, and the never-written pattern wherever else the
   run may write. */
static void list_inputs(const struct layout *l, const struct trace_inputs *inputs, const struct patterns *patterns,
                        struct part parts[PARTS])
{
    static const unsigned char nobody[] = {0xFF, 0xFF, 0xFF, 0xFF};
    const struct part first[] = {
        given_part(&l->q, inputs->of[0], patterns->of[l->q.dtype]),
        given_part(&l->k, inputs->of[1], patterns->of[l->k.dtype]),
        given_part(&l->v, inputs->of[2], patterns->of[l->v.dtype]),
        given_part(&l->q_given, inputs->given[0], patterns->of[DTYPE_F16]),
        given_part(&l->k_given, inputs->given[1], patterns->of[DTYPE_F16]),
        given_part(&l->v_given, inputs->given[2], patterns->of[DTYPE_F16]),
        given_part(&l->o, NULL, patterns->of[l->o.dtype]),
        given_part(&l->lse, NULL, patterns->of[l->lse.dtype]),
        {l->states.offset, l->states.bytes, nobody, sizeof nobody},
        {l->stamps_offset, l->values_offset - l->stamps_offset, patterns->of[DTYPE_I64], PATTERN_BYTES}};
    memcpy(parts, first, sizeof first);
}

static void list_values(const struct layout *l, const struct patterns *patterns, struct part parts[PARTS])
{
    uint64_t end = l->total_bytes;
    for (int ch = ASC_ALL_CHANNELS - 1; ch >= 0; ch--) {
        const struct asc_channel_map *map = &l->channel[ch];
        if (map->dtype < 0)
            continue;
        parts[PARTS - ASC_ALL_CHANNELS + ch] =
            (struct part){map->offset, end - map->offset, patterns->of[map->dtype], PATTERN_BYTES};
        end = map->offset;
    }
}

/* mapping: the whole memory file fd, writable. inputs: NULL: the values alone. pool: whose threads do it; NULL: the
   calling one does. ERR_SYSTEM where there is no space: every page is made before it is written, so that no store
   raises SIGBUS, here or later. */
static int fill_all(int fd, unsigned char *mapping, const struct layout *l, const struct trace_inputs *inputs,
                    struct pool *pool, struct err *err)
{
    struct job job = {.fd = fd, .mapping = mapping, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
    struct patterns patterns;
    if (patterns_make(&patterns, err) != 0) {
        patterns_free(&patterns);
        return -1;
    }
    if (inputs)
        list_inputs(l, inputs, &patterns, job.parts);
    if (!inputs || !inputs->values_later)
        list_values(l, &patterns, job.parts);
    if (pool) {
        pool_start(pool, fill_chunk, &job);
        pool_wait(pool);
    } else {
        while (fill_chunk(&job, 0))
            ;
    }
    patterns_free(&patterns);
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
        .problem = problem_bare(&t->problem),
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
    enum { PARTS = 24 };
    const struct layout_part *parts[PARTS] = {
        &l->q,      &l->k,       &l->v,          &l->o,       &l->lse,     &l->sink,       &l->alibi,   &l->bias,
        &l->mask,   &l->keep,    &l->q_scale,    &l->k_scale, &l->v_scale, &l->q_given,    &l->k_given, &l->v_given,
        &l->q_lens, &l->kv_lens, &l->page_table, &l->states,  &l->slots,   &l->slot_index, &l->dropped, &l->mistyped};
    int result = write_zeros(fd, 0, l->q.offset, err);
    for (size_t i = 0; i < PARTS && result == 0; i++)
        result = write_zeros(fd, parts[i]->offset + parts[i]->bytes,
                             i + 1 < PARTS ? parts[i + 1]->offset : l->stamps_offset, err);
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

/* What else than tensors the problem may have; zeros where that comes later. */
static int write_terms(int fd, const struct layout *l, const struct asc_problem *terms, struct err *err)
{
    const struct {
        const void *from;
        const struct layout_part *to;
    } parts[] = {{terms->q_lens, &l->q_lens},   {terms->kv_lens, &l->kv_lens}, {terms->page_table, &l->page_table},
                 {terms->sink, &l->sink},       {terms->alibi, &l->alibi},     {terms->bias, &l->bias},
                 {terms->mask, &l->mask},       {terms->keep, &l->keep},       {terms->q_scale, &l->q_scale},
                 {terms->k_scale, &l->k_scale}, {terms->v_scale, &l->v_scale}};
    int failed = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !failed; i++)
        failed = parts[i].from ? write_at(fd, parts[i].from, parts[i].to->bytes, parts[i].to->offset, err)
                               : write_zeros(fd, parts[i].to->offset, parts[i].to->offset + parts[i].to->bytes, err);
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

int trace_fill_values(struct trace *t, struct err *err)
{
    const int failed = t->values_later ? fill(t, NULL, err) : 0;
    t->values_later = t->values_later && failed;
    return failed;
}

static int create(struct trace *t, const struct layout_types *types, const int32_t (*slots)[3],
                  const struct trace_inputs *inputs, const struct asc_problem *terms, struct err *err)
{
    static const uint64_t zeros[ASC_ALL_CHANNELS];
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
    t->values_later = inputs->values_later;
    t->store = trace_store_hold(store);
    t->problem = problem_bare(p);
    t->plan = *plan;
    t->conventions = *conventions;
    conventions_resolve(&t->conventions, p);
    t->plan.l_lanes = conventions->l_lanes;
    if (conventions_check(conventions, "registration", err) != 0 ||
        layout_make(&t->problem, &t->plan, types, n_slots, &t->layout, err) != 0 ||
        trace_take_sequences(t, p->q_lens, p->kv_lens, p->page_table, "problem", err) != 0 ||
        create(t, types, slots, inputs, p, err) != 0) {
        trace_free(t);
        return -1;
    }
    *out = t;
    return 0;
}
