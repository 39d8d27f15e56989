#include "engine/trace/layout.h"

#include <math.h>
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

const char *const problem_causal_names[] = {
    [ASC_CAUSAL_NONE] = "none", [ASC_CAUSAL_TOP_LEFT] = "top-left", [ASC_CAUSAL_BOTTOM_RIGHT] = "bottom-right", NULL};
const char *const problem_layout_names[] = {[ASC_BHLD] = "BHLD", [ASC_BLHD] = "BLHD", [ASC_THD] = "THD", NULL};
const char *const problem_lie_names[] = {[ASC_CONTIGUOUS] = "contiguous",
                                         [ASC_STRIDED] = "padded",
                                         [ASC_PACKED_QKV] = "packed-qkv",
                                         [ASC_V_TRANSPOSED] = "v-transposed",
                                         NULL};
const char *const problem_bias_names[] = {
    [ASC_BIAS_NONE] = "none",           [ASC_BIAS_SHARED] = "shared", [ASC_BIAS_PER_HEAD] = "per-head",
    [ASC_BIAS_PER_BATCH] = "per-batch", [ASC_BIAS_FULL] = "full",     NULL};

const char *const problem_rope_names[] = {
    [ASC_ROPE_NONE] = "none", [ASC_ROPE_INTERLEAVED] = "interleaved", [ASC_ROPE_HALF] = "half", NULL};

const char *const problem_scale_type_names[] = {
    [ASC_SCALE_F32] = "f32", [ASC_SCALE_E4M3] = "e4m3", [ASC_SCALE_E8M0] = "e8m0", NULL};

const char *const plan_deal_names[] = {
    [ASC_DEAL_RANGES] = "ranges", [ASC_DEAL_ROUND_ROBIN] = "round-robin", [ASC_DEAL_MAP] = "map", NULL};

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

/* Sizes are built up from products and sums; one of them passing 2^63 - 1 makes the whole sum invalid. */
struct size {
    uint64_t bytes;
    int overflow;
};

static void size_add(struct size *size, uint64_t bytes)
{
    if (__builtin_add_overflow(size->bytes, bytes, &size->bytes) || size->bytes > INT64_MAX)
        size->overflow = 1;
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

/* Bytes of [batch][heads][rows][cols] elements. */
static uint64_t tensor_bytes(struct size *check, int batch, int heads, int rows, int cols, int dtype)
{
    struct size size = {dtype_bytes((enum dtype)dtype), 0};
    const int lengths[4] = {batch, heads, rows, cols};
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(size.bytes, (uint64_t)lengths[i], &size.bytes) || size.bytes > INT64_MAX)
            check->overflow = 1;
    return size.bytes;
}

/* Of a bias or mask; what is missing of [batch][heads] is 1. */
static uint64_t pair_bytes(struct size *check, const struct asc_problem *p, int kind, enum dtype dtype)
{
    const int batch = kind == ASC_BIAS_PER_BATCH || kind == ASC_BIAS_FULL ? p->batch : 1;
    const int heads = kind == ASC_BIAS_PER_HEAD || kind == ASC_BIAS_FULL ? p->heads : 1;
    return kind == ASC_BIAS_NONE ? 0 : tensor_bytes(check, batch, heads, p->q_len, p->kv_len, (int)dtype);
}

static bool is_float(int dtype)
{
    return dtype >= 0 && dtype < DTYPE_COUNT && !dtype_is_step_code(dtype) && dtype != DTYPE_I32 &&
           dtype != DTYPE_I64 && dtype != DTYPE_E8M0;
}

