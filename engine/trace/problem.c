/* What a problem is: its names, which numbers are possible, the shapes of its tensors. */
#include "engine/trace/layout.h"
#include "engine/trace/sizes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
        if (!dtype_is_float(types[i]) && !dtype_is_step_code((enum dtype)types[i]))
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
             p->has_sink ? " sink" : "", p->has_alibi ? " alibi" : "",
             p->bias_kind != ASC_BIAS_NONE ? " attention bias" : "", p->mask_kind != ASC_BIAS_NONE ? " mask" : "",
             p->score_mod[0] ? " score_mod" : "", p->dropout > 0 ? " dropout" : "",
             p->has_q_lens || p->has_kv_lens ? " varlen" : "", pages, splits);
}
