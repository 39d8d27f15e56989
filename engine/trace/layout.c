#include "engine/trace/layout.h"
#include "engine/trace/sizes.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum rows { ROWS_Q, ROWS_KV };
enum cols { COLS_D, COLS_V, COLS_KV, COLS_ONE };
enum extent { PER_SLOT, PER_KV };

_Static_assert((int)ASC_DTYPES == DTYPE_COUNT && ASC_UNWRITTEN_16 == UNWRITTEN_16 && ASC_UNWRITTEN_32 == UNWRITTEN_32 &&
                   ASC_UNWRITTEN_64 == UNWRITTEN_64,
               "what probes write is what attnscope reads");

static const struct {
    const char *name, *label, *meaning, *formula;
    enum rows rows;
    enum cols cols;
    enum extent extent;
} channels[ASC_CHANNELS] = {
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula)                                                 \
    [asc_##id] = {#id, label, meaning, formula, rows, cols, extent},
#include "probes/channels.def"
#undef CHANNEL
};

const char *const memory_names[] = {"auto", "pinned", "device", "guard", NULL};
const char *const memory_meanings[] = {"", "pinned memory", "device memory", "device memory that a guardian keeps",
                                       NULL};

const char *channel_name(enum asc_channel ch)
{
    return channel_is_own(ch) ? "a value of the kernel's own" : channels[ch].name;
}

const char *channel_label(enum asc_channel ch)
{
    return channel_is_own(ch) ? channel_name(ch) : channels[ch].label;
}

const char *channel_meaning(enum asc_channel ch)
{
    return channel_is_own(ch) ? channel_name(ch) : channels[ch].meaning;
}

const char *channel_formula(enum asc_channel ch)
{
    return channel_is_own(ch) ? "" : channels[ch].formula;
}

const char *plan_channel_name(const struct asc_plan *plan, enum asc_channel ch)
{
    return channel_is_own(ch) ? plan->value[ch - ASC_CHANNELS].name : channels[ch].name;
}

const char *plan_channel_label(const struct asc_plan *plan, enum asc_channel ch)
{
    return channel_is_own(ch) ? plan->value[ch - ASC_CHANNELS].name : channels[ch].label;
}

int plan_values(const struct asc_plan *plan)
{
    int n = 0;
    while (n < ASC_OWN_CHANNELS && plan->value[n].name[0])
        n++;
    return n;
}

int plan_channel_from_name(const struct asc_plan *plan, const char *name)
{
    for (int i = 0; i < ASC_OWN_CHANNELS && *name; i++)
        if (strcmp(plan->value[i].name, name) == 0)
            return ASC_CHANNELS + i;
    return channel_from_name(name);
}

int channel_from_name(const char *name)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (strcmp(channels[ch].name, name) == 0)
            return ch;
    return -1;
}

bool channel_per_kv(enum asc_channel ch)
{
    return channel_is_own(ch) || channels[ch].extent == PER_KV;
}

int channel_rows(enum asc_channel ch, const struct asc_plan *plan)
{
    return channel_is_own(ch) || channels[ch].rows == ROWS_Q ? plan->br : plan->bc;
}

static enum cols cols_of(enum asc_channel ch, const struct asc_plan *plan)
{
    static const enum cols own[] = {[ASC_COLS_ONE] = COLS_ONE,
                                    [ASC_COLS_BC] = COLS_KV,
                                    [ASC_COLS_HEAD_DIM] = COLS_D,
                                    [ASC_COLS_HEAD_DIM_V] = COLS_V};
    return channel_is_own(ch) ? own[plan->value[ch - ASC_CHANNELS].cols] : channels[ch].cols;
}

int channel_cols(enum asc_channel ch, const struct asc_plan *plan, const struct asc_problem *problem)
{
    switch (cols_of(ch, plan)) {
    case COLS_D:
        return problem->head_dim;
    case COLS_V:
        return problem->head_dim_v;
    case COLS_KV:
        return plan->bc;
    case COLS_ONE:
        break;
    }
    return ch == asc_l && plan->l_lanes > 1 ? plan->l_lanes : 1;
}

size_t channel_largest_tile(const struct asc_plan *plan, const struct asc_problem *problem)
{
    size_t most = 0;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const size_t n = (size_t)channel_rows(ch, plan) * (size_t)channel_cols(ch, plan, problem);
        most = n > most ? n : most;
    }
    return most;
}

/* How many of the `tile` positions of tile number `index` lie below `length`. */
static int within(int length, int tile, int index)
{
    const int64_t left = length - (int64_t)tile * index;
    return left <= 0 || index < 0 ? 0 : left < tile ? (int)left : tile;
}

