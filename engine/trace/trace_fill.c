#include "engine/trace/trace_fill.h"

#include <errno.h>
#include <stdatomic.h>
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

int trace_fill(int fd, unsigned char *mapping, const struct layout *l, const struct trace_inputs *inputs,
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
