#include "engine/base/dtype.h"
#include "engine/base/philox.h"
#include "engine/base/pool.h"
#include "engine/scenario/normal.h"
#include "engine/scenario/scenario.h"
#include "engine/trace/layout.h"

#include <math.h>
#include <stdatomic.h>

/* One call of the generator serves elements (b, h, row, d) and d + 1, d even. Lengths are at most 2^24, so the tensor
   has room above the batch. */
static void element_counter(int tensor, int b, int h, int row, int d, uint32_t counter[4])
{
    counter[0] = (uint32_t)d / 2;
    counter[1] = (uint32_t)row;
    counter[2] = (uint32_t)h;
    counter[3] = (uint32_t)b | (uint32_t)tensor << 28;
}

/* 64 random bits of an element. */
static uint64_t element_bits(uint64_t seed, int tensor, int b, int h, int row, int d)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t counter[4], out[4];
    element_counter(tensor, b, h, row, d, counter);
    philox4x32(counter, key, out);
    return d % 2 ? (uint64_t)out[3] << 32 | out[2] : (uint64_t)out[1] << 32 | out[0];
}

/* The upper 52 bits as the middle of one of 2^52 equal parts of (0, 1): exact, symmetric, never 0 or 1. */
static double unit_interval(uint64_t bits)
{
    return (double)(2 * (bits >> 12) + 1) * 0x1p-53;
}

static bool is_random(enum fill_kind kind)
{
    return kind != FILL_ARANGE && kind != FILL_ONE_HOT && kind != FILL_ZEROS;
}

/* bits: the element's; normal: of it. Neither counts where the fill is not random. */
static double value_of(const struct fill *fill, int head_dim, int h, int row, int d, uint64_t bits, double normal)
{
    switch (fill->kind) {
    case FILL_NORMAL:
        return fill->sigma * normal;
    case FILL_UNIFORM:
        return fill->sigma * (2.0 * unit_interval(bits) - 1.0);
    case FILL_ARANGE:
        return (double)(((int64_t)row * head_dim + d) % 251 - 125) / 128.0 * fill->sigma;
    case FILL_ONE_HOT:
        return d == row % head_dim ? fill->sigma : 0.0;
    case FILL_OUTLIERS:
        /* The low 10 bits are no part of the value: 1 in 1024, whatever the value. */
        return fill->sigma * normal * ((bits & 1023) == 0 ? 30.0 : 1.0);
    case FILL_LARGE_LOGITS:
        return fill->sigma * normal * sqrt(30.0);
    case FILL_LARGE_ROWS:
        return fill->sigma * normal * (h == 0 && row % 256 == 255 ? 0x1p15 : 1.0);
    case FILL_ZERO_HEAD:
        return h == 0 ? 0.0 : fill->sigma * normal;
    case FILL_ZEROS:
    case FILL_COUNT:
        break;
    }
    return 0.0;
}

static double element_value(const struct fill *fill, int tensor, int head_dim, int b, int h, int row, int d)
{
    const uint64_t bits = element_bits(fill->seed, tensor, b, h, row, d);
    return value_of(fill, head_dim, h, row, d, bits, normal_quantile(unit_interval(bits)));
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

enum { ROWS_AT_ONCE = 64 /* tens of microseconds */, COLS_AT_ONCE = 64 };

/* Bits, and normal numbers, of elements first .. first + n - 1, first even. */
static void row_bits(const struct job *job, int b, int h, int row, int first, int n, uint64_t *bits, double *normal)
{
    double p[COLS_AT_ONCE];
    const uint64_t seed = job->fill->seed;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int d = 0; d < n; d += 2) {
        uint32_t counter[4], out[4];
        element_counter(job->tensor, b, h, row, first + d, counter);
        philox4x32(counter, key, out);
        bits[d] = (uint64_t)out[1] << 32 | out[0];
        bits[d + 1] = (uint64_t)out[3] << 32 | out[2];
    }
    for (int d = 0; d < n; d++)
        p[d] = unit_interval(bits[d]);
    normal_quantiles(p, n, normal);
}

/* 1 if every value of the row fits its type. */
static int fill_row(const struct job *job, int64_t index)
{
    const enum dtype dtype = job->dtype;
    const struct problem_tensor *of = &job->of;
    const int row = (int)(index % of->rows), h = (int)(index / of->rows % of->heads);
    const int b = (int)(index / of->rows / of->heads);
    const size_t at = (size_t)problem_tensor_at(of, b, h, row);
    uint64_t bits[COLS_AT_ONCE] = {0};
    double normal[COLS_AT_ONCE] = {0};
    int fits = 1;
    for (int first = 0; first < of->cols; first += COLS_AT_ONCE) {
        const int n = of->cols - first < COLS_AT_ONCE ? of->cols - first : COLS_AT_ONCE;
        if (is_random(job->fill->kind))
            row_bits(job, b, h, row, first, n, bits, normal);
        for (int i = 0; i < n; i++) {
            const size_t to = at + (size_t)(first + i);
            dtype_store(dtype, job->out, to, value_of(job->fill, of->cols, h, row, first + i, bits[i], normal[i]));
            fits &= isfinite(dtype_load(dtype, job->out, to)) != 0;
        }
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
