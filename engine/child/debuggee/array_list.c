#include "engine/child/debuggee/array_list.h"

#include "engine/child/debuggee/cache.h"
#include "engine/child/debuggee/say.h"
#include "engine/trace/event.h"
#include "engine/trace/placed.h"
#include "engine/trace/rope.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const array_names[ARRAYS] = {
    [ARRAY_Q] = "Q",
    [ARRAY_K] = "K",
    [ARRAY_V] = "V",
    [ARRAY_SINK] = "the sinks",
    [ARRAY_ALIBI] = "the ALiBi slopes",
    [ARRAY_BIAS] = "the bias",
    [ARRAY_MASK] = "the mask",
    [ARRAY_KEEP] = "the weights kept by dropout",
    [ARRAY_Q_SCALE] = "the scales of Q",
    [ARRAY_K_SCALE] = "the scales of K",
    [ARRAY_V_SCALE] = "the scales of V",
    [ARRAY_Q_LENS] = "the lengths of the queries",
    [ARRAY_KV_LENS] = "the lengths of the keys",
    [ARRAY_CU_SEQLENS_Q] = "cu_seqlens_q",
    [ARRAY_CU_SEQLENS_K] = "cu_seqlens_k",
    [ARRAY_PAGE_TABLE] = "the page table",
    [ARRAY_LEFTPAD_K] = "leftpad_k",
    [ARRAY_CACHE_LENS] = "the lengths of the cache",
    [ARRAY_K_NEW] = "k_new",
    [ARRAY_V_NEW] = "v_new",
    [ARRAY_ROPE_COS] = "the cosines of RoPE",
    [ARRAY_ROPE_SIN] = "the sines of RoPE",
    [ARRAY_O] = "O",
    [ARRAY_LSE] = "LSE",
    [ARRAY_WORKSPACE] = "the workspace",
};

static size_t scale_bytes(const struct asc_problem *p, const float *scale, enum problem_tensor_id id)
{
    const struct problem_tensor t = problem_tensor(p, id);
    return scale ? (size_t)p->batch * (size_t)t.heads * (size_t)asc_scale_groups(p, t.rows) *
                       (size_t)asc_scale_parts(p, t.cols) * sizeof *scale
                 : 0;
}

/* Two codes in a byte, in place. */
static void pack_codes(unsigned char *codes, size_t n)
{
    for (size_t i = 0; i < n; i += 2)
        codes[i / 2] = (unsigned char)((codes[i] & 0xF) | (i + 1 < n ? codes[i + 1] << 4 : 0));
}

/* Scales stand as f32 in a trace, whatever their type. */
static int make_scales(struct array_list *list, int i)
{
    const enum dtype type = problem_scale_dtype(&list->of);
    const size_t n = list->bytes[i] / sizeof(float);
    const float *from = list->at[i];
    if (type == DTYPE_F32 || !from)
        return 0;
    unsigned char *made = malloc(n + 1);
    for (size_t k = 0; made && k < n; k++)
        dtype_store(type, made, k, (double)from[k]);
    list->at[i] = list->made[i] = made;
    list->bytes[i] = n;
    list->dtype[i] = (int)type;
    return made ? 0 : -1;
}

static enum problem_tensor_id tensor_of(int array)
{
    return array == ARRAY_O ? TENSOR_O : (enum problem_tensor_id)(array - ARRAY_Q);
}

struct copying {
    const unsigned char *from;
    unsigned char *to;
    int cols;
    int64_t col; /* elements of the kernel's from one to the next of a row */
    size_t item;
};

static void to_kernel(void *ctx, int64_t in_trace, int64_t of_kernel)
{
    const struct copying *c = ctx;
    for (int d = 0; d < (c->col == 1 ? 1 : c->cols); d++)
        memcpy(c->to + (size_t)(of_kernel + c->col * d) * c->item, c->from + (size_t)(in_trace + d) * c->item,
               c->item * (c->col == 1 ? (size_t)c->cols : 1));
}

static void to_trace(void *ctx, int64_t in_trace, int64_t of_kernel)
{
    const struct copying *c = ctx;
    memcpy(c->to + (size_t)in_trace * c->item, c->from + (size_t)of_kernel * c->item, (size_t)c->cols * c->item);
}

bool array_list_packs_output(const struct asc_problem *problem)
{
    const struct placed t = placed_of(problem, TENSOR_O);
    return !placed_as_in_trace(&t);
}

void array_list_unpack_output(const struct asc_problem *problem, enum dtype dtype, const void *from, void *to)
{
    const struct placed t = placed_of(problem, TENSOR_O);
    struct copying c = {from, to, t.of.cols, 1, dtype_bytes(dtype)};
    placed_each_row(&t, to_trace, &c);
}

