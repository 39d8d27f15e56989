#include "engine/trace/trace_file.h"

#include "engine/base/file_map.h"
#include "engine/trace/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TENSORS_MAX = 22 + 4 * ASC_ALL_CHANNELS };
#define SLOT_TABLE "slot"

/* One tensor of a saved trace and where its values are: n_slots x n_kv pieces of piece_bytes each, at
   offset + slot * slot_stride + kv * kv_stride of the trace's bytes, or all in one piece at `from`. */
struct tensor_map {
    char name[40];
    enum dtype dtype;
    int n_dims;
    uint64_t shape[4];
    uint64_t n_slots, n_kv, piece_bytes;
    uint64_t *offset;                  /* borrowed: fields of the layout that the list was made from */
    uint64_t *slot_stride, *kv_stride; /* borrowed; NULL where there is one piece */
    const void *from;                  /* borrowed; NULL: the trace's bytes */
    bool values;                       /* of a channel */
};

/* The list under construction. */
struct list {
    struct tensor_map *maps;
    int n;
};

static struct tensor_map *add(struct list *list, const char *group, const char *name, int dtype, uint64_t *offset)
{
    struct tensor_map *map = &list->maps[list->n++];
    *map = (struct tensor_map){.dtype = (enum dtype)dtype, .n_slots = 1, .n_kv = 1, .offset = offset};
    map->piece_bytes = dtype_bytes(map->dtype);
    snprintf(map->name, sizeof map->name, "%s%s", group, name);
    return map;
}

static void add_dim(struct tensor_map *map, int64_t length)
{
    map->shape[map->n_dims++] = (uint64_t)length;
    map->piece_bytes *= (uint64_t)length;
}

/* The first dimensions of what is recorded tile by tile; they count pieces, not bytes of a piece. */
static void add_tiles(struct tensor_map *map, int n_slots, int n_kv, int per_kv)
{
    map->shape[map->n_dims++] = map->n_slots = (uint64_t)n_slots;
    if (per_kv)
        map->shape[map->n_dims++] = map->n_kv = (uint64_t)n_kv;
}

/* q, k, v, o in the problem's layout. */
static void add_matrix(struct list *list, const char *group, const char *name, const struct asc_problem *p,
                       enum problem_tensor_id id, struct layout_part *part)
{
    const struct problem_tensor t = problem_tensor(p, id);
    struct tensor_map *map = add(list, group, name, part->dtype, &part->offset);
    add_dim(map, p->batch);
    add_dim(map, p->layout == ASC_BHLD ? t.heads : t.rows);
    add_dim(map, p->layout == ASC_BHLD ? t.rows : t.heads);
    add_dim(map, t.cols);
}

static void add_channel(struct list *list, const struct asc_plan *plan, struct layout *l, enum asc_channel ch)
{
    struct asc_channel_map *channel = &l->channel[ch];
    struct asc_stamp_map *stamp = &l->stamp[ch];
    struct tensor_map *map = add(list, "channel.", plan_channel_name(plan, ch), channel->dtype, &channel->offset);
    map->values = true;
    map->slot_stride = &channel->slot_stride;
    map->kv_stride = &channel->kv_stride;
    add_tiles(map, l->n_slots, l->kv_tiles, channel_per_kv(ch));
    add_dim(map, channel->rows);
    add_dim(map, channel->cols);
    map = add(list, "stamp.", plan_channel_name(plan, ch), DTYPE_I64, &stamp->offset);
    map->slot_stride = &stamp->slot_stride;
    map->kv_stride = &stamp->kv_stride;
    add_tiles(map, l->n_slots, l->kv_tiles, channel_per_kv(ch));
    add_dim(map, l->warps);
}

/* Who recorded a channel. */
static void add_writers(struct list *list, const struct asc_plan *plan, const struct layout *l, enum asc_channel ch,
                        struct trace_writers *writers)
{
    const struct channel_writers *w = &writers->channel[ch];
    const char *name = plan_channel_name(plan, ch);
    struct tensor_map *map = add(list, "writer.", name, DTYPE_I32, &writers->nowhere);
    map->from = w->planes;
    add_dim(map, (int64_t)w->n);
    add_dim(map, l->channel[ch].rows);
    add_dim(map, l->channel[ch].cols);
    map = add(list, "writer_of.", name, DTYPE_I32, &writers->nowhere);
    map->from = w->of;
    add_dim(map, l->n_slots);
    if (channel_per_kv(ch))
        add_dim(map, l->kv_tiles);
    add_dim(map, 4);
}

