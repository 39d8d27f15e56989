#include "engine/trace/live.h"

#include "engine/trace/trace.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

_Static_assert(sizeof(struct live_header) <= ASC_HEADER_BYTES, "the header has outgrown its place in the layout");
_Static_assert(sizeof LIVE_MAGIC == sizeof((struct live_header *)NULL)->magic, "the magic fills its field");

void asc_kernel_defaults(struct asc_kernel *kernel)
{
    memset(kernel, 0, sizeof *kernel);
    kernel->layouts = ASC_SUPPORTS(BHLD);
    kernel->o_dtype = -1;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        kernel->channel_dtype[ch] = -1;
}

void live_device(const struct layout *layout, const struct asc_problem *problem, const struct asc_plan *plan,
                 unsigned char *trace, struct asc_device *device)
{
    memset(device, 0, sizeof *device);
    device->trace = device->stamps = trace;
    device->slot = (const int32_t *)(void *)(trace + layout->slot_index.offset);
    device->dropped = (uint64_t *)(void *)(trace + layout->dropped.offset);
    device->mistyped = (uint64_t *)(void *)(trace + layout->mistyped.offset);
    device->batch = problem->batch;
    device->heads = problem->heads;
    device->q_tiles = layout->q_tiles;
    device->br = plan->br;
    device->warps = layout->warps;
    memcpy(device->channel, layout->channel, sizeof device->channel);
    memcpy(device->stamp, layout->stamp, sizeof device->stamp);
}

static bool same_part(const struct layout_part *a, const struct layout_part *b)
{
    return a->offset == b->offset && a->bytes == b->bytes && a->dtype == b->dtype;
}

/* Field by field, since padding bytes say nothing. */
static int same_layout(const struct layout *a, const struct layout *b)
{
    int same = same_part(&a->q, &b->q) && same_part(&a->k, &b->k) && same_part(&a->v, &b->v) &&
               same_part(&a->o, &b->o) && same_part(&a->lse, &b->lse) && same_part(&a->sink, &b->sink) &&
               same_part(&a->alibi, &b->alibi) && same_part(&a->bias, &b->bias) && same_part(&a->mask, &b->mask) &&
               same_part(&a->keep, &b->keep) && same_part(&a->q_scale, &b->q_scale) &&
               same_part(&a->k_scale, &b->k_scale) && same_part(&a->v_scale, &b->v_scale) &&
               same_part(&a->q_given, &b->q_given) && same_part(&a->k_given, &b->k_given) &&
               same_part(&a->v_given, &b->v_given) && same_part(&a->q_lens, &b->q_lens) &&
               same_part(&a->kv_lens, &b->kv_lens) && same_part(&a->page_table, &b->page_table) &&
               same_part(&a->states, &b->states) && same_part(&a->slots, &b->slots) &&
               same_part(&a->slot_index, &b->slot_index) && same_part(&a->dropped, &b->dropped) &&
               same_part(&a->mistyped, &b->mistyped) && a->stamps_offset == b->stamps_offset &&
               a->values_offset == b->values_offset && a->total_bytes == b->total_bytes && a->n_slots == b->n_slots &&
               a->q_tiles == b->q_tiles && a->kv_tiles == b->kv_tiles && a->warps == b->warps;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        const struct asc_channel_map *x = &a->channel[ch], *y = &b->channel[ch];
        const struct asc_stamp_map *s = &a->stamp[ch], *t = &b->stamp[ch];
        same = same && x->offset == y->offset && x->slot_stride == y->slot_stride && x->kv_stride == y->kv_stride &&
               x->rows == y->rows && x->cols == y->cols && x->n_kv == y->n_kv && x->dtype == y->dtype &&
               s->offset == t->offset && s->slot_stride == t->slot_stride && s->kv_stride == t->kv_stride &&
               s->writers == t->writers && s->writers_slot_stride == t->writers_slot_stride &&
               s->writers_kv_stride == t->writers_kv_stride;
    }
    return same;
}

/* The layout is recomputed from problem, plan and types: what the header says must be that and nothing else. */
static int header_check(const struct live_header *header, uint64_t n_bytes, struct err *err)
{
    struct layout layout;
    if (memcmp(header->magic, LIVE_MAGIC, sizeof header->magic) != 0)
        return err_set(err, ERR_INPUT, "live trace", "does not begin with attnscope's magic");
    if (header->abi != ASC_ABI_VERSION || header->header_bytes != sizeof *header)
        return err_set(err, ERR_ABI, "live trace",
                       "is of ABI version %u (header of %u bytes), this program's is %u (%zu)", header->abi,
                       header->header_bytes, ASC_ABI_VERSION, sizeof *header);
    const struct asc_problem problem = problem_bare(&header->problem);
    if (layout_make(&problem, &header->plan, &header->types, header->layout.n_slots, &layout, err) != 0)
        return -1;
    if (!same_layout(&layout, &header->layout))
        return err_set(err, ERR_INPUT, "live trace", "the header's offsets are not those of its problem and plan");
    if (header->total_bytes != layout.total_bytes || n_bytes != layout.total_bytes)
        return err_set(err, ERR_INPUT, "live trace", "holds %llu bytes, its header says %llu, its layout %llu",
                       (unsigned long long)n_bytes, (unsigned long long)header->total_bytes,
                       (unsigned long long)layout.total_bytes);
    return 0;
}

