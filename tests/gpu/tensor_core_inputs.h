/* What a recorded tensor-core vector was computed from, and the file it stands in. Only outputs are stored: the inputs
   follow from these integer functions, on the GPU's host (numerics.c) and in test_tensor_core.c alike.

   The file: VECTOR_MAGIC, the architecture (90 for sm_90), the number of rows, then for each row a struct vector_row
   and `count` words of output: the first of them, row by row of D, tile by tile. Little endian, all words 32 bits.
   Outputs are f32 bits, or zero-extended f16 codes where the accumulator is f16. A file of VECTOR_MAGIC_SM90 has no
   word for the architecture. Row i was filled by vector_fill_operand(row, i, ...). */
#ifndef TEST_GPU_TENSOR_CORE_INPUTS_H
#define TEST_GPU_TENSOR_CORE_INPUTS_H

#include "engine/base/tensor_core.h"
#include <stdint.h>
#include <string.h>

#define VECTOR_MAGIC "ASCTCV02"
#define VECTOR_MAGIC_SM90 "ASCTCV01"

enum vector_instruction {
#define VECTOR_PRODUCT(id, number, text, operand, sum, rows, columns, k, first, last, ampere, ada, hopper, older,      \
                       claim)                                                                                          \
    id = (number),
#include "tests/gpu/vector_instructions.def"
#undef VECTOR_PRODUCT
    VECTOR_EX2 = 5,  /* ex2.approx.ftz.f32 */
    VECTOR_EXPF = 6, /* __expf */
    VECTOR_INSTRUCTIONS = 21
};

enum vector_claim { VECTOR_OPEN, VECTOR_BOUND, VECTOR_EQUAL };

#define VECTOR_NO_MODEL (-1)

struct vector_product {
    const char *text; /* NULL: no product */
    enum dtype operand, sum;
    int rows, columns, k, first_sm, last_sm;
    int model[3];                   /* sm_80, sm_89, sm_90: enum tensor_core or VECTOR_NO_MODEL */
    enum vector_claim older, claim; /* on sm_80 to 89, on sm_90 */
};

static inline struct vector_product vector_product(uint32_t instruction)
{
    switch (instruction) {
#define VECTOR_PRODUCT(id, number, text, operand, sum, rows, columns, k, first, last, ampere, ada, hopper, older,      \
                       claim)                                                                                          \
    case number: {                                                                                                     \
        const struct vector_product p = {text,  operand, sum, rows, columns, k, first, last, {ampere, ada, hopper},    \
                                         older, claim};                                                                \
        return p;                                                                                                      \
    }
#include "tests/gpu/vector_instructions.def"
#undef VECTOR_PRODUCT
    default: {
        const struct vector_product none = {NULL, DTYPE_F32, DTYPE_F32,    0,           0,          0,
                                            0,    0,         {-1, -1, -1}, VECTOR_OPEN, VECTOR_OPEN};
        return none;
    }
    }
}

/* enum tensor_core that is to compute an instruction on an architecture, or VECTOR_NO_MODEL. Of what comes after sm_90
   nothing has been measured: no model. */
static inline int vector_model(uint32_t instruction, int sm)
{
    const struct vector_product p = vector_product(instruction);
    if (!p.text || sm < p.first_sm || sm > p.last_sm || sm > 90)
        return VECTOR_NO_MODEL;
    return p.model[sm < 89 ? 0 : sm < 90 ? 1 : 2];
}

enum vector_fill {
    VECTOR_NORMAL,   /* both signs, exponents as those of uniform values below 4 */
    VECTOR_POSITIVE, /* 0.5 to 4 */
    VECTOR_WIDE,     /* exponents over 31 binades and more, subnormals */
    VECTOR_ZEROS,    /* +-0, some +-1, some as VECTOR_WIDE: sums cancel, zeros meet large factors */
    VECTOR_TINY,     /* sums about the smallest normal f32 (bf16), or only an accumulator of that size (f16, e4m3) */
    VECTOR_HUGE,     /* sums about the largest f32 (bf16), or only an accumulator of that size */
    VECTOR_SPECIAL,  /* some NaN, infinities and largest numbers among normal values */
    VECTOR_INTEGERS  /* -3 to 3: exact in any arithmetic, so what differs lies elsewhere in a tile */
};

