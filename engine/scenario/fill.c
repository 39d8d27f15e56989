#include "engine/base/dtype.h"
#include "engine/base/philox.h"
#include "engine/base/pool.h"
#include "engine/scenario/normal.h"
#include "engine/scenario/scenario.h"
#include "engine/trace/layout.h"

#include <math.h>
#include <stdatomic.h>

/* 64 random bits of element (b, h, row, d): one call of the generator serves two neighbors. Lengths are at most 2^24,
   so the tensor has room above the batch. */
static uint64_t element_bits(uint64_t seed, int tensor, int b, int h, int row, int d)
{
    const uint32_t counter[4] = {(uint32_t)d / 2, (uint32_t)row, (uint32_t)h, (uint32_t)b | (uint32_t)tensor << 28};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    philox4x32(counter, key, out);
    return d % 2 ? (uint64_t)out[3] << 32 | out[2] : (uint64_t)out[1] << 32 | out[0];
}

/* The upper 52 bits as the middle of one of 2^52 equal parts of (0, 1): exact, symmetric, never 0 or 1. */
static double unit_interval(uint64_t bits)
{
    return (double)(2 * (bits >> 12) + 1) * 0x1p-53;
}

static double element_value(const struct fill *fill, int tensor, int head_dim, int b, int h, int row, int d)
{
    uint64_t bits;
    switch (fill->kind) {
    case FILL_NORMAL:
        return fill->sigma * normal_quantile(unit_interval(element_bits(fill->seed, tensor, b, h, row, d)));
    case FILL_UNIFORM:
        return fill->sigma * (2.0 * unit_interval(element_bits(fill->seed, tensor, b, h, row, d)) - 1.0);
    case FILL_ARANGE:
        return (double)(((int64_t)row * head_dim + d) % 251 - 125) / 128.0 * fill->sigma;
    case FILL_ONE_HOT:
        return d == row % head_dim ? fill->sigma : 0.0;
    case FILL_OUTLIERS:
        bits = element_bits(fill->seed, tensor, b, h, row, d);
        /* The low 10 bits are no part of the value: 1 in 1024, whatever the value. */
        return fill->sigma * normal_quantile(unit_interval(bits)) * ((bits & 1023) == 0 ? 30.0 : 1.0);
    case FILL_LARGE_LOGITS:
        return fill->sigma * normal_quantile(unit_interval(element_bits(fill->seed, tensor, b, h, row, d))) *
               sqrt(30.0);
    case FILL_LARGE_ROWS:
        return fill->sigma * normal_quantile(unit_interval(element_bits(fill->seed, tensor, b, h, row, d))) *
               (h == 0 && row % 256 == 255 ? 0x1p15 : 1.0);
    case FILL_ZERO_HEAD:
        return h == 0 ? 0.0
                      : fill->sigma * normal_quantile(unit_interval(element_bits(fill->seed, tensor, b, h, row, d)));
    case FILL_ZEROS:
    case FILL_COUNT:
        break;
    }
    return 0.0;
}

/* One tensor, worked off some rows at a time. */
struct job {
    const struct asc_problem *p;
    const struct fill *fill;
    int tensor;
    struct problem_tensor of;
    enum dtype dtype;
    void *out;
    atomic_llong next; /* of all rows of all heads */
    atomic_int misfits;
};

enum { ROWS_AT_ONCE = 64 }; /* tens of microseconds */

/* 1 if every value of the row fits its type. */
static int fill_row(const struct job *job, int64_t index)
{
    const enum dtype dtype = job->dtype;
    const struct problem_tensor *of = &job->of;
    const int row = (int)(index % of->rows), h = (int)(index / of->rows % of->heads);
    const int b = (int)(index / of->rows / of->heads);
    const size_t at = (size_t)problem_tensor_at(of, b, h, row);
    int fits = 1;
    for (int d = 0; d < of->cols; d++) {
        dtype_store(dtype, job->out, at + (size_t)d, element_value(job->fill, job->tensor, of->cols, b, h, row, d));
        fits &= isfinite(dtype_load(dtype, job->out, at + (size_t)d)) != 0;
    }
    return fits;
}