struct counting {
    const unsigned char *o;
    int64_t elements;
    size_t item;
    uint16_t pattern;
    int64_t written;
};

static int64_t count_written(const struct counting *c, int64_t first, int64_t n)
{
    int64_t written = 0;
    for (int64_t i = 0; i < n; i++) {
        bool is = false;
        for (size_t byte = 0; byte < c->item; byte += 2)
            is = is || memcmp(c->o + (size_t)(first + i) * c->item + byte, &c->pattern, 2) != 0;
        written += is;
    }
    return written;
}

static void count_row(void *ctx, int64_t in_trace, int64_t of_kernel)
{
    struct counting *c = ctx;
    (void)in_trace;
    c->written += count_written(c, of_kernel, c->elements);
}

bool array_list_wrote_between(const struct asc_problem *problem, enum dtype dtype, const void *o, uint16_t pattern)
{
    const struct placed t = placed_of(problem, TENSOR_O);
    struct counting c = {o, t.of.cols, dtype_bytes(dtype), pattern, 0};
    if (problem->lie != ASC_STRIDED || !dtype_has_unwritten(dtype))
        return false;
    placed_each_row(&t, count_row, &c);
    return count_written(&c, 0, t.elements) > c.written;
}

void array_list_nan(unsigned char *at, size_t bytes, size_t item)
{
    if (item == 1)
        memset(at, 0x7F, bytes);
    for (size_t i = 0; item > 1 && i < bytes; i += 2)
        memcpy(at + i, &(uint16_t){UNUSED_16}, 2);
}

/* What no sequence uses is NaN. -1: no memory. */
static int make_array(const struct placed *t, int i, struct array_list *list)
{
    const size_t item = dtype_bytes((enum dtype)list->dtype[i]);
    list->bytes[i] = (size_t)t->elements * item;
    if (placed_as_in_trace(t) && list->dtype[i] != DTYPE_E2M1 && !(t->p->new_keys && i != ARRAY_Q))
        return 0;
    unsigned char *made = malloc(list->bytes[i] + 1);
    if (!made)
        return -1;
    array_list_nan(made, list->bytes[i], item);
    list->made[i] = made;
    return 0;
}

/* The arrays of q, k and v, some of which may be parts of another one. */
static int make_inputs(struct array_list *list)
{
    const struct asc_problem *p = &list->of;
    for (int i = ARRAY_Q; i <= ARRAY_V; i++) {
        const struct placed t = placed_of(p, tensor_of(i));
        const int in = p->lie == ASC_PACKED_QKV ? ARRAY_Q : i == ARRAY_V && p->v_in_k ? ARRAY_K : i;
        list->in[i] = in;
        const size_t item = dtype_bytes((enum dtype)list->dtype[i]);
        list->offset[i] = dtype_packed((enum dtype)list->dtype[i], (size_t)t.first * item);
        if (in == i && make_array(&t, i, list) != 0)
            return -1;
        struct copying c = {list->at[i], list->made[in], t.of.cols, t.to.col, item};
        if (!list->made[in] || !list->at[i] || (i == ARRAY_V && p->v_in_k))
            continue;
        if (!p->new_keys || i == ARRAY_Q)
            placed_each_row(&t, to_kernel, &c);
        else if (cache_fill(&t, i, list->made[i]) != 0)
            return -1;
    }
    for (int i = ARRAY_Q; i <= ARRAY_V; i++) {
        if (list->in[i] == i && list->dtype[i] == DTYPE_E2M1) {
            pack_codes(list->made[i], list->bytes[i]);
            list->bytes[i] = dtype_packed(DTYPE_E2M1, list->bytes[i]);
        }
    }
    for (int i = ARRAY_Q; i <= ARRAY_V; i++)
        list->at[i] = list->in[i] != i ? NULL : list->made[i] ? list->made[i] : list->at[i];
    return 0;
}

static int make_sums(const struct placed *t, int i, int32_t *total, struct array_list *list)
{
    int32_t *sums = malloc(((size_t)t->p->batch + 1) * sizeof *sums);
    if (!sums)
        return -1;
    sums[0] = 0;
    for (int b = 0; b < t->p->batch; b++)
        sums[b + 1] = sums[b] + problem_tensor_rows(&t->of, b);
    *total = sums[t->p->batch];
    list->bytes[i] = ((size_t)t->p->batch + 1) * sizeof *sums;
    list->at[i] = list->made[i] = sums;
    return 0;
}