struct vector_row {
    uint32_t instruction, fill, chain, accumulator, count; /* accumulator 0: starts at +0 */
};

/* The same for a row, and what is claimed of it: integers are exact, so any model gives every bit. */
static inline int vector_row_model(const struct vector_row *row, int sm, enum vector_claim *claim)
{
    const struct vector_product p = vector_product(row->instruction);
    *claim = row->fill == VECTOR_INTEGERS ? VECTOR_EQUAL : sm < 90 ? p.older : p.claim;
    if (row->fill == VECTOR_INTEGERS)
        return p.sum == DTYPE_F16 ? TENSOR_CORE_H100_F16 : TENSOR_CORE_H100;
    return vector_model(row->instruction, sm);
}

/* A format: stored significand bits, exponent bias, exponent field of NaN and infinity (e4m3 has one code only), and
   how many exponent fields VECTOR_WIDE takes from 0 on, 0: those about 1. */
struct vector_format {
    int mantissa, bias, special, wide;
};

static inline struct vector_format vector_format(uint32_t instruction, int accumulator)
{
    const struct vector_format f32 = {23, 127, 255, 0}, f16 = {10, 15, 31, 31}, bf16 = {7, 127, 255, 0};
    const struct vector_format e4m3 = {3, 7, 16, 16}, e5m2 = {2, 15, 31, 31};
    const struct vector_format f16_sum = {10, 15, 31, 20}; /* sums below 65504, mostly */
    const struct vector_product p = vector_product(instruction);
    if (p.sum == DTYPE_F16 && p.operand == DTYPE_F16)
        return f16_sum;
    if (accumulator)
        return p.sum == DTYPE_F16 ? f16_sum : f32;
    return p.operand == DTYPE_BF16 ? bf16 : p.operand == DTYPE_E4M3 ? e4m3 : p.operand == DTYPE_E5M2 ? e5m2 : f16;
}

/* splitmix64 */
static inline uint64_t vector_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* One code of a fill. `accumulator`: this is an element of C. */
static inline uint32_t vector_code(struct vector_format f, uint32_t fill, int accumulator, uint64_t *state)
{
    const uint64_t random = vector_random(state);
    const uint32_t pick = (uint32_t)(random >> 32 & 0xFFFF);
    const uint32_t sign_bit = f.special == 16 ? 0x80u : (uint32_t)(f.special + 1) << f.mantissa;
    const int top = f.special == 16 ? 15 : f.special - 1;
    uint32_t mantissa = (uint32_t)random & ((1u << f.mantissa) - 1);
    uint32_t sign = random >> 63 ? sign_bit : 0;
    const int wide = (int)(pick >> 3) % (f.wide ? f.wide : 41) + (f.wide ? 0 : f.bias - 20);
    int field = f.bias + 1 - __builtin_ctz(pick | 0x100u);
    switch (fill) {
    case VECTOR_POSITIVE:
        field = f.bias - 1 + (int)(pick % 3);
        sign = 0;
        break;
    case VECTOR_ZEROS:
        if (pick % 8 > 1) {
            field = 0;
            mantissa = 0;
            break;
        }
        if (pick % 8 == 1) {
            field = f.bias;
            mantissa = 0;
            break;
        }
        field = wide;
        break;
    case VECTOR_WIDE:
        field = wide;
        if (!f.wide && (random >> 48 & 15) == 0)
            field = 0;
        break;
    case VECTOR_TINY:
        field = accumulator ? (int)(pick % 8) : f.bias == 127 ? 127 - 70 + (int)(pick % 12) : 0;
        if (f.bias == 127 ? accumulator && pick >> 13 == 0 : pick >> 13 != 0)
            mantissa = 0;
        break;
    case VECTOR_HUGE:
        field = accumulator ? top - (int)(pick % 5) : f.bias == 127 ? 127 + 60 + (int)(pick % 5) : top;
        break;
    case VECTOR_SPECIAL:
        if (pick % (accumulator ? 8u : 64u) == 0) {
            const uint32_t kind = pick >> 8 & 3;
            field = f.special;
            if (kind < 2)
                mantissa = 0;
            else if (kind == 3) {
                field = top;
                mantissa = (1u << f.mantissa) - 1;
            }
            if (f.special == 16) {
                field = 15;
                mantissa = kind == 3 ? 6 : 7;
            }
        }
        break;
    case VECTOR_INTEGERS:
        field = pick % 4 == 0 ? 0 : f.bias + (pick % 4 > 1);
        mantissa = pick % 4 == 3 ? 1u << (f.mantissa - 1) : 0;
        sign = pick % 4 ? sign : 0;
        break;
    default:
        break;
    }
    if (f.special == 16 && field == 15 && mantissa == 7 && fill != VECTOR_SPECIAL)
        mantissa = 6; /* 0x7F is NaN */
    return sign | (uint32_t)(field < 0 ? 0 : field) << f.mantissa | mantissa;
}

