/* Rows of recorded products (tensor_core_inputs.h) set against a model of engine/base/tensor_core: how many elements
   are equal in every bit, and how much of the model's bound the rest takes. */
#ifndef TEST_GPU_VECTOR_JUDGE_H
#define TEST_GPU_VECTOR_JUDGE_H

#include "engine/base/format.h"
#include "tests/gpu/tensor_core_inputs.h"
#include <math.h>
#include <stdlib.h>

/* Operands and accumulator of a row, whole tiles. */
struct vector_inputs {
    struct vector_product product;
    int tiles, k;   /* of the whole chain */
    uint32_t *code; /* owned, A [tiles][rows][k], B [tiles][columns][k], C [tiles][rows][columns] one after the other */
    uint32_t *a, *b, *c; /* borrowed: in code */
};

static inline int vector_inputs_new(const struct vector_row *row, int number, struct vector_inputs *in)
{
    in->product = vector_product(row->instruction);
    const int rows = in->product.rows, columns = in->product.columns, tile = rows * columns;
    in->tiles = ((int)row->count + tile - 1) / tile;
    in->k = in->product.k * (int)row->chain;
    const size_t n_a = (size_t)in->tiles * (size_t)rows * (size_t)in->k;
    const size_t n_b = (size_t)in->tiles * (size_t)columns * (size_t)in->k, n_c = (size_t)in->tiles * (size_t)tile;
    in->code = (uint32_t *)malloc((n_a + n_b + n_c) * sizeof *in->code);
    if (!in->code)
        return -1;
    in->a = in->code;
    in->b = in->a + n_a;
    in->c = in->b + n_b;
    vector_fill_operand(row, number, 0, in->a, (int)n_a);
    vector_fill_operand(row, number, 1, in->b, (int)n_b);
    vector_fill_operand(row, number, 2, in->c, (int)n_c);
    return 0;
}

/* Codes in their own width. */
static inline void vector_pack(enum dtype t, const uint32_t *codes, size_t n, void *out)
{
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = dtype_bytes(t);
        memcpy((char *)out + i * bytes, &codes[i], bytes);
    }
}

static inline float vector_value(enum dtype t, uint32_t code)
{
    switch (t) {
    case DTYPE_F16:
        return f16_to_f32((uint16_t)code);
    case DTYPE_BF16:
        return bf16_to_f32((uint16_t)code);
    case DTYPE_E4M3:
        return e4m3_to_f32((uint8_t)code);
    case DTYPE_E5M2:
        return e5m2_to_f32((uint8_t)code);
    default:
        return format_f32_of(code);
    }
}

static inline uint32_t vector_result(enum dtype sum, float x)
{
    return sum != DTYPE_F16 ? format_f32_bits(x) : isnan(x) ? 0x7FFFu : f16_from_f32(x);
}

/* What the emulator makes of one tile: out [rows][columns], instruction by instruction. */
static inline int vector_emulate(const struct vector_inputs *in, const struct vector_row *row, enum tensor_core model,
                                 int tile, uint32_t *out)
{
    enum { TILE = 64 * 16, ROWS = 64 + 16, K = 32 };
    _Alignas(32) unsigned char room[2][(size_t)ROWS * K * (sizeof(float) + sizeof(int16_t)) + 512];
    const struct vector_product p = in->product;
    const int n = p.rows * p.columns;
    const size_t bytes = dtype_bytes(p.operand), k = (size_t)in->k;
    const size_t n_a = (size_t)p.rows * k, n_b = (size_t)p.columns * k;
    float sum[TILE];
    struct tensor_core_operand a;
    struct tensor_core_operand b;
    if (n > TILE || tensor_core_room(p.rows, p.k) > sizeof room[0] || tensor_core_room(p.columns, p.k) > sizeof room[1])
        return -1;
    unsigned char *packed = (unsigned char *)malloc((n_a + n_b) * bytes);
    if (!packed)
        return -1;
    vector_pack(p.operand, in->a + (size_t)tile * n_a, n_a, packed);
    vector_pack(p.operand, in->b + (size_t)tile * n_b, n_b, packed + n_a * bytes);
    for (int i = 0; i < n; i++)
        sum[i] = vector_value(p.sum, in->c[tile * n + i]);
    for (size_t step = 0; step < row->chain; step++) {
        const unsigned char *from = packed + step * (size_t)p.k * bytes;
        tensor_core_take(&a, room[0], p.operand, from, p.rows, p.k, in->k, 1);
        tensor_core_take(&b, room[1], p.operand, from + n_a * bytes, p.columns, p.k, in->k, 1);
        tensor_core_product(model, &a, &b, sum, p.columns, sum, p.columns);
    }
    for (int i = 0; i < n; i++)
        out[i] = vector_result(p.sum, sum[i]);
    free(packed);
    return 0;
}

