/* Arithmetic intrinsics, bit casts, conversions. The fast __expf family gives what the accurate function gives: a GPU's
   own approximation lies within the oracle's bounds of it. */
#ifndef SIMT_MATH_H
#define SIMT_MATH_H

#include "simt_keywords.h"

/* glibc declares some of these names, so they are macros. */
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __tanhf(x) tanhf(x)
#define __sincosf(x, s, c) sincosf(x, s, c)

/* SIMT_FN(type, name, parameters, value) */
#define SIMT_FN(type, name, params, value)                                                                             \
    static inline type name params                                                                                     \
    {                                                                                                                  \
        return (type)(value);                                                                                          \
    }

SIMT_FN(float, rsqrtf, (float x), 1.0f / sqrtf(x))
SIMT_FN(double, rsqrt, (double x), 1.0 / sqrt(x))
SIMT_FN(float, rcbrtf, (float x), 1.0f / cbrtf(x))
SIMT_FN(double, rcbrt, (double x), 1.0 / cbrt(x))
SIMT_FN(float, sinpif, (float x), sin(M_PI *fmod((double)x, 2.0)))
SIMT_FN(float, cospif, (float x), cos(M_PI *fmod((double)x, 2.0)))
SIMT_FN(float, normcdff, (float x), 0.5 * erfc((double)x * -M_SQRT1_2))
SIMT_FN(float, __fdividef, (float x, float y), x / y)
SIMT_FN(float, fdividef, (float x, float y), x / y)
SIMT_FN(float, __saturatef, (float x), x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f) /* NaN becomes 0 */

SIMT_FN(float, __fadd_rn, (float x, float y), x + y)
SIMT_FN(float, __fsub_rn, (float x, float y), x - y)
SIMT_FN(float, __fmul_rn, (float x, float y), x *y)
SIMT_FN(float, __fdiv_rn, (float x, float y), x / y)
SIMT_FN(float, __frcp_rn, (float x), 1.0f / x)
SIMT_FN(float, __fsqrt_rn, (float x), sqrtf(x))
SIMT_FN(float, __frsqrt_rn, (float x), 1.0 / sqrt((double)x))
SIMT_FN(float, __fmaf_rn, (float x, float y, float z), fmaf(x, y, z))
SIMT_FN(double, __dadd_rn, (double x, double y), x + y)
SIMT_FN(double, __dsub_rn, (double x, double y), x - y)
SIMT_FN(double, __dmul_rn, (double x, double y), x *y)
SIMT_FN(double, __ddiv_rn, (double x, double y), x / y)
SIMT_FN(double, __drcp_rn, (double x), 1.0 / x)
SIMT_FN(double, __dsqrt_rn, (double x), sqrt(x))
SIMT_FN(double, __fma_rn, (double x, double y, double z), fma(x, y, z))

/* Bits and values. */
namespace simt
{
template <class To, class From> static inline To bit_cast(From from)
{
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    memcpy(static_cast<void *>(&to), &from, sizeof to);
    return to;
}

/* Float to integer as the hardware has it: limited to the integer's range, NaN is 0. */
template <class Int, class Float> static inline Int to_int(Float rounded)
{
    const Float top =
        (Float)((Int)1 << (sizeof(Int) * 8 - 2)) * ((Int)-1 < 0 ? 2 : 4); /* largest Int + 1: a power of 2 */
    if (rounded != rounded)
        return 0;
    if (rounded >= top)
        return (Int)-1 < 0 ? (Int) ~((Int)1 << (sizeof(Int) * 8 - 1)) : (Int)-1;
    if ((Int)-1 < 0)
        return rounded < -top ? (Int)((Int)1 << (sizeof(Int) * 8 - 1)) : (Int)rounded;
    return rounded <= 0 ? (Int)0 : (Int)rounded;
}
} // namespace simt