/* A bias or mask. */
static void add_pairs(struct list *list, const char *name, const struct asc_problem *p, int kind,
                      struct layout_part *part)
{
    const struct asc_strides strides = asc_pair_strides(p, kind);
    struct tensor_map *map = add(list, "input.", name, (enum dtype)part->dtype, &part->offset);
    add_dim(map, strides.batch ? p->batch : 1);
    add_dim(map, strides.head ? p->heads : 1);
    add_dim(map, p->q_len);
    add_dim(map, p->kv_len);
}

static void add_terms(struct list *list, const struct asc_problem *p, struct layout *l)
{
    if (p->has_sink)
        add_dim(add(list, "input.", "sink", DTYPE_F32, &l->sink.offset), p->heads);
    if (p->has_alibi)
        add_dim(add(list, "input.", "alibi", DTYPE_F32, &l->alibi.offset), p->heads);
    if (p->bias_kind != ASC_BIAS_NONE)
        add_pairs(list, "bias", p, p->bias_kind, &l->bias);
    if (p->mask_kind != ASC_BIAS_NONE)
        add_pairs(list, "mask", p, p->mask_kind, &l->mask);
    if (p->keep_kind != ASC_BIAS_NONE)
        add_pairs(list, "keep", p, p->keep_kind, &l->keep);
}

/* Beside a tensor of codes: its scales, and what it was made from. */
static void add_codes(struct list *list, const char *name, const struct asc_problem *p, enum problem_tensor_id id,
                      struct layout_part *scale, struct layout_part *given)
{
    const struct problem_tensor t = problem_tensor(p, id);
    char full[16];
    if (!scale->bytes)
        return;
    snprintf(full, sizeof full, "%s_scale", name);
    struct tensor_map *map = add(list, "input.", full, DTYPE_F32, &scale->offset);
    add_dim(map, p->batch);
    add_dim(map, t.heads);
    add_dim(map, asc_scale_groups(p, t.rows));
    if (p->scale_dims)
        add_dim(map, asc_scale_parts(p, t.cols));
    snprintf(full, sizeof full, "%s_given", name);
    add_matrix(list, "input.", full, p, id, given);
}

/* Lists the tensors of a trace with this layout, in the order a file holds them: falling element size, so that each is
   aligned. writers: what is to be saved of them, or NULL. Returns how many. */
static int list_tensors(const struct asc_problem *p, const struct asc_plan *plan, struct layout *l,
                        struct trace_writers *writers, struct tensor_map out[TENSORS_MAX])
{
    struct tensor_map maps[TENSORS_MAX];
    struct list list = {maps, 0};
    const int counted = ASC_CHANNELS + plan_values(plan);
    add_matrix(&list, "input.", "q", p, TENSOR_Q, &l->q);
    add_matrix(&list, "input.", "k", p, TENSOR_K, &l->k);
    add_matrix(&list, "input.", "v", p, TENSOR_V, &l->v);
    add_matrix(&list, "output.", "o", p, TENSOR_O, &l->o);
    struct tensor_map *map = add(&list, "output.", "lse", DTYPE_F32, &l->lse.offset);
    add_dim(map, p->batch);
    add_dim(map, p->heads);
    add_dim(map, p->q_len);
    add_terms(&list, p, l);
    add_codes(&list, "q", p, TENSOR_Q, &l->q_scale, &l->q_given);
    add_codes(&list, "k", p, TENSOR_K, &l->k_scale, &l->k_given);
    add_codes(&list, "v", p, TENSOR_V, &l->v_scale, &l->v_given);
    if (p->has_q_lens)
        add_dim(add(&list, "input.", "q_lens", DTYPE_I32, &l->q_lens.offset), p->batch);
    if (p->has_kv_lens)
        add_dim(add(&list, "input.", "kv_lens", DTYPE_I32, &l->kv_lens.offset), p->batch);
    if (p->page_size) {
        map = add(&list, "input.", "page_table", DTYPE_I32, &l->page_table.offset);
        add_dim(map, p->batch);
        add_dim(map, asc_table_pages(p));
    }
    if (l->states.bytes) {
        map = add(&list, "", "state", DTYPE_I32, &l->states.offset);
        add_dim(map, p->batch);
        add_dim(map, p->heads);
        add_dim(map, l->q_tiles);
        add_dim(map, l->kv_tiles + 1);
    }
    map = add(&list, "", SLOT_TABLE, DTYPE_I32, &l->slots.offset);
    add_dim(map, l->n_slots);
    add_dim(map, 3);
    add_dim(add(&list, "", "dropped", DTYPE_I64, &l->dropped.offset), counted);
    add_dim(add(&list, "", "mistyped", DTYPE_I64, &l->mistyped.offset), counted);
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        if (l->channel[ch].dtype >= 0)
            add_channel(&list, plan, l, ch);
    for (int ch = 0; writers && ch < ASC_ALL_CHANNELS; ch++)
        if (writers->channel[ch].n)
            add_writers(&list, plan, l, ch, writers);