int channel_valid_rows(enum asc_channel ch, const struct asc_problem *p, const struct asc_plan *plan, int batch,
                       int q_tile, int kv)
{
    return channel_is_own(ch) || channels[ch].rows == ROWS_Q ? within(asc_q_len(p, batch), plan->br, q_tile)
                                                             : within(asc_kv_len(p, batch), plan->bc, kv);
}

int channel_valid_cols(enum asc_channel ch, const struct asc_problem *p, const struct asc_plan *plan, int batch, int kv)
{
    return cols_of(ch, plan) == COLS_KV ? within(asc_kv_len(p, batch), plan->bc, kv) : channel_cols(ch, plan, p);
}

/* Adds a * b and returns where it began. */
static uint64_t size_part(struct size *size, uint64_t a, uint64_t b)
{
    const uint64_t at = size->bytes;
    uint64_t bytes;
    if (__builtin_mul_overflow(a, b, &bytes))
        size->overflow = 1;
    else
        size_add(size, bytes);
    return at;
}

static void size_align(struct size *size, uint64_t to)
{
    size_add(size, (to - size->bytes % to) % to);
}

static int plan_check(const struct asc_plan *plan, const struct layout_types *types, struct err *err)
{
    if (plan->br < 1 || plan->bc < 1 || plan->br > ASC_TILE_MAX || plan->bc > ASC_TILE_MAX)
        return err_set(err, ERR_INPUT, "plan", "tiles of %d x %d; br and bc are 1 to %d", plan->br, plan->bc,
                       ASC_TILE_MAX);
    if (plan->threads <= 0 || plan->threads > 1024)
        return err_set(err, ERR_INPUT, "plan", "%d threads; a block has 1 to 1024", plan->threads);
    if (plan->kv_splits < 0 || plan->kv_splits > ASC_SPLITS_MAX)
        return err_set(err, ERR_INPUT, "plan", "%d kv splits; allowed are 0 to %d", plan->kv_splits, ASC_SPLITS_MAX);
    if (plan->kv_deal < ASC_DEAL_RANGES || plan->kv_deal > ASC_DEAL_MAP)
        return err_set(err, ERR_INPUT, "plan", "kv_deal is %d; it is %d to %d", plan->kv_deal, ASC_DEAL_RANGES,
                       ASC_DEAL_MAP);
    if (plan->l_lanes < 0 || plan->l_lanes > 1024)
        return err_set(err, ERR_INPUT, "plan", "%d partial sums in a row of l; there are 0 to 1024", plan->l_lanes);
    if (plan->workspace_bytes > ASC_WORKSPACE_MAX)
        return err_set(err, ERR_INPUT, "plan", "a workspace of %llu bytes; there are at most %llu",
                       (unsigned long long)plan->workspace_bytes, (unsigned long long)ASC_WORKSPACE_MAX);
    if (!dtype_is_float(types->o))
        return err_set(err, ERR_INPUT, "plan", "type %d of o; it must be a floating-point type", types->o);
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        if (types->channel[ch] < -1 || types->channel[ch] >= DTYPE_COUNT)
            return err_set(err, ERR_INPUT, "plan", "type %d of channel %s is not known", types->channel[ch],
                           channel_name((enum asc_channel)ch));
    for (int i = 0; i < ASC_OWN_CHANNELS; i++)
        if (plan->value[i].cols < ASC_COLS_ONE || plan->value[i].cols > ASC_COLS_HEAD_DIM_V ||
            !memchr(plan->value[i].name, 0, sizeof plan->value[i].name))
            return err_set(err, ERR_INPUT, "plan", "value %d of the kernel's own is none that ASC_VALUES declares", i);
    return 0;
}

static int tiles(int length, int tile)
{
    return (int)(((int64_t)length + tile - 1) / tile);
}

static int warps(const struct asc_plan *plan)
{
    return (plan->threads + 31) / 32;
}