SIMT_FN(int, __float_as_int, (float x), simt::bit_cast<int>(x))
SIMT_FN(unsigned, __float_as_uint, (float x), simt::bit_cast<unsigned>(x))
SIMT_FN(float, __int_as_float, (int x), simt::bit_cast<float>(x))
SIMT_FN(float, __uint_as_float, (unsigned x), simt::bit_cast<float>(x))
SIMT_FN(long long, __double_as_longlong, (double x), simt::bit_cast<long long>(x))
SIMT_FN(double, __longlong_as_double, (long long x), simt::bit_cast<double>(x))
SIMT_FN(int, __double2hiint, (double x), __double_as_longlong(x) >> 32)
SIMT_FN(int, __double2loint, (double x), __double_as_longlong(x))
SIMT_FN(double, __hiloint2double, (int high, int low),
        __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low)))

/* SIMT_ROUNDED(suffix, function): to nearest even, towards zero, up, down. */
#define SIMT_ROUNDED(suffix, function)                                                                                 \
    SIMT_FN(int, __float2int_##suffix, (float x), simt::to_int<int>(function(x)))                                      \
    SIMT_FN(unsigned, __float2uint_##suffix, (float x), simt::to_int<unsigned>(function(x)))                           \
    SIMT_FN(long long, __float2ll_##suffix, (float x), simt::to_int<long long>(function(x)))                           \
    SIMT_FN(unsigned long long, __float2ull_##suffix, (float x), simt::to_int<unsigned long long>(function(x)))        \
    SIMT_FN(int, __double2int_##suffix, (double x), simt::to_int<int>(function(x)))                                    \
    SIMT_FN(unsigned, __double2uint_##suffix, (double x), simt::to_int<unsigned>(function(x)))                         \
    SIMT_FN(long long, __double2ll_##suffix, (double x), simt::to_int<long long>(function(x)))
SIMT_ROUNDED(rn, nearbyint)
SIMT_ROUNDED(rz, trunc)
SIMT_ROUNDED(ru, ceil)
SIMT_ROUNDED(rd, floor)
#undef SIMT_ROUNDED
SIMT_FN(float, __int2float_rn, (int x), x)
SIMT_FN(float, __uint2float_rn, (unsigned x), x)
SIMT_FN(float, __ll2float_rn, (long long x), x)
SIMT_FN(float, __ull2float_rn, (unsigned long long x), x)
SIMT_FN(float, __double2float_rn, (double x), x)
SIMT_FN(double, __int2double_rn, (int x), x)
SIMT_FN(double, __uint2double_rn, (unsigned x), x)
SIMT_FN(double, __ll2double_rn, (long long x), x)

/* Integers. */
namespace simt
{
template <class Word> static inline Word reverse_bits(Word x)
{
    Word reversed = 0;
    for (unsigned i = 0; i < sizeof x * 8; i++)
        reversed |= (x >> i & 1) << (sizeof x * 8 - 1 - i);
    return reversed;
}

/* PTX prmt, default mode: nibble i of the selector picks byte i; its top bit replicates the byte's sign. */
static inline unsigned byte_permute(unsigned low, unsigned high, unsigned selector)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned out = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned pick = selector >> (4 * i) & 15;
        unsigned byte = (unsigned)(bytes >> (8 * (pick & 7))) & 255;
        if (pick & 8)
            byte = byte & 128 ? 255 : 0;
        out |= byte << (8 * i);
    }
    return out;
}

/* The sum of four products of bytes, and c. */
template <class Byte, class Word> static inline Word dot_bytes(Word a, Word b, Word c)
{
    for (int i = 0; i < 4; i++)
        c += (Byte)(a >> 8 * i) * (Byte)(b >> 8 * i);
    return c;
}

static inline uint64_t pair(unsigned low, unsigned high)
{
    return (uint64_t)high << 32 | low;
}
} // namespace simt

SIMT_FN(int, __popc, (unsigned x), __builtin_popcount(x))
SIMT_FN(int, __popcll, (unsigned long long x), __builtin_popcountll(x))
SIMT_FN(int, __clz, (int x), x ? __builtin_clz((unsigned)x) : 32)
SIMT_FN(int, __clzll, (long long x), x ? __builtin_clzll((unsigned long long)x) : 64)
SIMT_FN(int, __ffs, (int x), __builtin_ffs(x))
SIMT_FN(int, __ffsll, (long long x), __builtin_ffsll(x))
SIMT_FN(unsigned, __brev, (unsigned x), simt::reverse_bits(x))
SIMT_FN(unsigned long long, __brevll, (unsigned long long x), simt::reverse_bits(x))
SIMT_FN(unsigned, __byte_perm, (unsigned x, unsigned y, unsigned s), simt::byte_permute(x, y, s))
SIMT_FN(unsigned, __funnelshift_l, (unsigned low, unsigned high, unsigned n), simt::pair(low, high) << (n & 31) >> 32)
SIMT_FN(unsigned, __funnelshift_r, (unsigned low, unsigned high, unsigned n), simt::pair(low, high) >> (n & 31))
SIMT_FN(int, __mulhi, (int x, int y), (long long)x *y >> 32)
SIMT_FN(unsigned, __umulhi, (unsigned x, unsigned y), (unsigned long long)x *y >> 32)
SIMT_FN(unsigned long long, __umul64hi, (unsigned long long x, unsigned long long y),
        (unsigned long long)((unsigned __int128)x *y >> 64))
SIMT_FN(long long, __mul64hi, (long long x, long long y), (long long)((__int128)x *y >> 64))
SIMT_FN(int, __mul24, (int x, int y), ((long long)((int)((unsigned)x << 8) >> 8) * ((int)((unsigned)y << 8) >> 8)))
SIMT_FN(unsigned, __umul24, (unsigned x, unsigned y), (x & 0xFFFFFFu) * (y & 0xFFFFFFu))
SIMT_FN(int, __dp4a, (int a, int b, int c), simt::dot_bytes<signed char>(a, b, c))
SIMT_FN(unsigned, __dp4a, (unsigned a, unsigned b, unsigned c), simt::dot_bytes<unsigned char>(a, b, c))
SIMT_FN(int, __viaddmax_s32, (int a, int b, int c), std::max((int)((unsigned)a + (unsigned)b), c))
SIMT_FN(int, __viaddmin_s32, (int a, int b, int c), std::min((int)((unsigned)a + (unsigned)b), c))
SIMT_FN(unsigned, __viaddmax_u32, (unsigned a, unsigned b, unsigned c), std::max(a + b, c))
SIMT_FN(unsigned, __viaddmin_u32, (unsigned a, unsigned b, unsigned c), std::min(a + b, c))
SIMT_FN(unsigned, __usad, (unsigned x, unsigned y, unsigned z), (x > y ? x - y : y - x) + z)

/* CUDA's min and max of the global namespace. fminf and fmaxf drop a NaN, as these do. */
#define SIMT_MIN_MAX(T)                                                                                                \
    SIMT_FN(T, min, (T x, T y), y < x ? y : x)                                                                         \
    SIMT_FN(T, max, (T x, T y), x < y ? y : x)
SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
#undef SIMT_MIN_MAX
SIMT_FN(unsigned, min, (int x, unsigned y), min((unsigned)x, y))
SIMT_FN(unsigned, min, (unsigned x, int y), min(x, (unsigned)y))
SIMT_FN(unsigned, max, (int x, unsigned y), max((unsigned)x, y))
SIMT_FN(unsigned, max, (unsigned x, int y), max(x, (unsigned)y))
SIMT_FN(float, min, (float x, float y), fminf(x, y))
SIMT_FN(float, max, (float x, float y), fmaxf(x, y))
SIMT_FN(double, min, (double x, double y), fmin(x, y))
SIMT_FN(double, max, (double x, double y), fmax(x, y))
SIMT_FN(double, min, (float x, double y), fmin(x, y))
SIMT_FN(double, min, (double x, float y), fmin(x, y))
SIMT_FN(double, max, (float x, double y), fmax(x, y))
SIMT_FN(double, max, (double x, float y), fmax(x, y))
#undef SIMT_FN

#endif