/* Fills a [n] or b [n] (codes) or C (accumulator codes) of row number `row`; `operand` 0 A, 1 B, 2 C. */
static inline void vector_fill_operand(const struct vector_row *r, int row, int operand, uint32_t *out, int n)
{
    const struct vector_format f = vector_format(r->instruction, operand == 2);
    uint64_t state = (uint64_t)row * 4 + (uint64_t)operand;
    for (int i = 0; i < n; i++)
        out[i] = operand == 2 && !r->accumulator ? 0 : vector_code(f, r->fill, operand == 2, &state);
}

/* Argument i of the exponentials: both signs of zero, the ends of the range, then evenly spread down to -2 or -88. */
static inline float vector_argument(int row, int i)
{
    static const uint32_t first[] = {0x00000000, 0x80000000, 0xFF800000, 0x7F800000, 0x7FC00000, 0xC2FC0000, /* -126 */
                                     0xC2FD0000, 0xC2FE0000, 0xC3160000, 0x3F800000, 0xBF800000, 0x80000001};
    uint64_t state = (uint64_t)row * 4 + (uint64_t)i * 0x10000;
    if (i < (int)(sizeof first / sizeof first[0])) {
        float x;
        memcpy(&x, &first[i], sizeof x);
        return x;
    }
    return -(float)(int32_t)(vector_random(&state) >> 40) * (i & 1 ? 88 * 0x1p-24f : 2 * 0x1p-24f);
}

/* A file in memory. Returns its first row, or NULL where it is none; *sm: its architecture, *n_rows: how many. */
static inline const uint32_t *vector_file(const uint32_t *words, size_t n_words, int *sm, int *n_rows)
{
    const int old = n_words > 2 && memcmp(words, VECTOR_MAGIC_SM90, 8) == 0;
    if (n_words < 4 || (!old && memcmp(words, VECTOR_MAGIC, 8) != 0))
        return NULL;
    *sm = old ? 90 : (int)words[2];
    *n_rows = (int)words[old ? 2 : 3];
    return words + (old ? 3 : 4);
}

/* The row at `at`, whose outputs are *out; returns what follows it, or NULL where the file ends before. */
static inline const uint32_t *vector_file_row(const uint32_t *at, const uint32_t *end, struct vector_row *row,
                                              const uint32_t **out)
{
    const size_t head = sizeof *row / sizeof *at;
    if ((size_t)(end - at) < head)
        return NULL;
    memcpy(row, at, sizeof *row);
    *out = at + head;
    return (size_t)(end - *out) < row->count ? NULL : *out + row->count;
}

#endif