    int n = 0;
    for (size_t bytes = 8; bytes; bytes /= 2)
        for (int i = 0; i < list.n; i++)
            if (dtype_bytes(maps[i].dtype) == bytes)
                out[n++] = maps[i];
    return n;
}

int trace_index_slots(const struct trace *t, const int32_t (*slots)[3], const char *where, int32_t *index,
                      struct err *err)
{
    const struct asc_problem *p = &t->problem;
    const struct layout *l = &t->layout;
    memset(index, 0xFF, (size_t)p->batch * (size_t)p->heads * (size_t)l->q_tiles * sizeof *index);
    for (int i = 0; i < l->n_slots; i++) {
        const int32_t b = slots[i][0], h = slots[i][1], q = slots[i][2];
        if (b < 0 || b >= p->batch || h < 0 || h >= p->heads || q < 0 || q >= l->q_tiles)
            return err_set(err, ERR_INPUT, where, "slot %d: no batch %d, head %d, q tile %d in this problem", i, b, h,
                           q);
        int32_t *entry = &index[((size_t)b * (size_t)p->heads + (size_t)h) * (size_t)l->q_tiles + (size_t)q];
        if (*entry >= 0)
            return err_set(err, ERR_INPUT, where, "slots %d and %d are both batch %d, head %d, q tile %d", *entry, i, b,
                           h, q);
        *entry = i;
    }
    return 0;
}

#define WRITTEN_AT_ONCE (UINT64_C(64) << 20)
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

/* A live trace's pages are another process's: mapped before they are written they do not fault one by one, which would
   take longer than to copy them (1.2 GB into the page cache: 0.31 s in the place of 0.77). */
static int write_dense(FILE *file, const unsigned char *from, uint64_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (uint64_t at = 0; at < n;) {
        const uint64_t take = n - at < WRITTEN_AT_ONCE ? n - at : WRITTEN_AT_ONCE;
        const uintptr_t first = (uintptr_t)(from + at) / page * page, end = (uintptr_t)(from + at + take);
        (void)madvise((void *)first, end - first, MADV_POPULATE_READ); /* an older system lets them fault */
        if (fwrite(from + at, take, 1, file) != 1)
            return -1;
        at += take;
    }
    return 0;
}

/* Which slots are written: slots[n], or all. */
struct chosen {
    const int *slots; /* borrowed; NULL: all */
    int n;
};

/* The slot table. */
static int write_places(FILE *file, const struct trace *t, const struct chosen *chosen)
{
    for (int i = 0; i < chosen->n; i++)
        if (fwrite(trace_slot_place(t, chosen->slots[i]), 3 * sizeof(int32_t), 1, file) != 1)
            return -1;
    return 0;
}

static uint64_t slot_bytes(const struct tensor_map *map)
{
    return map->n_kv * map->piece_bytes;
}

static bool is_dense(const struct tensor_map *map)
{
    return !map->slot_stride ||
           (*map->slot_stride == slot_bytes(map) && (map->n_kv == 1 || *map->kv_stride == map->piece_bytes));
}

