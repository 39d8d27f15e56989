#include "engine/run/filled.h"

#include "engine/trace/layout.h"
#include <stdlib.h>

/* All that fill_tensor() reads. */
static struct filled_tensor describe(const struct asc_problem *p, int tensor, const struct fill *fill)
{
    const struct problem_tensor of = problem_tensor(p, (enum problem_tensor_id)tensor);
    return (struct filled_tensor){.bytes = fill_tensor_bytes(p, tensor),
                                  .stride = of.stride,
                                  .batch = p->batch,
                                  .heads = of.heads,
                                  .rows = of.rows,
                                  .cols = of.cols,
                                  .dtype = fill_dtype(p, tensor),
                                  .fill = *fill};
}

static bool alike(const struct filled_tensor *a, const struct filled_tensor *b)
{
    return a->bytes == b->bytes && a->stride.batch == b->stride.batch && a->stride.head == b->stride.head &&
           a->stride.row == b->stride.row && a->batch == b->batch && a->heads == b->heads && a->rows == b->rows &&
           a->cols == b->cols && a->dtype == b->dtype && a->fill.kind == b->fill.kind &&
           a->fill.sigma == b->fill.sigma && a->fill.seed == b->fill.seed;
}

static void drop(struct filled_tensor *of)
{
    free(of->values);
    *of = (struct filled_tensor){0};
}

void *filled_take(struct filled *f, const struct asc_problem *p, int tensor, const struct fill *fill)
{
    const struct filled_tensor wanted = describe(p, tensor, fill);
    void *values = alike(&f->of[tensor], &wanted) ? f->of[tensor].values : NULL;
    if (values)
        f->of[tensor].values = NULL;
    drop(&f->of[tensor]);
    return values;
}

void filled_keep(struct filled *f, const struct asc_problem *p, int tensor, const struct fill *fill, void *values)
{
    struct filled_tensor now = describe(p, tensor, fill);
    size_t all = now.bytes;
    drop(&f->of[tensor]);
    for (int i = 0; i < 3; i++)
        all += f->of[i].bytes;
    now.values = values;
    if (all > FILLED_BYTES)
        free(values);
    else
        f->of[tensor] = now;
}

void filled_free(struct filled *f)
{
    for (int i = 0; i < 3; i++)
        drop(&f->of[i]);
}