static int fill_rows(void *ctx, int worker)
{
    struct job *job = ctx;
    const int64_t all = (int64_t)job->p->batch * job->of.heads * job->of.rows;
    const int64_t first = atomic_fetch_add(&job->next, ROWS_AT_ONCE);
    const int64_t end = first < all - ROWS_AT_ONCE ? first + ROWS_AT_ONCE : all;
    int fits = 1;
    (void)worker;
    for (int64_t i = first; i < end; i++)
        fits &= fill_row(job, i);
    if (!fits)
        atomic_store(&job->misfits, 1);
    return first < end;
}

int fill_tensor(const struct asc_problem *p, int tensor, const struct fill *fill, struct pool *pool, void *out)
{
    struct job job = {.p = p,
                      .fill = fill,
                      .tensor = tensor,
                      .of = problem_tensor(p, (enum problem_tensor_id)tensor),
                      .dtype = fill_dtype(p, tensor),
                      .out = out};
    if (pool) {
        pool_start(pool, fill_rows, &job);
        pool_wait(pool);
    } else {
        while (fill_rows(&job, 0))
            ;
    }
    return atomic_load(&job.misfits) ? -1 : 0;
}

enum dtype fill_dtype(const struct asc_problem *p, int tensor)
{
    const enum dtype dtype = problem_tensor(p, (enum problem_tensor_id)tensor).dtype;
    return dtype_is_code(dtype) ? DTYPE_F16 : dtype;
}

size_t fill_tensor_bytes(const struct asc_problem *p, int tensor)
{
    return problem_tensor_count(p, (enum problem_tensor_id)tensor) * dtype_bytes(fill_dtype(p, tensor));
}

/* Tensors 3 to 5 of the generator: sinks, bias, and which weights dropout keeps. */
enum { TENSOR_SINK = 3, TENSOR_BIAS, TENSOR_KEEP };

void fill_sink(const struct asc_problem *p, const struct fill *fill, float *out)
{
    for (int h = 0; h < p->heads; h++)
        out[h] = (float)element_value(fill, TENSOR_SINK, p->heads, 0, 0, 0, h);
}

/* Press et al., Train Short, Test Long, 2022, for a power of two of heads. */
void fill_alibi(const struct asc_problem *p, float *out)
{
    for (int h = 0; h < p->heads; h++)
        out[h] = (float)exp2(-8.0 * (h + 1) / p->heads);
}

void fill_bias(const struct asc_problem *p, const struct fill *fill, float *out)
{
    const struct asc_strides stride = asc_bias_strides(p);
    for (int b = 0; b < (stride.batch ? p->batch : 1); b++)
        for (int h = 0; h < (stride.head ? p->heads : 1); h++)
            for (int row = 0; row < p->q_len; row++)
                for (int key = 0; key < p->kv_len; key++)
                    out[stride.batch * b + stride.head * h + stride.row * row + key] =
                        (float)element_value(fill, TENSOR_BIAS, p->kv_len, b, h, row, key);
}

void fill_keep(const struct asc_problem *p, const struct fill *fill, uint8_t *out)
{
    const struct asc_strides stride = asc_keep_strides(p);
    for (int b = 0; b < (stride.batch ? p->batch : 1); b++)
        for (int h = 0; h < (stride.head ? p->heads : 1); h++)
            for (int row = 0; row < p->q_len; row++)
                for (int key = 0; key < p->kv_len; key++)
                    out[stride.batch * b + stride.head * h + stride.row * row + key] =
                        unit_interval(element_bits(fill->seed, TENSOR_KEEP, b, h, row, key)) >= (double)p->dropout;
}
