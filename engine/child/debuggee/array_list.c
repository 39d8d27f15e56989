#include "engine/child/debuggee/array_list.h"

#include "engine/child/debuggee/say.h"
#include "engine/trace/event.h"
#include "engine/trace/layout.h"
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
    [ARRAY_Q_SCALE] = "the scales of Q",
    [ARRAY_K_SCALE] = "the scales of K",
    [ARRAY_V_SCALE] = "the scales of V",
    [ARRAY_Q_LENS] = "the lengths of the queries",
    [ARRAY_KV_LENS] = "the lengths of the keys",
    [ARRAY_CU_SEQLENS_Q] = "cu_seqlens_q",
    [ARRAY_CU_SEQLENS_K] = "cu_seqlens_k",
    [ARRAY_PAGE_TABLE] = "the page table",
    [ARRAY_O] = "O",
    [ARRAY_LSE] = "LSE",
    [ARRAY_WORKSPACE] = "the workspace",
};

static size_t scale_bytes(const struct asc_problem *p, const float *scale, int heads, int rows)
{
    return scale ? (size_t)p->batch * (size_t)heads * (size_t)asc_scale_groups(p, rows) * sizeof *scale : 0;
}

/* One of q, k, v and o. */
struct placed {
    const struct asc_problem *p;
    int heads, rows; /* of a sequence in the trace */
    const int32_t *lens;
    bool packed; /* with THD */
    bool paged;
    int cols;
    size_t row_bytes;
};

static struct placed placed_of(const struct asc_problem *p, int array, int dtype)
{
    const bool is_q = array == ARRAY_Q || array == ARRAY_O;
    const struct problem_tensor t =
        problem_tensor(p, array == ARRAY_O ? TENSOR_O : (enum problem_tensor_id)(array - ARRAY_Q));
    return (struct placed){.p = p,
                           .heads = t.heads,
                           .rows = t.rows,
                           .lens = t.lens,
                           .cols = t.cols,
                           .packed = p->layout == ASC_THD && (is_q || !p->page_size),
                           .paged = !is_q && p->page_size > 0,
                           .row_bytes = (size_t)t.cols * dtype_bytes((enum dtype)dtype)};
}

static int32_t length_of(const struct placed *t, int batch)
{
    return t->lens ? t->lens[batch] : t->rows;
}

static int64_t total_rows(const struct placed *t)
{
    int64_t total = 0;
    for (int b = 0; b < t->p->batch; b++)
        total += length_of(t, b);
    return total;
}

static size_t placed_bytes(const struct placed *t)
{
    const int64_t rows = t->paged    ? (int64_t)t->p->pages * t->p->page_size
                         : t->packed ? total_rows(t)
                                     : (int64_t)t->p->batch * t->rows;
    return (size_t)rows * (size_t)t->heads * t->row_bytes;
}

/* Calls copy(trace's offset, kernel's offset) in rows, for each row of each head of each sequence. */
static void each_row(const struct placed *t, void (*copy)(void *ctx, size_t in_trace, size_t of_kernel), void *ctx)
{
    const struct asc_problem *p = t->p;
    const int64_t d = t->cols;
    const struct asc_strides from = asc_strides_wide(p, t->heads, t->rows, d);
    const struct asc_strides to = asc_strides_wide(p, t->heads, t->paged ? p->page_size : t->rows, d);
    int64_t begin = 0;
    for (int b = 0; b < p->batch; b++) {
        const int32_t length = length_of(t, b), *pages = p->page_table + (int64_t)b * asc_table_pages(p);
        for (int row = 0; row < length; row++)
            for (int h = 0; h < t->heads; h++) {
                const int64_t at = t->paged ? to.batch * pages[row / p->page_size] + to.row * (row % p->page_size)
                                            : to.row * (begin + row);
                copy(ctx, (size_t)((from.batch * b + from.head * h + from.row * row) / d),
                     (size_t)((at + to.head * h) / d));
            }
        begin += length;
    }
}

struct copying {
    const unsigned char *from;
    unsigned char *to;
    size_t row_bytes;
};

static void to_kernel(void *ctx, size_t in_trace, size_t of_kernel)
{
    const struct copying *c = ctx;
    memcpy(c->to + of_kernel * c->row_bytes, c->from + in_trace * c->row_bytes, c->row_bytes);
}

static void to_trace(void *ctx, size_t in_trace, size_t of_kernel)
{
    const struct copying *c = ctx;
    memcpy(c->to + in_trace * c->row_bytes, c->from + of_kernel * c->row_bytes, c->row_bytes);
}

bool array_list_packs_output(const struct asc_problem *problem)
{
    return problem->layout == ASC_THD && problem->q_lens;
}

void array_list_unpack_output(const struct asc_problem *problem, enum dtype dtype, const void *from, void *to)
{
    const struct placed t = placed_of(problem, ARRAY_O, dtype);
    struct copying c = {from, to, t.row_bytes};
    each_row(&t, to_trace, &c);
}

