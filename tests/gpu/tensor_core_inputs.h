/* What a recorded tensor-core vector was computed from, and the file it stands in. Only outputs are stored: the inputs
   follow from these integer functions, on the GPU's host (tensor_core_vectors.cu) and in test_tensor_core.c alike.

   The file: VECTOR_MAGIC, the number of rows, then for each row a struct vector_row and `count` words of output. Little
   endian, all words 32 bits. Outputs are f32 bits, or zero-extended f16 codes where the accumulator is f16. */
#ifndef TEST_GPU_TENSOR_CORE_INPUTS_H
#define TEST_GPU_TENSOR_CORE_INPUTS_H

#include <stdint.h>
#include <string.h>

#define VECTOR_MAGIC "ASCTCV01"

enum vector_instruction {
    VECTOR_MMA_F16,      /* mma.sync.m16n8k16 f32.f16.f16.f32 */
    VECTOR_MMA_BF16,     /* mma.sync.m16n8k16 f32.bf16.bf16.f32 */
    VECTOR_MMA_E4M3,     /* mma.sync.m16n8k32 f32.e4m3.e4m3.f32 */
    VECTOR_WMMA_F16,     /* WMMA 16x16x16, f16 operands, f32 accumulator */
    VECTOR_WMMA_F16_F16, /* the same with f16 accumulator */
    VECTOR_EX2,          /* ex2.approx.ftz.f32 */
    VECTOR_EXPF          /* __expf */
};

enum vector_fill {
    VECTOR_NORMAL,   /* both signs, exponents as those of uniform values below 4 */
    VECTOR_POSITIVE, /* 0.5 to 4 */
    VECTOR_WIDE,     /* exponents over 31 binades and more, subnormals */
    VECTOR_ZEROS,    /* +-0, some +-1, some as VECTOR_WIDE: sums cancel, zeros meet large factors */
    VECTOR_TINY,     /* sums about the smallest normal f32 (bf16), or only an accumulator of that size (f16, e4m3) */
    VECTOR_HUGE,     /* sums about the largest f32 (bf16), or only an accumulator of that size */
    VECTOR_SPECIAL   /* some NaN, infinities and largest numbers among normal values */
};

struct vector_row {
    uint32_t instruction, fill, chain, accumulator, count; /* accumulator 0: starts at +0 */
};

/* A format: stored significand bits, exponent bias, exponent field of NaN and infinity (e4m3 has one code only), and
   how many exponent fields VECTOR_WIDE takes from 0 on, 0: those about 1. */
struct vector_format {
    int mantissa, bias, special, wide;
};

static inline struct vector_format vector_format(uint32_t instruction, int accumulator)
{
    const struct vector_format f32 = {23, 127, 255, 0}, f16 = {10, 15, 31, 31}, bf16 = {7, 127, 255, 0};
    const struct vector_format e4m3 = {3, 7, 16, 16}, f16_sum = {10, 15, 31, 20}; /* sums below 65504, mostly */
    if (instruction == VECTOR_WMMA_F16_F16)
        return f16_sum;
    if (accumulator)
        return f32;
    return instruction == VECTOR_MMA_BF16 ? bf16 : instruction == VECTOR_MMA_E4M3 ? e4m3 : f16;
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
    default:
        break;
    }
    if (f.special == 16 && field == 15 && mantissa == 7 && fill != VECTOR_SPECIAL)
        mantissa = 6; /* 0x7F is NaN */
    return sign | (uint32_t)(field < 0 ? 0 : field) << f.mantissa | mantissa;
}

/* K of one instruction, and the shape D = A B + C of one warp: A [16][K * chain], B [columns][K * chain]. */
static inline int vector_k(uint32_t instruction)
{
    return instruction == VECTOR_MMA_E4M3 ? 32 : 16;
}

static inline int vector_columns(uint32_t instruction)
{
    return instruction == VECTOR_WMMA_F16 || instruction == VECTOR_WMMA_F16_F16 ? 16 : 8;
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

/* The rows of the file, in order; returns how many (at most 128). */
static inline int vector_rows(struct vector_row rows[128])
{
    /* chain, accumulator */
    static const uint32_t plain[][2] = {{1, 0}, {1, 1}, {2, 1}, {4, 0}, {4, 1}};
    int n = 0;
    for (uint32_t instruction = VECTOR_MMA_F16; instruction <= VECTOR_WMMA_F16_F16; instruction++) {
        for (uint32_t fill = VECTOR_NORMAL; fill <= VECTOR_WIDE; fill++)
            for (int i = 0; i < 5; i++)
                rows[n++] = (struct vector_row){instruction, fill, plain[i][0], plain[i][1], 1024};
        for (uint32_t fill = VECTOR_ZEROS; fill <= VECTOR_SPECIAL; fill++)
            rows[n++] = (struct vector_row){instruction, fill, 1, 1, 512};
        rows[n++] = (struct vector_row){instruction, VECTOR_SPECIAL, 2, 0, 512};
    }
    rows[n++] = (struct vector_row){VECTOR_EX2, 0, 0, 0, 2000};
    rows[n++] = (struct vector_row){VECTOR_EXPF, 0, 0, 0, 2000};
    return n;
}

#endif