/* Fills in tiles and the strides of channels, stamps and writers; *bytes is what they take for each slot. */
static int place_slot(const struct asc_problem *p, const struct asc_plan *plan, const struct layout_types *types,
                      struct layout *out, uint64_t *bytes, struct err *err)
{
    if (problem_check(p, "problem", err) != 0 || plan_check(plan, types, err) != 0)
        return -1;
    memset(out, 0, sizeof *out);
    out->q_tiles = tiles(p->q_len, plan->br);
    out->kv_tiles = tiles(p->kv_len, plan->bc);
    out->warps = warps(plan);
    struct size all = {0, 0};
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        struct asc_channel_map *map = &out->channel[ch];
        struct asc_stamp_map *stamp = &out->stamp[ch];
        map->dtype = -1;
        if (types->channel[ch] < 0 || !plan_channel_name(plan, (enum asc_channel)ch)[0])
            continue;
        map->dtype = types->channel[ch];
        map->rows = channel_rows(ch, plan);
        map->cols = channel_cols(ch, plan, p);
        const bool per_kv = channel_per_kv((enum asc_channel)ch);
        map->n_kv = per_kv ? out->kv_tiles : 1;
        struct size tile = {tensor_bytes(&all, 1, 1, map->rows, map->cols, map->dtype), 0};
        size_align(&tile, ASC_TILE_ALIGN);
        const uint64_t values = all.bytes;
        size_part(&all, tile.bytes, (uint64_t)map->n_kv);
        map->slot_stride = all.bytes - values;
        size_part(&all, sizeof(uint64_t) * (uint64_t)out->warps, (uint64_t)map->n_kv);
        stamp->slot_stride = all.bytes - values - map->slot_stride;
        map->kv_stride = per_kv ? tile.bytes : 0;
        stamp->kv_stride = per_kv ? sizeof(uint64_t) * (uint64_t)out->warps : 0;
        if (!types->writers)
            continue;
        struct size writers = {tensor_bytes(&all, 1, 1, map->rows, map->cols, DTYPE_I32), 0};
        size_add(&writers, ASC_WRITER_HEAD * sizeof(uint32_t));
        size_align(&writers, sizeof(uint64_t));
        const uint64_t before = all.bytes;
        size_part(&all, writers.bytes, (uint64_t)map->n_kv);
        stamp->writers_slot_stride = all.bytes - before;
        stamp->writers_kv_stride = per_kv ? writers.bytes : 0;
    }
    if (all.overflow)
        return err_set(err, ERR_INPUT, "plan", "one slot of %d kv tiles of %d x %d exceeds 2^63 bytes", out->kv_tiles,
                       plan->br, plan->bc);
    *bytes = all.bytes ? all.bytes : 1;
    return 0;
}

int layout_slot_bytes(const struct asc_problem *p, const struct asc_plan *plan, const struct layout_types *types,
                      uint64_t *bytes, struct err *err)
{
    struct layout layout;
    return place_slot(p, plan, types, &layout, bytes, err);
}

static struct layout_part part(struct size *size, uint64_t bytes, int dtype)
{
    size_align(size, ASC_ALIGN);
    return (struct layout_part){.offset = size_part(size, bytes, 1), .bytes = bytes, .dtype = dtype};
}

/* What comes with the codes of q, k and v. */
static void place_codes(const struct asc_problem *p, struct layout *l, struct size *size)
{
    struct layout_part *const scale[] = {&l->q_scale, &l->k_scale, &l->v_scale};
    struct layout_part *const given[] = {&l->q_given, &l->k_given, &l->v_given};
    uint64_t bytes[3][2] = {{0}};
    for (int i = 0; i < 3; i++) {
        const struct problem_tensor t = problem_tensor(p, (enum problem_tensor_id)i);
        if (!dtype_is_code(t.dtype))
            continue;
        bytes[i][0] =
            tensor_bytes(size, p->batch, t.heads, asc_scale_groups(p, t.rows), asc_scale_parts(p, t.cols), DTYPE_F32);
        bytes[i][1] = tensor_bytes(size, p->batch, t.heads, t.rows, t.cols, DTYPE_F16);
    }
    for (int i = 0; i < 3; i++)
        *scale[i] = part(size, bytes[i][0], DTYPE_F32);
    for (int i = 0; i < 3; i++)
        *given[i] = part(size, bytes[i][1], DTYPE_F16);
}