static int write_tensor(FILE *file, const struct trace *t, const struct tensor_map *map, const struct chosen *chosen)
{
    const uint64_t all = map->n_slots * slot_bytes(map);
    if (chosen->slots && strcmp(map->name, SLOT_TABLE) == 0)
        return write_places(file, t, chosen);
    if (map->from)
        return write_dense(file, map->from, all);
    if (is_dense(map) && (!map->slot_stride || !chosen->slots))
        return write_dense(file, t->bytes + *map->offset, all);
    for (uint64_t i = 0; i < map->n_slots; i++)
        for (uint64_t kv = 0; kv < map->n_kv; kv++) {
            const uint64_t slot = chosen->slots ? (uint64_t)chosen->slots[i] : i;
            const uint64_t at = *map->offset + slot * *map->slot_stride + kv * *map->kv_stride;
            if (map->piece_bytes && fwrite(t->bytes + at, map->piece_bytes, 1, file) != 1)
                return -1;
        }
    return 0;
}

static int make_header(const struct trace *t, const struct tensor_map *maps, int n_maps, unsigned char **header,
                       size_t *header_bytes, struct err *err)
{
    struct safetensors_tensor tensors[TENSORS_MAX] = {{0}};
    struct safetensors_text texts[TRACE_TEXTS_MAX];
    for (int i = 0; i < n_maps; i++) {
        tensors[i].name = maps[i].name;
        tensors[i].dtype = dtype_safetensors(maps[i].dtype);
        tensors[i].n_dims = maps[i].n_dims;
        memcpy(tensors[i].shape, maps[i].shape, sizeof maps[i].shape);
    }
    const int n_texts = trace_metadata_write(t, texts, err);
    if (n_texts < 0)
        return -1;
    const int result = safetensors_header(tensors, (size_t)n_maps, texts, (size_t)n_texts, header, header_bytes, err);
    trace_metadata_free(texts, n_texts);
    return result;
}

/* Leaves room for the values. */
static int leave_out(struct trace_saving *s, const struct trace *t, const struct tensor_map *map)
{
    const uint64_t bytes = map->n_slots * slot_bytes(map);
    const off_t at = ftello(s->file.file);
    s->piece[s->n++] = (struct values_piece){*map->offset - t->layout.values_offset, (uint64_t)at, bytes};
    return at < 0 || fseeko(s->file.file, (off_t)bytes, SEEK_CUR) != 0 ? -1 : 0;
}

/* apart: the values are left out. */
static int write_file(const struct trace *t, const char *path, const struct tensor_map *maps, int n_maps,
                      const struct chosen *chosen, bool apart, const unsigned char *header, size_t header_bytes,
                      struct trace_saving *out, struct err *err)
{
    struct replacement *r = &out->file;
    out->n = 0;
    if (replace_open(r, path, 0666, err) != 0)
        return -1;
    setvbuf(r->file, NULL, _IOFBF, 1 << 20);
    int failed = fwrite(header, header_bytes, 1, r->file) != 1;
    for (int i = 0; i < n_maps && !failed; i++)
        failed = apart && maps[i].values ? leave_out(out, t, &maps[i]) != 0
                                         : write_tensor(r->file, t, &maps[i], chosen) != 0;
    if (!failed && fflush(r->file) == 0)
        return 0;
    err_errno(err, path, "cannot be written");
    replace_drop(r);
    return -1;
}

int trace_may_replace(const char *path, struct err *err)
{
    struct stat status;
    unsigned char head[9] = {0};
    if (stat(path, &status) != 0)
        return 0;
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_INPUT, path, "is not a regular file; a trace would replace it");
    if (status.st_size == 0)
        return 0;
    FILE *file = fopen(path, "rb");
    const bool is_trace = file && fread(head, 1, sizeof head, file) == sizeof head && head[8] == '{';
    if (file)
        fclose(file);
    return is_trace ? 0 : err_set(err, ERR_INPUT, path, "exists and is not a trace; it is not replaced");
}

static int begin(const struct trace *t, const struct chosen *chosen, bool apart, const char *path,
                 struct trace_saving *out, struct err *err)
{
    if (trace_may_replace(path, err) != 0)
        return -1;
    struct layout layout = t->layout;
    layout.n_slots = chosen->slots ? chosen->n : layout.n_slots;
    struct tensor_map maps[TENSORS_MAX];
    struct trace_writers *writers = NULL;
    if (trace_writers_collect(t, chosen->slots, chosen->n, &writers, err) != 0)
        return -1;
    const int n_maps = list_tensors(&t->problem, &t->plan, &layout, writers, maps);
    unsigned char *header = NULL;
    size_t header_bytes = 0;
    const int result = make_header(t, maps, n_maps, &header, &header_bytes, err) != 0
                           ? -1
                           : write_file(t, path, maps, n_maps, chosen, apart, header, header_bytes, out, err);
    free(header);
    trace_writers_free(writers);
    return result;
}