int problem_check_lie(const struct asc_problem *p, const char *where, struct err *err)
{
    const char *name = p->lie >= ASC_CONTIGUOUS && p->lie <= ASC_V_TRANSPOSED ? problem_lie_names[p->lie] : NULL;
    bool same = p->q_len == p->kv_len && p->has_q_lens == p->has_kv_lens;
    for (int b = 0; b < p->batch && same && p->q_lens && p->kv_lens; b++)
        same = p->q_lens[b] == p->kv_lens[b];
    if (!name)
        return err_set(err, ERR_INPUT, where, "lie is %d; it must be 0 to %d", p->lie, ASC_V_TRANSPOSED);
    if (p->lie != ASC_CONTIGUOUS && p->v_in_k)
        return err_set(err, ERR_INPUT, where, "V is a part of K: expected contiguous strides, found %s", name);
    if (p->lie == ASC_PACKED_QKV && (p->layout == ASC_BHLD || p->page_size || !same || p->left_pad ||
                                     p->head_dim_v != p->head_dim || p->k_dtype != p->dtype || p->v_dtype != p->dtype))
        return err_set(
            err, ERR_INPUT, where,
            "packed-qkv: expected as many keys as queries of each sequence, one head_dim and one type, in the "
            "layout BLHD or THD, without pages and left padding");
    if (p->lie == ASC_V_TRANSPOSED && (p->layout == ASC_THD || p->page_size))
        return err_set(err, ERR_INPUT, where, "v-transposed: expected the layout BHLD or BLHD, without pages");
    if (p->left_pad & ~1 || (p->left_pad && (!p->has_kv_lens || p->layout == ASC_THD || p->page_size)))
        return err_set(err, ERR_INPUT, where,
                       "left_pad: expected kv_lens beside it, in the layout BHLD or BLHD, without pages");
    return 0;
}

/* The lengths of sequences may come later. */
static int check_positions(const struct asc_problem *p, const char *where, struct err *err)
{
    const bool known = (!p->has_q_lens || p->q_lens) && (!p->has_kv_lens || p->kv_lens);
    for (int b = 0; b < p->batch && known; b++)
        if (asc_q_len(p, b) > 0 && asc_query_position(p, b, 0) < 0)
            return err_set(
                err, ERR_INPUT, where,
                "the first query of sequence %d has the position %d (rope_offset %d + %d keys - %d queries); "
                "expected 0 or more",
                b, asc_query_position(p, b, 0), p->rope_offset, asc_kv_len(p, b), asc_q_len(p, b));
    return 0;
}

int problem_check_rope(const struct asc_problem *p, const char *where, struct err *err)
{
    if (p->rope == ASC_ROPE_NONE)
        return p->rope_dim || p->rope_offset || p->rope_base != 0
                   ? err_set(err, ERR_INPUT, where, "rope_dim, rope_offset or rope_base without rope")
                   : 0;
    if (p->rope < ASC_ROPE_NONE || p->rope > ASC_ROPE_HALF)
        return err_set(err, ERR_INPUT, where, "rope is %d; it must be 0 to %d", p->rope, ASC_ROPE_HALF);
    if (p->rope_dim < 2 || p->rope_dim > p->head_dim || p->rope_dim % 2)
        return err_set(err, ERR_INPUT, where, "rope_dim is %d; it must be even, from 2 to head_dim (%d)", p->rope_dim,
                       p->head_dim);
    if (!(p->rope_base > 0 && isfinite(p->rope_base)))
        return err_set(err, ERR_INPUT, where, "rope_base is %g; it must be positive and finite", (double)p->rope_base);
    if (p->rope_offset < 0 || p->rope_offset > ASC_LENGTH_MAX)
        return err_set(err, ERR_INPUT, where, "rope_offset is %d; it must be 0 to %d", p->rope_offset, ASC_LENGTH_MAX);
    if (p->v_in_k)
        return err_set(err, ERR_INPUT, where, "rope: expected a V of its own, found V in K (v_in_k)");
    if (dtype_is_code((enum dtype)p->dtype) || dtype_is_code((enum dtype)p->k_dtype))
        return err_set(err, ERR_INPUT, where, "rope: expected Q and K of values, found codes");
    return check_positions(p, where, err);
}