int layout_make(const struct asc_problem *p, const struct asc_plan *plan, const struct layout_types *types, int n_slots,
                struct layout *out, struct err *err)
{
    struct layout l;
    uint64_t slot_bytes;
    if (place_slot(p, plan, types, &l, &slot_bytes, err) != 0)
        return -1;
    struct size size = {ASC_HEADER_BYTES, 0};
    const uint64_t q_bytes = tensor_bytes(&size, p->batch, p->heads, p->q_len, p->head_dim, p->dtype);
    const uint64_t k_bytes = tensor_bytes(&size, p->batch, p->kv_heads, p->kv_len, p->head_dim, p->k_dtype);
    const uint64_t v_bytes = tensor_bytes(&size, p->batch, p->kv_heads, p->kv_len, p->head_dim_v, p->v_dtype);
    const uint64_t o_bytes = tensor_bytes(&size, p->batch, p->heads, p->q_len, p->head_dim_v, types->o);
    const uint64_t lse_bytes = tensor_bytes(&size, p->batch, p->heads, p->q_len, 1, DTYPE_F32);
    const uint64_t head_bytes = tensor_bytes(&size, 1, p->heads, 1, 1, DTYPE_F32);
    const uint64_t index_bytes = tensor_bytes(&size, p->batch, p->heads, l.q_tiles, 1, DTYPE_I32);
    if (n_slots < 0 || (uint64_t)n_slots > index_bytes / sizeof(int32_t))
        return err_set(err, ERR_INPUT, "plan", "%d slots for %d x %d heads of %d q tiles", n_slots, p->batch, p->heads,
                       l.q_tiles);
    l.n_slots = n_slots;
    l.q = part(&size, q_bytes, p->dtype);
    l.k = part(&size, k_bytes, p->k_dtype);
    l.v = part(&size, v_bytes, p->v_dtype);
    l.o = part(&size, o_bytes, types->o);
    l.lse = part(&size, lse_bytes, DTYPE_F32);
    l.sink = part(&size, p->has_sink ? head_bytes : 0, DTYPE_F32);
    l.alibi = part(&size, p->has_alibi ? head_bytes : 0, DTYPE_F32);
    l.bias = part(&size, pair_bytes(&size, p, p->bias_kind, DTYPE_F32), DTYPE_F32);
    l.mask = part(&size, pair_bytes(&size, p, p->mask_kind, DTYPE_U8), DTYPE_U8);
    l.keep = part(&size, pair_bytes(&size, p, p->keep_kind, DTYPE_U8), DTYPE_U8);
    place_codes(p, &l, &size);
    const uint64_t length_bytes = tensor_bytes(&size, p->batch, 1, 1, 1, DTYPE_I32);
    l.q_lens = part(&size, p->has_q_lens ? length_bytes : 0, DTYPE_I32);
    l.kv_lens = part(&size, p->has_kv_lens ? length_bytes : 0, DTYPE_I32);
    l.page_table = part(&size, tensor_bytes(&size, p->batch, asc_table_pages(p), 1, 1, DTYPE_I32), DTYPE_I32);
    const int deals = plan->kv_splits > 1 && plan->kv_deal == ASC_DEAL_MAP ? l.kv_tiles + 1 : 0;
    l.states = part(&size, tensor_bytes(&size, p->batch, p->heads, l.q_tiles, deals, DTYPE_I32), DTYPE_I32);
    l.slots = part(&size, (uint64_t)n_slots * 3 * sizeof(int32_t), DTYPE_I32);
    l.slot_index = part(&size, index_bytes, DTYPE_I32);
    l.dropped = part(&size, ASC_ALL_CHANNELS * sizeof(uint64_t), DTYPE_I64);
    l.mistyped = part(&size, ASC_ALL_CHANNELS * sizeof(uint64_t), DTYPE_I64);
    size_align(&size, ASC_ALIGN);
    l.stamps_offset = size.bytes;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        if (l.channel[ch].dtype >= 0)
            l.stamp[ch].offset = size_part(&size, l.stamp[ch].slot_stride, (uint64_t)n_slots);
    }
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        if (l.channel[ch].dtype >= 0 && types->writers)
            l.stamp[ch].writers = size_part(&size, l.stamp[ch].writers_slot_stride, (uint64_t)n_slots);
    }
    size_align(&size, ASC_ALIGN);
    l.values_offset = size.bytes;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        if (l.channel[ch].dtype < 0)
            continue;
        l.channel[ch].offset = size_part(&size, l.channel[ch].slot_stride, (uint64_t)n_slots);
        size_align(&size, ASC_ALIGN);
    }
    l.total_bytes = size.bytes;
    if (size.overflow)
        return err_set(err, ERR_INPUT, "plan", "a trace of %d slots of %llu bytes exceeds 2^63 bytes", n_slots,
                       (unsigned long long)slot_bytes);
    *out = l;
    return 0;
}

bool layout_keeps_writers(const struct layout *l)
{
    bool any = false;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        any = any || l->stamp[ch].writers;
    return any;
}

struct layout_types layout_types_of(const struct layout *l)
{
    struct layout_types types = {.o = l->o.dtype, .writers = layout_keeps_writers(l)};
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        types.channel[ch] = l->channel[ch].dtype;
    return types;
}

int layout_unwritten(const struct layout *l, struct unwritten_part out[ASC_ALL_CHANNELS])
{
    int n = 0;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        if (l->channel[ch].dtype < 0)
            continue;
        if (n)
            out[n - 1].end = l->channel[ch].offset;
        out[n++] = (struct unwritten_part){.begin = l->channel[ch].offset,
                                           .end = l->total_bytes,
                                           .pattern = dtype_unwritten_pattern((enum dtype)l->channel[ch].dtype)};
    }
    return n;
}