/* What no sequence uses is NaN: in bytes, the NaN of e4m3 and e5m2. */
static int make_placed(const struct placed *t, int dtype, int i, struct array_list *list)
{
    list->bytes[i] = placed_bytes(t);
    if (!t->paged && !(t->packed && t->lens))
        return 0;
    unsigned char *made = malloc(list->bytes[i] + 1);
    if (!made)
        return -1;
    if (dtype_bytes((enum dtype)dtype) == 1)
        memset(made, 0x7F, list->bytes[i]);
    else
        for (size_t at = 0; at < list->bytes[i]; at += 2)
            memcpy(made + at, &(uint16_t){UNWRITTEN_16}, 2);
    struct copying c = {list->at[i], made, t->row_bytes};
    each_row(t, to_kernel, &c);
    list->at[i] = list->made[i] = made;
    return 0;
}

static int make_sums(const struct placed *t, int i, int32_t *total, struct array_list *list)
{
    int32_t *sums = malloc(((size_t)t->p->batch + 1) * sizeof *sums);
    if (!sums)
        return -1;
    sums[0] = 0;
    for (int b = 0; b < t->p->batch; b++)
        sums[b + 1] = sums[b] + length_of(t, b);
    *total = sums[t->p->batch];
    list->bytes[i] = ((size_t)t->p->batch + 1) * sizeof *sums;
    list->at[i] = list->made[i] = sums;
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
        .at = {p->q, p->k, p->v, p->sink, p->alibi, p->bias, p->q_scale, p->k_scale, p->v_scale, p->q_lens,
               p->kv_lens, [ARRAY_PAGE_TABLE] = p->page_table},
        .bytes = {[ARRAY_SINK] = p->sink ? head_bytes : 0,
                  [ARRAY_ALIBI] = p->alibi ? head_bytes : 0,
                  [ARRAY_BIAS] = asc_bias_count(p) * sizeof(float),
                  [ARRAY_Q_SCALE] = scale_bytes(p, p->q_scale, p->heads, p->q_len),
                  [ARRAY_K_SCALE] = scale_bytes(p, p->k_scale, p->kv_heads, p->kv_len),
                  [ARRAY_V_SCALE] = scale_bytes(p, p->v_scale, p->kv_heads, p->kv_len),
                  [ARRAY_Q_LENS] = p->q_lens ? lens_bytes : 0,
                  [ARRAY_KV_LENS] = p->kv_lens ? lens_bytes : 0,
                  [ARRAY_PAGE_TABLE] = p->page_table ? lens_bytes * (size_t)asc_table_pages(p) : 0,
                  [ARRAY_LSE] = queries * sizeof(float),
                  [ARRAY_WORKSPACE] = (size_t)plan->workspace_bytes},
        .dtype = {p->dtype, p->k_dtype, p->v_dtype, DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32,
                  DTYPE_I32, DTYPE_I32, DTYPE_I32, DTYPE_I32, DTYPE_I32, o_dtype, DTYPE_F32, -1}};
    bool failed = false;
    for (int i = ARRAY_Q; i <= ARRAY_V; i++) {
        const struct placed t = placed_of(p, i, list->dtype[i]);
        failed = failed || ((i != ARRAY_V || !p->v_in_k) && make_placed(&t, list->dtype[i], i, list) != 0);
    }
    const struct placed o = placed_of(p, ARRAY_O, o_dtype), k = placed_of(p, ARRAY_K, p->k_dtype);
    list->bytes[ARRAY_O] = placed_bytes(&o);
    if (p->layout == ASC_THD)
        failed = failed || make_sums(&o, ARRAY_CU_SEQLENS_Q, &list->total_q, list) != 0 ||
                 (!k.paged && make_sums(&k, ARRAY_CU_SEQLENS_K, &list->total_k, list) != 0);
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
    problem->q = at[ARRAY_Q];
    problem->k = at[ARRAY_K];
    problem->v = problem->v_in_k ? at[ARRAY_K] : at[ARRAY_V];
    problem->sink = at[ARRAY_SINK];
    problem->alibi = at[ARRAY_ALIBI];
    problem->bias = at[ARRAY_BIAS];
    problem->q_scale = at[ARRAY_Q_SCALE];
    problem->k_scale = at[ARRAY_K_SCALE];
    problem->v_scale = at[ARRAY_V_SCALE];
    problem->q_lens = at[ARRAY_Q_LENS];
    problem->kv_lens = at[ARRAY_KV_LENS];
    problem->cu_seqlens_q = at[ARRAY_CU_SEQLENS_Q];
    problem->cu_seqlens_k = at[ARRAY_CU_SEQLENS_K];
    problem->page_table = at[ARRAY_PAGE_TABLE];
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