/* Codes of less than a byte, and scales of another type than f32. */
static int check_scales(const struct asc_problem *p, const char *where, struct err *err)
{
    const float tensor[3] = {p->q_tensor_scale, p->k_tensor_scale, p->v_tensor_scale};
    if (p->scale_rows < 0)
        return err_set(err, ERR_INPUT, where, "scale_rows is %d; it must be 0 (all rows of a head) or more",
                       p->scale_rows);
    if (p->scale_dims < 0)
        return err_set(err, ERR_INPUT, where, "scale_dims is %d; it must be 0 (all elements of a row) or more",
                       p->scale_dims);
    if (p->scale_type < ASC_SCALE_F32 || p->scale_type > ASC_SCALE_E8M0)
        return err_set(err, ERR_INPUT, where, "scale_type is %d; it must be 0 to %d", p->scale_type, ASC_SCALE_E8M0);
    for (int i = TENSOR_Q; i <= TENSOR_V; i++) {
        const struct problem_tensor t = problem_tensor(p, (enum problem_tensor_id)i);
        const char *name = (const char *const[]){"Q", "K", "V"}[i], *scales = problem_scale_type_names[p->scale_type];
        if (t.dtype == DTYPE_E2M1 && t.cols % 2)
            return err_set(err, ERR_INPUT, where, "%s has %d elements a row; expected an even number of e2m1 codes",
                           name, t.cols);
        if (p->scale_type != ASC_SCALE_F32 && dtype_is_step_code(t.dtype))
            return err_set(err, ERR_INPUT, where, "%s is of %s; scales of %s are those of e4m3, e5m2 or e2m1", name,
                           dtype_name(t.dtype), scales);
        if (p->v_in_k && (t.dtype == DTYPE_E2M1 || p->scale_type != ASC_SCALE_F32))
            return err_set(err, ERR_INPUT, where, "V in K: expected no codes of e2m1 and scales of f32, found %s of %s",
                           dtype_name(t.dtype), scales);
        if (!(tensor[i] >= 0 && isfinite(tensor[i])) || (tensor[i] > 0 && p->scale_type != ASC_SCALE_E4M3))
            return err_set(err, ERR_INPUT, where,
                           "the scale of all of %s is %g; expected a finite number above 0, beside scales of e4m3",
                           name, (double)tensor[i]);
    }
    return 0;
}

enum dtype problem_scale_dtype(const struct asc_problem *p)
{
    return p->scale_type == ASC_SCALE_E4M3 ? DTYPE_E4M3 : p->scale_type == ASC_SCALE_E8M0 ? DTYPE_E8M0 : DTYPE_F32;
}

float problem_tensor_scale(const struct asc_problem *p, enum problem_tensor_id id)
{
    const float scale = id == TENSOR_Q ? p->q_tensor_scale : id == TENSOR_K ? p->k_tensor_scale : p->v_tensor_scale;
    return scale > 0 ? scale : 1;
}

int problem_check_new_keys(const struct asc_problem *p, const char *where, struct err *err)
{
    if (p->new_keys < 0 || p->new_keys > p->kv_len)
        return err_set(err, ERR_INPUT, where, "new_keys is %d; it must be 0 to kv_len (%d)", p->new_keys, p->kv_len);
    if (!p->new_keys)
        return 0;
    for (int b = 0; b < p->batch && p->kv_lens; b++)
        if (p->kv_lens[b] < p->new_keys)
            return err_set(err, ERR_INPUT, where,
                           "expected %d keys or more of each sequence (new_keys), found %d of sequence %d", p->new_keys,
                           p->kv_lens[b], b);
    if ((p->layout == ASC_THD && !p->page_size) || p->lie == ASC_PACKED_QKV)
        return err_set(err, ERR_INPUT, where,
                       "new_keys: expected a cache, of pages or in the layout BHLD or BLHD, found %s",
                       p->lie == ASC_PACKED_QKV ? "packed-qkv" : "THD without pages");
    if (p->k_dtype == DTYPE_E2M1 || p->v_dtype == DTYPE_E2M1)
        return err_set(err, ERR_INPUT, where,
                       "new_keys: expected K and V whose elements have bytes of their own, found e2m1");
    return 0;
}

