#include "engine/trace/placed.h"

/* Elements that belong to nobody: as many as keep rows of any type at multiples of 16 bytes. */
enum { GAP = 16 };

static struct asc_strides strided(const struct asc_problem *p, int64_t heads, int64_t rows, int64_t cols)
{
    struct asc_strides s = {.col = 1};
    if (p->layout == ASC_BHLD) {
        s.row = cols + GAP;
        s.head = (rows + 1) * s.row;
        s.batch = (heads + 1) * s.head;
    } else {
        s.head = cols + GAP;
        s.row = (heads + 1) * s.head;
        s.batch = (rows + 1) * s.row;
    }
    return s;
}

struct placed placed_of(const struct asc_problem *p, enum problem_tensor_id id)
{
    const bool is_q = id == TENSOR_Q || id == TENSOR_O;
    struct placed t = {.p = p,
                       .of = problem_tensor(p, id),
                       .packed = p->layout == ASC_THD && (is_q || !p->page_size),
                       .paged = !is_q && p->page_size > 0};
    const int64_t rows = t.paged ? p->page_size : t.of.rows, batches = t.paged ? p->pages : p->batch;
    int64_t heads = t.of.heads, cols = t.of.cols, total = 0;
    if (id == TENSOR_V && p->v_in_k)
        cols = p->head_dim;
    if (p->lie == ASC_PACKED_QKV && id != TENSOR_O) {
        heads = p->heads + 2 * p->kv_heads;
        t.first = (id == TENSOR_Q ? 0 : id == TENSOR_K ? p->heads : p->heads + p->kv_heads) * cols;
    }
    if (p->lie == ASC_V_TRANSPOSED && id == TENSOR_V) {
        const int64_t column = (rows + 7) / 8 * 8;
        t.to = (struct asc_strides){cols * column * heads, cols * column, 1, column};
    } else if (p->lie == ASC_STRIDED) {
        t.to = strided(p, heads, rows, cols);
    } else {
        t.to = asc_strides_wide(p, (int32_t)heads, (int32_t)rows, cols);
    }
    for (int b = 0; b < p->batch; b++)
        total += problem_tensor_rows(&t.of, b);
    t.elements = t.packed ? total * t.to.row : batches * t.to.batch;
    return t;
}

int placed_left_pad(const struct placed *t, int batch)
{
    return t->p->left_pad && t->of.lens == t->p->kv_lens ? t->p->kv_len - problem_tensor_rows(&t->of, batch) : 0;
}

int64_t placed_at(const struct placed *t, int64_t begin, int batch, int head, int row)
{
    const struct asc_problem *p = t->p;
    const int64_t in_head = t->first + t->to.head * head;
    if (t->paged)
        return in_head + t->to.row * (row % p->page_size) +
               t->to.batch * p->page_table[(int64_t)batch * asc_table_pages(p) + row / p->page_size];
    return in_head + (t->packed ? t->to.row * (begin + row)
                                : t->to.batch * batch + t->to.row * ((int64_t)row + placed_left_pad(t, batch)));
}

void placed_each_row(const struct placed *t, void (*copy)(void *ctx, int64_t in_trace, int64_t of_kernel), void *ctx)
{
    int64_t begin = 0;
    for (int b = 0; b < t->p->batch; b++) {
        const int length = problem_tensor_rows(&t->of, b);
        for (int row = 0; row < length; row++)
            for (int h = 0; h < t->of.heads; h++)
                copy(ctx, problem_tensor_at(&t->of, b, h, row), placed_at(t, begin, b, h, row));
        begin += length;
    }
}

bool placed_as_in_trace(const struct placed *t)
{
    const struct asc_strides *a = &t->to, *b = &t->of.stride;
    return !t->paged && !(t->packed && t->of.lens) && a->row == b->row && a->head == b->head && a->col == b->col &&
           (a->batch == b->batch || t->packed) && !(t->p->left_pad && t->of.lens == t->p->kv_lens);
}