/* Every slot number that a probe may look up is one that exists. */
static int slots_check(const struct live_header *header, const unsigned char *trace, struct err *err)
{
    const struct layout *l = &header->layout;
    const int32_t *index = (const int32_t *)(const void *)(trace + l->slot_index.offset);
    for (size_t i = 0; i < l->slot_index.bytes / sizeof *index; i++)
        if (index[i] < -1 || index[i] >= l->n_slots)
            return err_set(err, ERR_INPUT, "live trace", "q tile %zu points at slot %d of %d", i, index[i], l->n_slots);
    return 0;
}

/* Maps all of a live trace and checks its header. */
static unsigned char *map_checked(int fd, int protection, size_t *n_bytes, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        err_errno(err, "live trace", "file descriptor %d", fd);
        return NULL;
    }
    if (status.st_size < (off_t)ASC_HEADER_BYTES) {
        err_set(err, ERR_INPUT, "live trace", "holds %lld bytes, less than a header of %u", (long long)status.st_size,
                ASC_HEADER_BYTES);
        return NULL;
    }
    const size_t size = (size_t)status.st_size;
    unsigned char *trace = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    if (trace == MAP_FAILED) {
        err_errno(err, "live trace", "mapping %zu bytes", size);
        return NULL;
    }
    const struct live_header *header = (const struct live_header *)(void *)trace;
    if (header_check(header, size, err) != 0 || slots_check(header, trace, err) != 0) {
        munmap(trace, size);
        return NULL;
    }
    *n_bytes = size;
    return trace;
}

int32_t *live_states(void *live)
{
    const struct layout_part *part = &((const struct live_header *)live)->layout.states;
    return part->bytes ? (int32_t *)(void *)((unsigned char *)live + part->offset) : NULL;
}

static const void *live_part(const unsigned char *trace, const struct layout_part *part)
{
    return part->bytes ? trace + part->offset : NULL;
}

int trace_attach(int fd, struct asc_problem *problem, struct asc_plan *plan, struct asc_device *device, void **mapping,
                 size_t *n_bytes, struct err *err)
{
    unsigned char *trace = map_checked(fd, PROT_READ | PROT_WRITE, n_bytes, err);
    if (!trace)
        return -1;
    struct live_header *header = (struct live_header *)(void *)trace;
    const struct layout *l = &header->layout;
    *problem = problem_bare(&header->problem);
    problem->q = trace + l->q.offset;
    problem->k = trace + l->k.offset;
    problem->v = trace + l->v.offset;
    problem->o = trace + l->o.offset;
    problem->lse = (float *)(void *)(trace + l->lse.offset);
    problem->sink = live_part(trace, &l->sink);
    problem->alibi = live_part(trace, &l->alibi);
    problem->bias = live_part(trace, &l->bias);
    problem->mask = live_part(trace, &l->mask);
    problem->keep = live_part(trace, &l->keep);
    problem->q_scale = live_part(trace, &l->q_scale);
    problem->k_scale = live_part(trace, &l->k_scale);
    problem->v_scale = live_part(trace, &l->v_scale);
    problem->q_lens = live_part(trace, &l->q_lens);
    problem->kv_lens = live_part(trace, &l->kv_lens);
    problem->page_table = live_part(trace, &l->page_table);
    *plan = header->plan;
    live_device(l, problem, plan, trace, device);
    device->unfed = header->unfed;
    *mapping = trace;
    return 0;
}

int live_feed(int fd, void *live, uint32_t channels, struct asc_device *device, void **mapping, size_t *n_bytes,
              struct err *err)
{
    const struct live_header *own = live;
    unsigned char *fed = map_checked(fd, PROT_READ, n_bytes, err);
    if (!fed)
        return -1;
    const struct live_header *header = (const struct live_header *)(void *)fed;
    const struct layout_part *slots = &own->layout.slots;
    if (!same_layout(&own->layout, &header->layout) ||
        memcmp((const unsigned char *)live + slots->offset, fed + slots->offset, slots->bytes) != 0) {
        munmap(fed, *n_bytes);
        return err_set(err, ERR_INPUT, "fed trace", "does not have the layout of this run's trace");
    }
    device->fed = fed;
    device->feed = channels;
    *mapping = fed;
    return 0;
}