static int save(const struct trace *t, const struct chosen *chosen, const char *path, struct err *err)
{
    struct trace_saving saving;
    return begin(t, chosen, false, path, &saving, err) != 0 ? -1 : replace_commit(&saving.file, err);
}

bool trace_saves_apart(const struct trace *t)
{
    struct layout layout = t->layout;
    struct tensor_map maps[TENSORS_MAX];
    const int n = list_tensors(&t->problem, &t->plan, &layout, NULL, maps);
    bool dense = true;
    for (int i = 0; i < n; i++)
        dense = dense && (!maps[i].values || is_dense(&maps[i]));
    return dense;
}

int trace_save_begin(const struct trace *t, const char *path, struct trace_saving *out, struct err *err)
{
    return begin(t, &(struct chosen){NULL, 0}, true, path, out, err);
}

int trace_save(const struct trace *t, const char *path, struct err *err)
{
    return save(t, &(struct chosen){NULL, 0}, path, err);
}

int trace_save_slots(const struct trace *t, const int *slots, int n, const char *path, struct err *err)
{
    return save(t, &(struct chosen){slots, n}, path, err);
}

static char *shape_text(const uint64_t *shape, int n, char out[160])
{
    size_t at = (size_t)snprintf(out, 160, "[");
    for (int i = 0; i < n && at < 160; i++)
        at += (size_t)snprintf(out + at, 160 - at, i ? ", %" PRIu64 : "%" PRIu64, shape[i]);
    if (at < 159)
        snprintf(out + at, 160 - at, "]");
    return out;
}

/* The tensor of the file that a part of the layout wants: same type, same shape, aligned. */
static int take_tensor(const struct safetensors *file, const char *path, struct tensor_map *map, struct err *err)
{
    const struct safetensors_tensor *found = safetensors_find(file, map->name);
    if (!found)
        return err_set(err, ERR_INPUT, path, "tensor '%s' is missing", map->name);
    if (strcmp(found->dtype, dtype_safetensors(map->dtype)) != 0)
        return err_set(err, ERR_INPUT, path, "tensor '%s' is of type %s; expected %s", map->name, found->dtype,
                       dtype_safetensors(map->dtype));
    if (found->n_dims != map->n_dims ||
        memcmp(found->shape, map->shape, (size_t)map->n_dims * sizeof *map->shape) != 0) {
        char has[160], wants[160];
        return err_set(err, ERR_INPUT, path, "tensor '%s' has shape %s; expected %s", map->name,
                       shape_text(found->shape, found->n_dims, has), shape_text(map->shape, map->n_dims, wants));
    }
    if (found->offset % dtype_bytes(map->dtype))
        return err_set(err, ERR_INPUT, path,
                       "tensor '%s' begins at byte %" PRIu64 ", not a multiple of its element size", map->name,
                       found->offset);
    *map->offset = found->offset;
    if (map->slot_stride) {
        *map->kv_stride = map->n_kv > 1 ? map->piece_bytes : 0;
        *map->slot_stride = map->n_kv * map->piece_bytes;
    }
    return 0;
}

/* How many slots the file holds, from the shape of its slot table; everything else must fit that. */
static int slot_count(const struct safetensors *file, const char *path, int *n, struct err *err)
{
    const struct safetensors_tensor *slots = safetensors_find(file, "slot");
    if (!slots || slots->n_dims != 2 || slots->shape[0] > INT32_MAX)
        return err_set(err, ERR_INPUT, path, "has no tensor 'slot' of shape [slots, 3]");
    if (slots->shape[0] < 1)
        return err_set(err, ERR_INPUT, path, "its tensor 'slot' is empty; expected at least one recorded q tile");
    *n = (int)slots->shape[0];
    return 0;
}

/* Turns the layout of a live trace with these numbers into that of this file. */
static int place_tensors(const struct safetensors *file, const char *path, struct trace *t, struct err *err)
{
    struct layout *l = &t->layout;
    struct tensor_map maps[TENSORS_MAX];
    const int n_maps = list_tensors(&t->problem, &t->plan, l, NULL, maps);
    for (int i = 0; i < n_maps; i++)
        if (take_tensor(file, path, &maps[i], err) != 0)
            return -1;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        l->stamp[ch].writers = 0; /* those of a file are found by name */
    l->slot_index = (struct layout_part){.dtype = DTYPE_I32};
    l->stamps_offset = l->values_offset = 0;
    l->total_bytes = t->n_bytes;
    return 0;
}

