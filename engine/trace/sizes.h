/* Sizes of what a problem has, beside which none overflows unnoticed. */
#ifndef TRACE_SIZES_H
#define TRACE_SIZES_H

#include "engine/trace/layout.h"

/* Sizes are built up from products and sums; one of them passing 2^63 - 1 makes the whole sum invalid. */
struct size {
    uint64_t bytes;
    int overflow;
};

static inline void size_add(struct size *size, uint64_t bytes)
{
    if (__builtin_add_overflow(size->bytes, bytes, &size->bytes) || size->bytes > INT64_MAX)
        size->overflow = 1;
}

/* Bytes of [batch][heads][rows][cols] elements. */
static inline uint64_t tensor_bytes(struct size *check, int batch, int heads, int rows, int cols, int dtype)
{
    struct size size = {dtype_bytes((enum dtype)dtype), 0};
    const int lengths[4] = {batch, heads, rows, cols};
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(size.bytes, (uint64_t)lengths[i], &size.bytes) || size.bytes > INT64_MAX)
            check->overflow = 1;
    return size.bytes;
}

/* Of a bias or mask; what is missing of [batch][heads] is 1. */
static inline uint64_t pair_bytes(struct size *check, const struct asc_problem *p, int kind, enum dtype dtype)
{
    const int batch = kind == ASC_BIAS_PER_BATCH || kind == ASC_BIAS_FULL ? p->batch : 1;
    const int heads = kind == ASC_BIAS_PER_HEAD || kind == ASC_BIAS_FULL ? p->heads : 1;
    return kind == ASC_BIAS_NONE ? 0 : tensor_bytes(check, batch, heads, p->q_len, p->kv_len, (int)dtype);
}

static inline bool dtype_is_float(int dtype)
{
    return dtype >= 0 && dtype < DTYPE_COUNT && !dtype_is_step_code(dtype) && dtype != DTYPE_I32 &&
           dtype != DTYPE_I64 && dtype != DTYPE_E8M0;
}

#endif
