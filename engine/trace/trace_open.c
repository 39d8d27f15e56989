#include "engine/base/file_map.h"
#include "engine/trace/trace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static int take_tensor(const struct safetensors *file, const char *path, struct trace_tensor_map *map, struct err *err)
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
    struct trace_tensor_map maps[TRACE_TENSORS_MAX];
    const int n_maps = trace_tensor_list(&t->problem, l, maps);
    for (int i = 0; i < n_maps; i++)
        if (take_tensor(file, path, &maps[i], err) != 0)
            return -1;
    l->slot_index = (struct layout_part){.dtype = DTYPE_I32};
    l->slots_offset = l->slot_stride = 0;
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

static int read_trace(const struct safetensors *file, const char *path, struct trace *t, struct err *err)
{
    struct layout_types types;
    struct err inner = {0};
    int n_slots = 0;
    if (trace_metadata_read(file, path, t, &types, err) != 0 || slot_count(file, path, &n_slots, err) != 0)
        return -1;
    if (layout_make(&t->problem, &t->plan, &types, n_slots, &t->layout, &inner) != 0)
        return err_set(err, inner.code, path, "%s: %s", inner.where, inner.message);
    return place_tensors(file, path, t, err) != 0 ? -1 : index_slots(path, t, err);
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
