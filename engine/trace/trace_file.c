#include "engine/trace/trace_file.h"

#include <stdio.h>
#include <string.h>

/* The list under construction. */
struct list {
    struct trace_tensor_map *maps;
    int n;
};

static struct trace_tensor_map *add(struct list *list, const char *group, const char *name, int dtype, uint64_t *offset)
{
    struct trace_tensor_map *map = &list->maps[list->n++];
    *map = (struct trace_tensor_map){.dtype = (enum dtype)dtype, .n_slots = 1, .n_kv = 1, .offset = offset};
    map->piece_bytes = dtype_bytes(map->dtype);
    snprintf(map->name, sizeof map->name, "%s%s", group, name);
    return map;
}

static void add_dim(struct trace_tensor_map *map, int64_t length)
{
    map->shape[map->n_dims++] = (uint64_t)length;
    map->piece_bytes *= (uint64_t)length;
}

/* The first dimensions of what is recorded tile by tile; they count pieces, not bytes of a piece. */
static void add_tiles(struct trace_tensor_map *map, int n_slots, int n_kv, int per_kv)
{
    map->shape[map->n_dims++] = map->n_slots = (uint64_t)n_slots;
    if (per_kv)
        map->shape[map->n_dims++] = map->n_kv = (uint64_t)n_kv;
}

/* q, k, v, o in the problem's layout. */
static void add_matrix(struct list *list, const char *group, const char *name, const struct asc_problem *p, int heads,
                       int rows, struct layout_part *part)
{
    struct trace_tensor_map *map = add(list, group, name, part->dtype, &part->offset);
    add_dim(map, p->batch);
    add_dim(map, p->layout == ASC_BHLD ? heads : rows);
    add_dim(map, p->layout == ASC_BHLD ? rows : heads);
    add_dim(map, p->head_dim);
}

static void add_channel(struct list *list, struct layout *l, enum asc_channel ch)
{
    struct asc_channel_map *channel = &l->channel[ch];
    struct asc_stamp_map *stamp = &l->stamp[ch];
    struct trace_tensor_map *map = add(list, "channel.", channel_name(ch), channel->dtype, &channel->offset);
    map->slot_stride = &channel->slot_stride;
    map->kv_stride = &channel->kv_stride;
    add_tiles(map, l->n_slots, l->kv_tiles, channel_per_kv(ch));
    add_dim(map, channel->rows);
    add_dim(map, channel->cols);
    map = add(list, "stamp.", channel_name(ch), DTYPE_I64, &stamp->offset);
    map->slot_stride = &stamp->slot_stride;
    map->kv_stride = &stamp->kv_stride;
    add_tiles(map, l->n_slots, l->kv_tiles, channel_per_kv(ch));
    add_dim(map, l->warps);
}

static void add_terms(struct list *list, const struct asc_problem *p, struct layout *l)
{
    const struct asc_strides strides = asc_bias_strides(p);
    if (p->has_sink)
        add_dim(add(list, "input.", "sink", DTYPE_F32, &l->sink.offset), p->heads);
    if (p->has_alibi)
        add_dim(add(list, "input.", "alibi", DTYPE_F32, &l->alibi.offset), p->heads);
    if (p->bias_kind == ASC_BIAS_NONE)
        return;
    struct trace_tensor_map *map = add(list, "input.", "bias", DTYPE_F32, &l->bias.offset);
    add_dim(map, strides.batch ? p->batch : 1);
    add_dim(map, strides.head ? p->heads : 1);
    add_dim(map, p->q_len);
    add_dim(map, p->kv_len);
}

/* Beside a tensor of codes: its scales, and what it was made from. */
static void add_codes(struct list *list, const char *name, const struct asc_problem *p, int heads, int rows,
                      struct layout_part *scale, struct layout_part *given)
{
    char full[16];
    if (!scale->bytes)
        return;
    snprintf(full, sizeof full, "%s_scale", name);
    struct trace_tensor_map *map = add(list, "input.", full, DTYPE_F32, &scale->offset);
    add_dim(map, p->batch);
    add_dim(map, heads);
    add_dim(map, asc_scale_groups(p, rows));
    snprintf(full, sizeof full, "%s_given", name);
    add_matrix(list, "input.", full, p, heads, rows, given);
}

int trace_tensor_list(const struct asc_problem *p, struct layout *l, struct trace_tensor_map out[TRACE_TENSORS_MAX])
{
    struct trace_tensor_map maps[TRACE_TENSORS_MAX];
    struct list list = {maps, 0};
    add_matrix(&list, "input.", "q", p, p->heads, p->q_len, &l->q);
    add_matrix(&list, "input.", "k", p, p->kv_heads, p->kv_len, &l->k);
    add_matrix(&list, "input.", "v", p, p->kv_heads, p->kv_len, &l->v);
    add_matrix(&list, "output.", "o", p, p->heads, p->q_len, &l->o);
    struct trace_tensor_map *map = add(&list, "output.", "lse", DTYPE_F32, &l->lse.offset);
    add_dim(map, p->batch);
    add_dim(map, p->heads);
    add_dim(map, p->q_len);
    add_terms(&list, p, l);
    add_codes(&list, "q", p, p->heads, p->q_len, &l->q_scale, &l->q_given);
    add_codes(&list, "k", p, p->kv_heads, p->kv_len, &l->k_scale, &l->k_given);
    add_codes(&list, "v", p, p->kv_heads, p->kv_len, &l->v_scale, &l->v_given);
    map = add(&list, "", "slot", DTYPE_I32, &l->slots.offset);
    add_dim(map, l->n_slots);
    add_dim(map, 3);
    add_dim(add(&list, "", "dropped", DTYPE_I64, &l->dropped.offset), ASC_CHANNELS);
    add_dim(add(&list, "", "mistyped", DTYPE_I64, &l->mistyped.offset), ASC_CHANNELS);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (l->channel[ch].dtype >= 0)
            add_channel(&list, l, ch);

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
