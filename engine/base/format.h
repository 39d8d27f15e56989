/* Narrow floating-point formats: f16 (IEEE 754 binary16), bf16 (the upper half of binary32), and the two of the OCP
   8-bit Floating Point Specification (OFP8, revision 1.0): e4m3 (no infinity, one NaN code per sign, largest 448) and
   e5m2 (infinity and NaN as in IEEE 754, largest 57344), and two of the OCP Microscaling Formats Specification (MX,
   version 1.0): e2m1, four bits, and e8m0, a scale. Valid as C and C++; codes are uint16_t and uint8_t.

   All rounding is to nearest, ties to even, from the source in one step. The work is done on integers: rounding mode,
   flush-to-zero and floating-point traps of the caller neither change a result nor are set off by one.

   A NaN that is narrowed becomes the one with all bits but the sign's set, as on a GPU (PTX ISA, cvt); one that is
   widened keeps sign and payload and gets the quiet bit, but bf16 to f32 only appends zeros. */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include <stdint.h>
#include <string.h>

/* What a GPU's code calls too. */
#ifdef __CUDACC__
#define HOST_AND_DEVICE __host__ __device__
#else
#define HOST_AND_DEVICE
#endif

#define E4M3_MAX 448.0f
#define E5M2_MAX 57344.0f
#define F16_MAX 65504.0f
#define E2M1_MAX 6.0f

HOST_AND_DEVICE static inline uint32_t format_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

HOST_AND_DEVICE static inline float format_f32_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

HOST_AND_DEVICE static inline uint64_t format_f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

HOST_AND_DEVICE static inline double format_f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A format: `mant` stored significand bits, exponent bias `bias`. The magnitude code is exponent field << mant |
   mantissa, the value (1 + mantissa 2^-mant) 2^(field - bias), or mantissa 2^(1 - bias - mant) where the field is 0. */

/* Magnitude code (finite) of one format rounded to a narrower one. Exponents are not limited upwards: the caller
   compares the result with its largest code, which decides overflow as IEEE 754, 7.4 does (by the rounded value). */
static inline uint64_t format_narrow(uint64_t code, int mant, int bias, int to_mant, int to_bias)
{
    const int field = (int)(code >> mant);
    uint64_t significand = code & ((UINT64_C(1) << mant) - 1);
    int exponent = 1 - bias;
    if (field) {
        significand |= UINT64_C(1) << mant;
        exponent = field - bias;
    }
    int to_field = exponent + to_bias; /* of a normal result */
    int shift = mant - to_mant;
    if (to_field < 1) { /* subnormal: its last bit weighs 2^(1 - to_bias - to_mant) */
        shift += 1 - to_field;
        to_field = 1;
    }
    if (shift > 62) /* below half of the smallest subnormal either way: significands have at most 53 bits */
        shift = 62;
    const uint64_t half = UINT64_C(1) << (shift - 1);
    const uint64_t odd = significand >> shift & 1;
    /* The leading bit, where there is one, adds the 1 that to_field - 1 leaves out; a carry moves on by itself. */
    return ((uint64_t)(to_field - 1) << to_mant) + ((significand + half - 1 + odd) >> shift);
}

/* Magnitude code (finite) of one format in a wider one that holds it as zero or a normal number. Exact. */
static inline uint64_t format_widen(uint32_t code, int mant, int bias, int to_mant, int to_bias)
{
    int field = (int)(code >> mant);
    uint32_t mantissa = code & ((1u << mant) - 1);
    if (!field) {
        if (!mantissa)
            return 0;
        const int up = mant - (31 - __builtin_clz(mantissa)); /* until the leading bit is the implicit one */
        mantissa = mantissa << up & ((1u << mant) - 1);
        field = 1 - up;
    }
    return (uint64_t)(field - bias + to_bias) << to_mant | (uint64_t)mantissa << (to_mant - mant);
}

/* f16: 5 exponent bits, 10 significand bits, bias 15. */

static inline float f16_to_f32_soft(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, magnitude = code & 0x7FFFu;
    if (magnitude > 0x7C00u)
        return format_f32_of(sign | 0x7FC00000u | magnitude << 13);
    if (magnitude == 0x7C00u)
        return format_f32_of(sign | 0x7F800000u);
    return format_f32_of(sign | (uint32_t)format_widen(magnitude, 10, 15, 23, 127));
}

