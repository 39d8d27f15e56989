/* What a tensor core gives, bit for bit: base/tensor_core.c for elements of S or U, a column of them at a time. Where
   that takes its careful path, nothing is said here. */
#ifndef JUDGE_CORE_CUH
#define JUDGE_CORE_CUH

#include "engine/judge/work.h"

enum { CORE_ZERO = -8192, CORE_LOW = -100, CORE_HIGH = 120 }; /* of exponents, as there */

static __device__ int core_exponent(float x, int least)
{
    const uint32_t bits = format_f32_bits(x) & 0x7FFFFFFFu;
    const int exponent = (int)(bits >> 23) - 127;
    return bits == 0 ? CORE_ZERO : exponent < least ? least : exponent;
}

/* The sum of a chunk, as f32 cut toward zero. Of two halves, each of which fits. */
static __device__ float core_cut(int32_t even, int32_t odd, float down, bool *open)
{
    const int64_t sum = (int64_t)even + odd, magnitude = sum < 0 ? -sum : sum;
    *open |= magnitude >= INT64_C(0x7FFFFF80);
    const int32_t whole = (int32_t)magnitude;
    const float nearest = (float)whole;
    const bool above = nearest < 0x1p31f && (int32_t)nearest > whole;
    const float cut = format_f32_of(format_f32_bits(nearest) - (above ? 1 : 0));
    return (sum < 0 ? -cut : cut) * down;
}

/* Rows of one operand: values, what core_exponent() says of each, and how far apart the rows that are asked for lie. */
struct core_rows {
    const float *value;
    const int16_t *exponent;
    int step;
};

/* acc[i] and the products of k elements of row i and of b, these b_step apart. *open: not for these formulas to say.
   Called: it would be most of what there is to compile. */
template <int EACH>
static __device__ __noinline__ void core_sums(const struct judge_way &way, int least, const struct core_rows &rows,
                                              const float *b, int b_step, int k, float *acc, bool *open)
{
    float sums[EACH];
    bool beyond = false;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        sums[i] = acc[i];
    for (int first = 0; first < k; first += way.products) {
        const int end = k - first < way.products ? k : first + way.products;
        int largest[EACH];
        if (way.products == 1) {
#pragma unroll
            for (int i = 0; i < EACH; i++)
                sums[i] = fmaf(rows.value[i * rows.step + first], b[first * b_step], sums[i]);
            continue;
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t bits = format_f32_bits(sums[i]);
            largest[i] = (bits & 0x7FFFFFFFu) == 0 ? CORE_ZERO : (int)(bits >> 23 & 0xFF) - 127;
        }
#pragma unroll 4
        for (int t = first; t < end; t++) {
            const int exponent = core_exponent(b[t * b_step], least);
#pragma unroll
            for (int i = 0; i < EACH; i++)
                largest[i] = max(largest[i], exponent + rows.exponent[i * rows.step + t]);
        }
        float up[EACH];
        int32_t even[EACH], odd[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            beyond |= largest[i] >= CORE_ZERO / 2 && (largest[i] > CORE_HIGH || largest[i] < CORE_LOW);
            largest[i] = largest[i] > CORE_HIGH || largest[i] < CORE_LOW ? 0 : largest[i]; /* zeros: any will do */
            up[i] = format_f32_of((uint32_t)(127 + way.fraction - largest[i]) << 23);
            even[i] = (int32_t)(sums[i] * up[i]);
            odd[i] = 0;
        }
#pragma unroll 2
        for (int t = first; t < end; t += 2) {
            const float x = b[t * b_step], y = t + 1 < end ? b[(t + 1) * b_step] : 0;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                even[i] += (int32_t)(rows.value[i * rows.step + t] * x * up[i]);
                odd[i] += (int32_t)(rows.value[i * rows.step + (t + 1 < end ? t + 1 : t)] * y * up[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < EACH; i++)
            sums[i] =
                core_cut(even[i], odd[i], format_f32_of((uint32_t)(127 - way.fraction + largest[i]) << 23), &beyond);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        acc[i] = sums[i];
    *open |= beyond;
}

#endif