static int make_left_pads(const struct asc_problem *p, struct array_list *list)
{
    int32_t *pads = malloc((size_t)p->batch * sizeof *pads);
    for (int b = 0; pads && b < p->batch; b++)
        pads[b] = p->kv_len - asc_kv_len(p, b);
    list->bytes[ARRAY_LEFTPAD_K] = (size_t)p->batch * sizeof *pads;
    list->at[ARRAY_LEFTPAD_K] = list->made[ARRAY_LEFTPAD_K] = pads;
    return pads ? 0 : -1;
}

/* Keys that the kernel appends, and how many are there before. */
static int make_new_keys(const struct asc_problem *p, struct array_list *list)
{
    int32_t *lens = malloc((size_t)p->batch * sizeof *lens);
    list->bytes[ARRAY_CACHE_LENS] = (size_t)p->batch * sizeof *lens;
    list->at[ARRAY_CACHE_LENS] = list->made[ARRAY_CACHE_LENS] = lens;
    for (int b = 0; lens && b < p->batch; b++)
        lens[b] = asc_cache_len(p, b);
    for (int i = ARRAY_K_NEW; i <= (p->v_in_k ? ARRAY_K_NEW : ARRAY_V_NEW); i++) {
        const size_t n = (size_t)p->batch * (size_t)asc_strides_of_new(p, i == ARRAY_V_NEW).batch;
        list->bytes[i] = n * dtype_bytes((enum dtype)list->dtype[i]);
        list->at[i] = list->made[i] = calloc(1, list->bytes[i]);
        if (list->made[i] && p->k && p->v)
            cache_new_rows(p, i, list->made[i]);
    }
    return lens && list->made[ARRAY_K_NEW] && (p->v_in_k || list->made[ARRAY_V_NEW]) ? 0 : -1;
}

static int make_rope(const struct asc_problem *p, struct array_list *list)
{
    const size_t pairs = (size_t)p->rope_dim / 2, rows = (size_t)asc_rope_rows(p), bytes = pairs * rows * sizeof(float);
    float *cosines = malloc(bytes), *sines = malloc(bytes);
    list->at[ARRAY_ROPE_COS] = list->made[ARRAY_ROPE_COS] = cosines;
    list->at[ARRAY_ROPE_SIN] = list->made[ARRAY_ROPE_SIN] = sines;
    if (!cosines || !sines)
        return -1;
    list->bytes[ARRAY_ROPE_COS] = list->bytes[ARRAY_ROPE_SIN] = bytes;
    for (size_t row = 0; row < rows; row++)
        rope_turns(p->rope_dim, (double)p->rope_base, (int)row, cosines + row * pairs, sines + row * pairs);
    return 0;
}

int array_list_make(const struct asc_kernel *kernel, const struct asc_problem *problem, const struct asc_plan *plan,
                    struct array_list *list)
{
    const struct asc_problem *p = problem;
    const size_t queries = (size_t)p->batch * (size_t)p->heads * (size_t)p->q_len;
    const size_t head_bytes = (size_t)p->heads * sizeof(float), lens_bytes = (size_t)p->batch * sizeof(int32_t);
    const int o_dtype = problem_o_dtype(p, kernel->o_dtype);
    *list = (struct array_list){
        .of = *problem,
        .at = {p->q, p->k, p->v, p->sink, p->alibi, p->bias, p->mask, p->keep, p->q_scale, p->k_scale, p->v_scale,
               p->q_lens, p->kv_lens, [ARRAY_PAGE_TABLE] = p->page_table},
        .bytes = {[ARRAY_SINK] = p->sink ? head_bytes : 0,
                  [ARRAY_ALIBI] = p->alibi ? head_bytes : 0,
                  [ARRAY_BIAS] = asc_bias_count(p) * sizeof(float),
                  [ARRAY_MASK] = asc_mask_count(p),
                  [ARRAY_KEEP] = asc_keep_count(p),
                  [ARRAY_Q_SCALE] = scale_bytes(p, p->q_scale, TENSOR_Q),
                  [ARRAY_K_SCALE] = scale_bytes(p, p->k_scale, TENSOR_K),
                  [ARRAY_V_SCALE] = scale_bytes(p, p->v_scale, TENSOR_V),
                  [ARRAY_Q_LENS] = p->q_lens ? lens_bytes : 0,
                  [ARRAY_KV_LENS] = p->kv_lens ? lens_bytes : 0,
                  [ARRAY_PAGE_TABLE] = p->page_table ? lens_bytes * (size_t)asc_table_pages(p) : 0,
                  [ARRAY_LSE] = queries * sizeof(float),
                  [ARRAY_WORKSPACE] = (size_t)plan->workspace_bytes},
        .dtype = {p->dtype,   p->k_dtype, p->v_dtype, DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_U8,  DTYPE_U8,  DTYPE_F32,
                  DTYPE_F32,  DTYPE_F32,  DTYPE_I32,  DTYPE_I32, DTYPE_I32, DTYPE_I32, DTYPE_I32, DTYPE_I32, DTYPE_I32,
                  p->k_dtype, p->v_dtype, DTYPE_F32,  DTYPE_F32, o_dtype,   DTYPE_F32, -1}};
    bool failed = make_inputs(list) != 0 || make_scales(list, ARRAY_Q_SCALE) != 0 ||
                  make_scales(list, ARRAY_K_SCALE) != 0 || make_scales(list, ARRAY_V_SCALE) != 0;
    const struct placed o = placed_of(p, TENSOR_O), k = placed_of(p, TENSOR_K);
    list->bytes[ARRAY_O] = (size_t)o.elements * dtype_bytes((enum dtype)o_dtype);
    if (p->layout == ASC_THD)
        failed = failed || make_sums(&o, ARRAY_CU_SEQLENS_Q, &list->total_q, list) != 0 ||
                 (!k.paged && make_sums(&k, ARRAY_CU_SEQLENS_K, &list->total_k, list) != 0);
    if (p->left_pad)
        failed = failed || make_left_pads(p, list) != 0;
    if (p->new_keys)
        failed = failed || make_new_keys(p, list) != 0;
    if (p->rope)
        failed = failed || make_rope(p, list) != 0;
    if (!failed)
        return 0;
    array_list_free(list);
    return -1;
}