static inline uint16_t f16_from_f32_soft(float x)
{
    const uint32_t bits = format_f32_bits(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u)
        return 0x7FFFu;
    const uint64_t code = format_narrow(magnitude, 23, 127, 10, 15);
    return (uint16_t)(sign | (code < 0x7C00u ? code : 0x7C00u));
}

/* By the builtins of gcc and clang, not by immintrin.h: its 60,000 lines would be a third of the time that a kernel
   takes to compile. */
#ifdef __F16C__
typedef float format_f32x4 __attribute__((vector_size(16)));
typedef short format_i16x8 __attribute__((vector_size(16)));
#endif

static inline float f16_to_f32(uint16_t code)
{
#ifdef __F16C__
    const format_i16x8 codes = {(short)code, 0, 0, 0, 0, 0, 0, 0};
    return __builtin_ia32_vcvtph2ps(codes)[0];
#else
    return f16_to_f32_soft(code);
#endif
}

static inline uint16_t f16_from_f32(float x)
{
#ifdef __F16C__
    if ((format_f32_bits(x) & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FFFu;
    const format_f32x4 values = {x, 0, 0, 0};
    return (uint16_t)__builtin_ia32_vcvtps2ph(values, 0 /* to nearest, ties to even */)[0];
#else
    return f16_from_f32_soft(x);
#endif
}

static inline double f16_to_f64(uint16_t code)
{
    const uint64_t sign = (uint64_t)(code & 0x8000u) << 48;
    const uint32_t magnitude = code & 0x7FFFu;
    if (magnitude > 0x7C00u)
        return format_f64_of(sign | UINT64_C(0x7FF8000000000000) | (uint64_t)magnitude << 42);
    if (magnitude == 0x7C00u)
        return format_f64_of(sign | UINT64_C(0x7FF0000000000000));
    return format_f64_of(sign | format_widen(magnitude, 10, 15, 52, 1023));
}

static inline uint16_t f16_from_f64(double x)
{
    const uint64_t bits = format_f64_bits(x), magnitude = bits & INT64_MAX;
    const uint32_t sign = (uint32_t)(bits >> 48) & 0x8000u;
    if (magnitude > UINT64_C(0x7FF0000000000000))
        return 0x7FFFu;
    const uint64_t code = format_narrow(magnitude, 52, 1023, 10, 15);
    return (uint16_t)(sign | (code < 0x7C00u ? code : 0x7C00u));
}

/* bf16: 8 exponent bits, 7 significand bits, bias 127. */

static inline float bf16_to_f32(uint16_t code)
{
    return format_f32_of((uint32_t)code << 16);
}

static inline uint16_t bf16_from_f32(float x)
{
    const uint32_t bits = format_f32_bits(x);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FFFu;
    /* The same exponents, so format_narrow comes down to this; a carry out of the largest number is infinity. */
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

static inline double bf16_to_f64(uint16_t code)
{
    const uint64_t sign = (uint64_t)(code & 0x8000u) << 48;
    const uint32_t magnitude = code & 0x7FFFu;
    if (magnitude > 0x7F80u)
        return format_f64_of(sign | UINT64_C(0x7FF8000000000000) | (uint64_t)magnitude << 45);
    if (magnitude == 0x7F80u)
        return format_f64_of(sign | UINT64_C(0x7FF0000000000000));
    return format_f64_of(sign | format_widen(magnitude, 7, 127, 52, 1023));
}

static inline uint16_t bf16_from_f64(double x)
{
    const uint64_t bits = format_f64_bits(x), magnitude = bits & INT64_MAX;
    const uint32_t sign = (uint32_t)(bits >> 48) & 0x8000u;
    if (magnitude > UINT64_C(0x7FF0000000000000))
        return 0x7FFFu;
    const uint64_t code = format_narrow(magnitude, 52, 1023, 7, 127);
    return (uint16_t)(sign | (code < 0x7F80u ? code : 0x7F80u));
}

/* FP8. `saturate` is CUDA's __NV_SATFINITE (OFP8, 5.2.2, saturating mode): what is too large, infinity included,
   becomes the largest number of its sign; NaN stays NaN. Without it e4m3, which has no infinity, takes NaN. */

/* e4m3: 4 exponent bits, 3 significand bits, bias 7; 0x7F is NaN, 0x7E is 448. */

static inline float e4m3_to_f32(uint8_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7Fu;
    if (magnitude == 0x7Fu)
        return format_f32_of(sign | 0x7FC00000u);
    return format_f32_of(sign | (uint32_t)format_widen(magnitude, 3, 7, 23, 127));
}

static inline uint8_t e4m3_finish(uint32_t sign, int is_nan, uint64_t code, int saturate)
{
    if (is_nan)
        return 0x7Fu;
    if (code > 0x7Eu)
        code = saturate ? 0x7Eu : 0x7Fu;
    return (uint8_t)(sign | code);
}

static inline uint8_t e4m3_from_f32(float x, int saturate)
{
    const uint32_t bits = format_f32_bits(x), magnitude = bits & 0x7FFFFFFFu;
    return e4m3_finish(bits >> 24 & 0x80u, magnitude > 0x7F800000u, format_narrow(magnitude, 23, 127, 3, 7), saturate);
}

static inline uint8_t e4m3_from_f64(double x, int saturate)
{
    const uint64_t bits = format_f64_bits(x), magnitude = bits & INT64_MAX;
    return e4m3_finish((uint32_t)(bits >> 56) & 0x80u, magnitude > UINT64_C(0x7FF0000000000000),
                       format_narrow(magnitude, 52, 1023, 3, 7), saturate);
}

/* e5m2: the upper half of f16. */

static inline float e5m2_to_f32(uint8_t code)
{
    return f16_to_f32_soft((uint16_t)(code << 8));
}

static inline uint8_t e5m2_finish(uint32_t sign, uint64_t code, int saturate)
{
    if (code > 0x7Bu)
        code = saturate ? 0x7Bu : 0x7Cu;
    return (uint8_t)(sign | code);
}

static inline uint8_t e5m2_from_f32(float x, int saturate)
{
    const uint32_t bits = format_f32_bits(x), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u)
        return 0x7Fu;
    return e5m2_finish(sign, format_narrow(magnitude, 23, 127, 2, 15), saturate);
}

static inline uint8_t e5m2_from_f64(double x, int saturate)
{
    const uint64_t bits = format_f64_bits(x), magnitude = bits & INT64_MAX;
    const uint32_t sign = (uint32_t)(bits >> 56) & 0x80u;
    if (magnitude > UINT64_C(0x7FF0000000000000))
        return 0x7Fu;
    return e5m2_finish(sign, format_narrow(magnitude, 52, 1023, 2, 15), saturate);
}

/* e2m1 (MX, 5.3.3): 2 exponent bits, 1 significand bit, bias 1, in the low four bits; neither infinity nor NaN. What is
   too large saturates; NaN becomes the largest number, as CUDA has it (__nv_cvt_float_to_fp4). The upper four bits of a
   code are not looked at. */

static inline float e2m1_to_f32(uint8_t code)
{
    return format_f32_of((uint32_t)(code & 0x8u) << 28 | (uint32_t)format_widen(code & 0x7u, 1, 1, 23, 127));
}

static inline uint8_t e2m1_from_f64(double x)
{
    const uint64_t bits = format_f64_bits(x), magnitude = bits & INT64_MAX;
    const uint64_t code = format_narrow(magnitude, 52, 1023, 1, 1);
    if (magnitude > UINT64_C(0x7FF0000000000000))
        return 0x7u;
    return (uint8_t)((bits >> 60 & 0x8u) | (code < 0x7u ? code : 0x7u));
}

/* e8m0 (MX, 5.4.1): the exponent field of f32 alone, 2^(code - 127); 0xFF is NaN. It has no zero and no sign. */

static inline float e8m0_to_f32(uint8_t code)
{
    return format_f32_of(code == 0xFFu ? 0x7FC00000u : code ? (uint32_t)code << 23 : 0x00400000u);
}

/* The largest that is at most |x|, or the smallest: floor(log2 |x|) within the range. */
static inline uint8_t e8m0_from_f32(float x)
{
    const uint32_t field = format_f32_bits(x) >> 23 & 0xFFu;
    return x != x ? 0xFFu : (uint8_t)(field < 0xFEu ? field : 0xFEu);
}

#endif