int problem_check(const struct asc_problem *p, const char *where, struct err *err)
{
    const struct {
        const char *name;
        int32_t value;
    } lengths[] = {{"batch", p->batch},   {"heads", p->heads},       {"kv_heads", p->kv_heads},    {"q_len", p->q_len},
                   {"kv_len", p->kv_len}, {"head_dim", p->head_dim}, {"head_dim_v", p->head_dim_v}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (lengths[i].value <= 0 || lengths[i].value > ASC_LENGTH_MAX)
            return err_set(err, ERR_INPUT, where, "%s is %d; it must be positive and at most %d", lengths[i].name,
                           lengths[i].value, ASC_LENGTH_MAX);
    if (p->head_dim > ASC_HEAD_DIM_MAX || p->head_dim_v > ASC_HEAD_DIM_MAX)
        return err_set(err, ERR_INPUT, where, "head_dim is %d, head_dim_v %d; at most %d is taken", p->head_dim,
                       p->head_dim_v, ASC_HEAD_DIM_MAX);
    if (p->v_in_k & ~1)
        return err_set(err, ERR_INPUT, where, "v_in_k is %d; it must be 0 or 1", p->v_in_k);
    if (p->v_in_k && (p->head_dim_v > p->head_dim || p->v_dtype != p->k_dtype))
        return err_set(err, ERR_INPUT, where, "V is a part of K, but has %d elements a row of type %s; K has %d of %s",
                       p->head_dim_v, dtype_name((enum dtype)p->v_dtype), p->head_dim,
                       dtype_name((enum dtype)p->k_dtype));
    if (p->heads % p->kv_heads)
        return err_set(err, ERR_INPUT, where, "heads (%d) must be a multiple of kv_heads (%d)", p->heads, p->kv_heads);
    if (p->causal < ASC_CAUSAL_NONE || p->causal > ASC_CAUSAL_BOTTOM_RIGHT)
        return err_set(err, ERR_INPUT, where, "causal is %d; it must be 0, 1 or 2", p->causal);
    if (p->window_left < -1 || p->window_right < -1 || p->window_left > ASC_LENGTH_MAX ||
        p->window_right > ASC_LENGTH_MAX)
        return err_set(err, ERR_INPUT, where, "the window is %d,%d; both must be -1 (no limit) or 0 to %d",
                       p->window_left, p->window_right, ASC_LENGTH_MAX);
    if (!(p->softcap >= 0 && isfinite(p->softcap)))
        return err_set(err, ERR_INPUT, where, "softcap is %g; it must be finite, and 0 (none) or more",
                       (double)p->softcap);
    if ((p->has_sink | p->has_alibi) & ~1)
        return err_set(err, ERR_INPUT, where, "has_sink is %d, has_alibi %d; both must be 0 or 1", p->has_sink,
                       p->has_alibi);
    const int32_t kinds[] = {p->bias_kind, p->mask_kind, p->keep_kind};
    for (int i = 0; i < 3; i++)
        if (kinds[i] < ASC_BIAS_NONE || kinds[i] > ASC_BIAS_FULL)
            return err_set(err, ERR_INPUT, where, "%s_kind is %d; it must be 0 to %d",
                           (const char *const[]){"bias", "mask", "keep"}[i], kinds[i], ASC_BIAS_FULL);
    if (!(p->dropout >= 0 && p->dropout < 1) || (p->dropout > 0) != (p->keep_kind != ASC_BIAS_NONE))
        return err_set(
            err, ERR_INPUT, where,
            "dropout is %g, keep_kind %d; expected 0 (none) and 0, or less than 1 and what says which weights "
            "are kept",
            (double)p->dropout, p->keep_kind);
    if (!memchr(p->mask_formula, '\0', sizeof p->mask_formula) || !memchr(p->score_mod, '\0', sizeof p->score_mod))
        return err_set(err, ERR_INPUT, where, "a formula is longer than %d bytes", ASC_FORMULA_BYTES - 1);
    if (p->layout < ASC_BHLD || p->layout > ASC_THD)
        return err_set(err, ERR_INPUT, where, "layout is %d; it must be 0 (BHLD), 1 (BLHD) or 2 (THD)", p->layout);
    if ((p->has_q_lens | p->has_kv_lens) & ~1)
        return err_set(err, ERR_INPUT, where, "has_q_lens is %d, has_kv_lens %d; both must be 0 or 1", p->has_q_lens,
                       p->has_kv_lens);
    for (int b = 0; b < p->batch && (p->q_lens || p->kv_lens); b++)
        if (asc_q_len(p, b) < 0 || asc_q_len(p, b) > p->q_len || asc_kv_len(p, b) < 0 || asc_kv_len(p, b) > p->kv_len)
            return err_set(err, ERR_INPUT, where,
                           "sequence %d has %d queries and %d keys; expected 0 to q_len (%d) and 0 to kv_len (%d)", b,
                           asc_q_len(p, b), asc_kv_len(p, b), p->q_len, p->kv_len);
    if (p->page_size < 0 || p->page_size > ASC_LENGTH_MAX || p->pages < 0 || p->pages > ASC_LENGTH_MAX ||
        !p->pages != !p->page_size)
        return err_set(err, ERR_INPUT, where, "%d pages of %d rows; both must be 0 (none), or 1 to %d", p->pages,
                       p->page_size, ASC_LENGTH_MAX);
    for (int64_t i = 0; p->page_table && i < (int64_t)p->batch * asc_table_pages(p); i++)
        if (p->page_table[i] < 0 || p->page_table[i] >= p->pages)
            return err_set(err, ERR_INPUT, where, "the page table names page %d; there are %d", p->page_table[i],
                           p->pages);
    if (problem_check_lie(p, where, err) != 0 || problem_check_rope(p, where, err) != 0 ||
        problem_check_new_keys(p, where, err) != 0)
        return -1;
    const int32_t types[] = {p->dtype, p->k_dtype, p->v_dtype};
    for (int i = 0; i < 3; i++)
        if (!is_float(types[i]) && !dtype_is_step_code((enum dtype)types[i]))
            return err_set(err, ERR_INPUT, where,
                           "%sdtype is %d; q, k and v must be of a floating-point type, or codes of type u8 or s8",
                           (const char *const[]){"", "k_", "v_"}[i], types[i]);
    if (check_scales(p, where, err) != 0)
        return -1;
    if (!(p->scale > 0 && isfinite(p->scale)))
        return err_set(err, ERR_INPUT, where, "scale is %g; it must be positive and finite", (double)p->scale);
    struct size size = {0, 0};
    const int32_t widest = p->head_dim_v > p->head_dim ? p->head_dim_v : p->head_dim;
    (void)tensor_bytes(&size, p->batch, p->heads, p->q_len, widest, DTYPE_F64);
    (void)tensor_bytes(&size, p->batch, p->kv_heads, p->kv_len, widest, DTYPE_F64);
    (void)tensor_bytes(&size, p->pages, p->kv_heads, p->page_size, widest, DTYPE_F64);
    (void)pair_bytes(&size, p, p->bias_kind, DTYPE_F32);
    if (size.overflow)
        return err_set(err, ERR_INPUT, where,
                       "tensors of %d x %d heads, lengths %d and %d, head_dim %d exceed 2^63 bytes", p->batch, p->heads,
                       p->q_len, p->kv_len, widest);
    return 0;
}

void problem_types(const struct asc_problem *p, char text[TYPES_BYTES])
{
    const char *q = dtype_name((enum dtype)p->dtype);
    if (p->k_dtype == p->dtype && p->v_dtype == p->dtype)
        snprintf(text, TYPES_BYTES, "%s", q);
    else
        snprintf(text, TYPES_BYTES, "%s/%s/%s", q, dtype_name((enum dtype)p->k_dtype),
                 dtype_name((enum dtype)p->v_dtype));
}

struct problem_tensor problem_tensor(const struct asc_problem *p, enum problem_tensor_id id)
{
    const bool is_q = id == TENSOR_Q || id == TENSOR_O;
    const int32_t type = id == TENSOR_K ? p->k_dtype : id == TENSOR_V ? p->v_dtype : p->dtype;
    struct problem_tensor t = {.heads = is_q ? p->heads : p->kv_heads,
                               .rows = is_q ? p->q_len : p->kv_len,
                               .cols = id == TENSOR_V || id == TENSOR_O ? p->head_dim_v : p->head_dim,
                               .dtype = (enum dtype)type,
                               .lens = is_q ? p->q_lens : p->kv_lens};
    t.stride = asc_strides_wide(p, t.heads, t.rows, t.cols);
    return t;
}

enum problem_tensor_id problem_tensor_of(enum asc_channel ch)
{
    return ch == asc_q ? TENSOR_Q : ch == asc_k ? TENSOR_K : ch == asc_v ? TENSOR_V : TENSOR_O;
}

size_t problem_tensor_count(const struct asc_problem *p, enum problem_tensor_id id)
{
    const struct problem_tensor t = problem_tensor(p, id);
    return (size_t)p->batch * (size_t)t.heads * (size_t)t.rows * (size_t)t.cols;
}

struct asc_problem problem_bare(const struct asc_problem *p)
{
    struct asc_problem bare = *p;
    bare.q = bare.k = bare.v = NULL;
    bare.o = NULL;
    bare.lse = NULL;
    bare.sink = bare.alibi = bare.bias = NULL;
    bare.mask = bare.keep = NULL;
    bare.q_scale = bare.k_scale = bare.v_scale = NULL;
    bare.q_scale_code = bare.k_scale_code = bare.v_scale_code = NULL;
    bare.q_lens = bare.kv_lens = bare.cu_seqlens_q = bare.cu_seqlens_k = bare.page_table = bare.leftpad_k = NULL;
    bare.rope_cos = bare.rope_sin = NULL;
    bare.cache_lens = NULL;
    bare.k_new = bare.v_new = NULL;
    bare.k_cache = bare.v_cache = NULL;
    bare.workspace = NULL;
    return bare;
}

bool problem_has_codes(const struct asc_problem *p)
{
    return dtype_is_code((enum dtype)p->dtype) || dtype_is_code((enum dtype)p->k_dtype) ||
           dtype_is_code((enum dtype)p->v_dtype);
}

int problem_o_dtype(const struct asc_problem *p, int declared)
{
    return declared >= 0 ? declared : dtype_is_code((enum dtype)p->dtype) ? DTYPE_F16 : p->dtype;
}

void problem_terms(const struct asc_problem *p, const struct asc_plan *plan, char text[TERMS_BYTES])
{
    char splits[40] = "";
    const int deal = plan ? plan->kv_deal : ASC_DEAL_RANGES;
    if (plan && plan->kv_splits > 1)
        snprintf(splits, sizeof splits, " splits %d%s%s", (int)plan->kv_splits, deal == ASC_DEAL_RANGES ? "" : " ",
                 deal == ASC_DEAL_RANGES ? "" : plan_deal_names[deal]);
    char pages[32] = "";
    if (p->page_size)
        snprintf(pages, sizeof pages, " pages of %d", (int)p->page_size);
    char values[128] = "";
    if (p->head_dim_v != p->head_dim)
        snprintf(values, sizeof values, " head_dim_v %d", (int)p->head_dim_v);
    if (p->lie > ASC_CONTIGUOUS && p->lie <= ASC_V_TRANSPOSED)
        snprintf(values + strlen(values), sizeof values - strlen(values), " strides %s", problem_lie_names[p->lie]);
    if (p->left_pad)
        snprintf(values + strlen(values), sizeof values - strlen(values), " left_pad");
    if (p->rope > ASC_ROPE_NONE && p->rope <= ASC_ROPE_HALF)
        snprintf(values + strlen(values), sizeof values - strlen(values), " rope %s %d", problem_rope_names[p->rope],
                 (int)p->rope_dim);
    if (p->new_keys)
        snprintf(values + strlen(values), sizeof values - strlen(values), " new_keys %d", (int)p->new_keys);
    snprintf(text, TERMS_BYTES, "%s%s%s%s%s%s%s%s%s%s%s", values, p->v_in_k ? " V in K" : "",
             p->has_sink ? " sink" : "", p->has_alibi ? " alibi" : "", p->bias_kind != ASC_BIAS_NONE ? " bias" : "",
             p->mask_kind != ASC_BIAS_NONE ? " mask" : "", p->score_mod[0] ? " score_mod" : "",
             p->dropout > 0 ? " dropout" : "", p->has_q_lens || p->has_kv_lens ? " varlen" : "", pages, splits);
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
    if (!is_float(types->o))
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

/* Fills in tiles and the strides of channels and stamps; *bytes is what they take for each slot. */
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