void array_list_free(struct array_list *list)
{
    for (int i = 0; i < ARRAYS; i++)
        free(list->made[i]);
    memset(list->made, 0, sizeof list->made);
}

void array_list_use(const struct array_list *list, void *const at[ARRAYS], struct asc_problem *problem)
{
    const void **const inputs[] = {&problem->q, &problem->k, &problem->v};
    struct asc_strides *const strides[] = {&problem->q_strides, &problem->k_strides, &problem->v_strides};
    for (int i = ARRAY_Q; i <= ARRAY_V; i++) {
        *inputs[i] = (const unsigned char *)at[list->in[i]] + list->offset[i];
        *strides[i] = placed_of(&list->of, tensor_of(i)).to;
    }
    problem->o_strides = placed_of(&list->of, TENSOR_O).to;
    problem->sink = at[ARRAY_SINK];
    problem->alibi = at[ARRAY_ALIBI];
    problem->bias = at[ARRAY_BIAS];
    problem->mask = at[ARRAY_MASK];
    problem->keep = at[ARRAY_KEEP];
    const bool f32 = problem->scale_type == ASC_SCALE_F32;
    problem->q_scale = f32 ? at[ARRAY_Q_SCALE] : NULL;
    problem->k_scale = f32 ? at[ARRAY_K_SCALE] : NULL;
    problem->v_scale = f32 ? at[ARRAY_V_SCALE] : NULL;
    problem->q_scale_code = f32 ? NULL : at[ARRAY_Q_SCALE];
    problem->k_scale_code = f32 ? NULL : at[ARRAY_K_SCALE];
    problem->v_scale_code = f32 ? NULL : at[ARRAY_V_SCALE];
    problem->q_lens = at[ARRAY_Q_LENS];
    problem->kv_lens = at[ARRAY_KV_LENS];
    problem->cu_seqlens_q = at[ARRAY_CU_SEQLENS_Q];
    problem->cu_seqlens_k = at[ARRAY_CU_SEQLENS_K];
    problem->page_table = at[ARRAY_PAGE_TABLE];
    problem->leftpad_k = at[ARRAY_LEFTPAD_K];
    problem->cache_lens = at[ARRAY_CACHE_LENS];
    problem->k_new = at[ARRAY_K_NEW];
    problem->v_new = problem->v_in_k ? problem->k_new : at[ARRAY_V_NEW];
    problem->k_cache = problem->new_keys ? at[ARRAY_K] : NULL;
    problem->v_cache = problem->v_in_k ? problem->k_cache : problem->new_keys ? at[ARRAY_V] : NULL;
    problem->rope_cos = at[ARRAY_ROPE_COS];
    problem->rope_sin = at[ARRAY_ROPE_SIN];
    problem->total_q = list->total_q;
    problem->total_k = list->total_k;
    problem->o = at[ARRAY_O];
    problem->lse = at[ARRAY_LSE];
    problem->workspace = at[ARRAY_WORKSPACE];
}

void array_list_say_overrun(const char *name, int socket)
{
    struct say s;
    char text[64];
    snprintf(text, sizeof text, "the kernel wrote outside %s", name);
    say_begin(&s, WIRE_EVENT);
    say_text(&s, "kind", event_name(EVENT_ADDRESS));
    say_integer(&s, "line", 0);
    say_text(&s, "file", NULL);
    say_text(&s, "text", text);
    say_end(&s, socket);
}
