/* Functions as devices compute them against float64: what is exact, how far a result may lie from it, and the worst of
   many. The same code weighs results on the GPU (2^32 of them) and on the host. Valid as C and CUDA C++. */
#ifndef TEST_GPU_NUMERICS_FUNCTION_H
#define TEST_GPU_NUMERICS_FUNCTION_H

#include "engine/base/dtype.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define NUMERICS_BOTH __host__ __device__ static inline
#else
#define NUMERICS_BOTH static inline
#endif

enum numerics_function {
#define NUMERICS_FUNCTION(id, name, type, first_sm, formula) id,
#include "tests/gpu/numerics_functions.def"
#undef NUMERICS_FUNCTION
    NUMERICS_FUNCTIONS
};

enum numerics_conversion {
#define NUMERICS_CONVERSION(id, name, from, to, first_sm) id,
#include "tests/gpu/numerics_conversions.def"
#undef NUMERICS_CONVERSION
    NUMERICS_CONVERSIONS
};

/* Pair i: x of either sign, y positive, exponents -60 to 59, random significands. splitmix64. */
NUMERICS_BOTH void numerics_pair(uint32_t i, float *x, float *y)
{
    uint64_t z = (i + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    const uint32_t low = (uint32_t)z, high = (uint32_t)(z >> 32);
    const uint32_t a = (low & 0x807FFFFFu) | (67u + (low >> 23 & 0xFF) * 120 / 256) << 23;
    const uint32_t b = (high & 0x007FFFFFu) | (67u + (high >> 23 & 0xFF) * 120 / 256) << 23;
    memcpy(x, &a, sizeof a);
    memcpy(y, &b, sizeof b);
}

NUMERICS_BOTH double numerics_reference(int f, double x, double y)
{
    switch (f) {
    case NUMERICS_EX2_FTZ:
    case NUMERICS_EX2:
    case NUMERICS_EXP2F:
    case NUMERICS_EX2_F16:
    case NUMERICS_H2EXP2:
    case NUMERICS_EX2_BF16:
        return exp2(x);
    case NUMERICS_EXPF_FAST:
    case NUMERICS_EXPF:
    case NUMERICS_H2EXP:
        return exp(x);
    case NUMERICS_LOGF_FAST:
    case NUMERICS_LOGF:
    case NUMERICS_LG2_LN2:
        return log(x);
    case NUMERICS_RCP:
        return 1 / x;
    case NUMERICS_DIVIDE_FAST:
    case NUMERICS_DIVIDE_FULL:
    case NUMERICS_TIMES_RCP:
        return x / y;
    default:
        return tanh(x);
    }
}

/* How far a result may lie from want = f(x): of f32 functions what engine/oracle/bound.h takes for granted (bound_exp,
   bound_lse, bound_tanh's first term, and of bound_divide's 4 u the 2 u of a reciprocal); of 16-bit ones the PTX ISA's
   words, an exponential's smallest results rounded to the type's last place. 1 + 2^-14: BOUND_SLACK.
   exp(-inf) and 1 / inf are exactly 0 (PTX ISA), and |x| in a bound must not make them 0 inf. */
NUMERICS_BOTH double numerics_bound(int f, double x, double want)
{
    const double u = 0x1p-24, slack = 1 + 0x1p-14, size = fabs(want);
    if (isinf(x) && size == 0)
        return 0;
    switch (f) {
    case NUMERICS_EX2_FTZ:
    case NUMERICS_EX2:
    case NUMERICS_EXP2F:
        return size * (0x1p-22 + u) * slack + 0x1p-126;
    case NUMERICS_EXPF_FAST:
    case NUMERICS_EXPF:
        return size * (0x1p-22 + u + 3.25 * u * fabs(x)) * slack + 0x1p-126;
    case NUMERICS_LOGF_FAST:
    case NUMERICS_LOGF:
    case NUMERICS_LG2_LN2:
        return (3.6e-7 + 6 * u * size) * slack;
    case NUMERICS_TANH:
    case NUMERICS_TANHF:
        return 0x1p-14 * size + 0x1p-126;
    case NUMERICS_RCP:
        return 2 * u * size * slack + 0x1p-126;
    case NUMERICS_DIVIDE_FAST:
    case NUMERICS_DIVIDE_FULL:
    case NUMERICS_TIMES_RCP:
        return (4 * u * size + 0x1p-125) * slack;
    case NUMERICS_EX2_F16:
    case NUMERICS_H2EXP2:
    case NUMERICS_H2EXP:
        return 0x1.1260p-10 * size + 0x1p-24; /* 2^-9.9 */
    case NUMERICS_EX2_BF16:
        return 0x1p-7 * size + 0x1p-126;
    case NUMERICS_TANH_F16:
        return 0x1.0252p-11; /* 2^-10.987 */
    default:
        return 0x1p-8;
    }
}

/* A logarithm's and a 16-bit tanh's error is measured as it is, all others relative to the exact result. */
NUMERICS_BOTH int numerics_absolute(int f)
{
    return f == NUMERICS_LOGF_FAST || f == NUMERICS_LOGF || f == NUMERICS_LG2_LN2 || f == NUMERICS_TANH_F16 ||
           f == NUMERICS_TANH_BF16;
}

NUMERICS_BOTH enum dtype numerics_type(int f)
{
    switch (f) {
#define NUMERICS_FUNCTION(id, name, type, first_sm, formula)                                                           \
    case id:                                                                                                           \
        return type;
#include "tests/gpu/numerics_functions.def"
#undef NUMERICS_FUNCTION
    default:
        return DTYPE_F32;
    }
}

/* Both worst are a float's bits above the index of the argument, so that the larger word is the worse one. */
struct numerics_worst {
    unsigned long long error, ratio; /* error of normal results; error / bound of all */
    unsigned long long violations;   /* beyond the bound, NaN where a number belongs, or a number where NaN does */
    unsigned long long first;        /* index of the first of them; all ones: none */
};

static const struct numerics_worst numerics_worst_none = {0, 0, 0, ~0ull};

NUMERICS_BOTH unsigned long long numerics_pack(double value, uint32_t index)
{
    const float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (unsigned long long)bits << 32 | index;
}

static inline float numerics_unpack(unsigned long long packed)
{
    const uint32_t bits = (uint32_t)(packed >> 32);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Weighs one result. */
NUMERICS_BOTH void numerics_weigh(int f, double x, double y, double got, uint32_t index, struct numerics_worst *w)
{
    const double want = numerics_reference(f, x, y), bound = numerics_bound(f, x, want), error = fabs(got - want);
    const enum dtype type = numerics_type(f);
    /* What rounds beyond the type's largest number is infinite. */
    const double beyond = type == DTYPE_F16 ? 65520 : type == DTYPE_BF16 ? 0x1.ffp127 : 0x1.ffffffp127;
    const double normal = type == DTYPE_F16 ? 0x1p-14 : 0x1p-126;
    int right;
    if (isnan(want) || isnan(got))
        right = isnan(want) && isnan(got);
    else if (isinf(got) || isinf(want))
        right = got == want || (isinf(got) && (got > 0) == (want > 0) && fabs(want) + bound >= beyond);
    else
        right = error <= bound || (fabs(want) >= beyond && fabs(got) >= beyond * (1 - 0x1p-7));
    if (!right) {
        w->violations++;
        if (index < w->first)
            w->first = index;
    }
    if (!isfinite(want) || !isfinite(got) || fabs(want) >= beyond)
        return;
    const unsigned long long ratio = numerics_pack(error > 0 ? error / bound : 0, index);
    if (ratio > w->ratio)
        w->ratio = ratio;
    const int absolute = numerics_absolute(f);
    if (absolute || fabs(want) >= normal) {
        const unsigned long long packed = numerics_pack(absolute ? error : error / fabs(want), index);
        if (packed > w->error)
            w->error = packed;
    }
}

#endif