/* A factor's magnitude; a subnormal one counts as the smallest normal number of its format, zero as zero. */
static inline double vector_magnitude(enum dtype t, float x)
{
    const double least = t == DTYPE_BF16 ? 0x1p-126 : t == DTYPE_E4M3 ? 0x1p-6 : 0x1p-14;
    return x != 0 ? fmax(fabs((double)x), least) : 0;
}

/* |error| / bound of element (i, j) of a tile; -1 where an operand or the exact sum is NaN or infinite of the type. */
static inline double vector_ratio(const struct vector_inputs *in, const struct vector_row *row, enum tensor_core model,
                                  int tile, int element, uint32_t got_code)
{
    const struct vector_product p = in->product;
    const int n = p.rows * p.columns, i = element / p.columns, j = element % p.columns;
    const uint32_t *a = in->a + ((ptrdiff_t)tile * p.rows + i) * in->k;
    const uint32_t *b = in->b + ((ptrdiff_t)tile * p.columns + j) * in->k;
    const double c = (double)vector_value(p.sum, in->c[tile * n + element]);
    double exact = c;
    double size = fabs(c) + 0x1p-126; /* a running sum below the normal numbers of f32 is aligned as one of them */
    for (int k = 0; k < in->k; k++) {
        const float x = vector_value(p.operand, a[k]), y = vector_value(p.operand, b[k]);
        exact += (double)x * (double)y;
        size += vector_magnitude(p.operand, x) * vector_magnitude(p.operand, y);
    }
    /* Every instruction adds its own chunks. What is below the accumulator's normal numbers loses half of its last
       place at most, each time. */
    const double least = p.sum == DTYPE_F16 ? 0x1p-25 : 0x1p-149;
    const double bound = (double)row->chain * (tensor_core_bound(model, p.k) * size + 4 * least);
    const double most = p.sum == DTYPE_F16 ? 65504 : 0x1.fffffep127, got = (double)vector_value(p.sum, got_code);
    if (!isfinite(exact) || size + bound >= most)
        return -1;
    const double error = fabs(got - exact);
    return error <= bound ? error / fmax(bound, 0x1p-1000) : isnan(error) ? INFINITY : error / bound;
}

struct vector_judgement {
    long n, equal;
    double worst;      /* largest error / bound, 0 without a model */
    int first_unequal; /* or -1 */
};

/* Returns 0, or -1 without memory. */
static inline int vector_judge(const struct vector_row *row, int number, enum tensor_core model, const uint32_t *out,
                               struct vector_judgement *j)
{
    struct vector_inputs in;
    uint32_t want[64 * 16];
    int status = vector_inputs_new(row, number, &in);
    const int n = in.product.rows * in.product.columns;
    *j = (struct vector_judgement){.first_unequal = -1};
    for (int tile = 0; status == 0 && tile < in.tiles; tile++) {
        status = vector_emulate(&in, row, model, tile, want);
        for (int i = 0; status == 0 && i < n && tile * n + i < (int)row->count; i++) {
            const int at = tile * n + i;
            j->n++;
            if (out[at] == want[i])
                j->equal++;
            else if (j->first_unequal < 0)
                j->first_unequal = at;
            j->worst = fmax(j->worst, vector_ratio(&in, row, model, tile, i, out[at]));
        }
    }
    free(in.code);
    return status;
}

#endif