static int index_slots(const char *path, struct trace *t, struct err *err)
{
    const struct asc_problem *p = &t->problem;
    int32_t *index = malloc((size_t)p->batch * (size_t)p->heads * (size_t)t->layout.q_tiles * sizeof *index);
    if (!index)
        return err_no_memory(err, path, "its slot table");
    t->slot_index = index;
    /* A copy: places that were checked must stay what they are, whatever becomes of the file. */
    const size_t n_bytes = (size_t)t->layout.n_slots * 3 * sizeof *t->slots;
    int32_t *slots = malloc(n_bytes);
    if (!slots)
        return err_no_memory(err, path, "its slot table");
    memcpy(slots, t->bytes + t->layout.slots.offset, n_bytes);
    t->slots = slots;
    return trace_index_slots(t, (const int32_t(*)[3])(const void *)t->slots, path, index, err);
}

static int check_states(const char *path, const struct trace *t, struct err *err)
{
    const struct layout_part *part = &t->layout.states;
    const int32_t *states = (const int32_t *)(const void *)(t->bytes + part->offset);
    const size_t row = (size_t)t->layout.kv_tiles + 1;
    for (size_t i = 0; i < part->bytes / sizeof *states; i++)
        if (states[i] < -1 || states[i] >= t->plan.kv_splits + (i % row == row - 1))
            return err_set(err, ERR_INPUT, path, "tensor 'state' holds %d; expected -1 to %d, kv_splits - 1%s",
                           states[i], t->plan.kv_splits - 1,
                           i % row == row - 1 ? ", or kv_splits where it counts them" : "");
    return 0;
}

static int read_trace(const struct safetensors *file, const char *path, struct trace *t, struct err *err)
{
    struct layout_types types = {0};
    struct err inner = {0};
    int n_slots = 0;
    if (trace_metadata_read(file, path, t, &types, err) != 0 || slot_count(file, path, &n_slots, err) != 0)
        return -1;
    if (layout_make(&t->problem, &t->plan, &types, n_slots, &t->layout, &inner) != 0)
        return err_set(err, inner.code, path, "%s: %s", inner.where, inner.message);
    if (place_tensors(file, path, t, err) != 0 || check_states(path, t, err) != 0 ||
        trace_writers_read(file, path, t, err) != 0)
        return -1;
    const struct layout *l = &t->layout;
    const struct layout_part *parts[] = {&l->q_lens, &l->kv_lens, &l->page_table};
    const int32_t *from[3];
    for (int i = 0; i < 3; i++)
        from[i] = parts[i]->bytes ? (const int32_t *)(const void *)(t->bytes + parts[i]->offset) : NULL;
    return trace_take_sequences(t, from[0], from[1], from[2], path, err) != 0 ? -1 : index_slots(path, t, err);
}

int trace_is(const char *path, bool *is, struct err *err)
{
    const unsigned char *bytes;
    size_t n_bytes;
    struct safetensors *file;
    struct err ignored = {0};
    if (file_map_open(path, &bytes, &n_bytes, err) != 0)
        return -1;
    *is = false;
    if (safetensors_parse(bytes, n_bytes, path, &file, &ignored) == 0) {
        *is = safetensors_metadata(file, "attnscope.format") != NULL;
        safetensors_free(file);
    }
    file_map_close(bytes);
    return 0;
}

int trace_open(const char *path, struct trace **out, struct err *err)
{
    struct trace *t = calloc(1, sizeof *t);
    if (!t)
        return err_no_memory(err, path, "the trace");
    t->fd = -1;
    struct safetensors *file = NULL;
    int result = file_map_open(path, &t->bytes, &t->n_bytes, err);
    if (result == 0)
        result = safetensors_parse(t->bytes, t->n_bytes, path, &file, err);
    if (result == 0)
        result = read_trace(file, path, t, err);
    if (result == 0)
        result = file_map_check(t->bytes, err);
    safetensors_free(file);
    if (result != 0) {
        trace_free(t);
        return -1;
    }
    *out = t;
    return 0;
}
