/* Roundings that both 16-bit types need. */
#ifndef SIMT_ROUND16_H
#define SIMT_ROUND16_H

#include "engine/base/format.h"
#include "simt_atomics.h"
#include "simt_math.h"
#include "vector_types.h"

namespace simt
{
/* p + c, rounded to odd: where inexact, the neighbor with an odd last bit. The error of the rounded sum is exact
   (Knuth's TwoSum); not asked for where the sum is infinite or NaN, since inf - inf would trap. */
static inline double sum_to_odd(double p, double c)
{
    const double sum = p + c;
    uint64_t bits = bit_cast<uint64_t>(sum);
    if ((bits & 0x7FF0000000000000u) == 0x7FF0000000000000u || (bits & 1))
        return sum;
    const double part = sum - p, error = (p - (sum - part)) + (c - part);
    if (error == 0)
        return sum;
    return bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/* `near`, x rounded to nearest, moved to the neighbor that a directed rounding asks for: 0 towards zero, 1 up, -1
 * down. */
template <class T> static inline T directed(T near, float x, int direction)
{
    const float v = (float)near;
    if (v == x || v != v)
        return near;
    const bool up = direction ? direction > 0 : x < 0;
    if (up ? v > x : v < x)
        return near;
    unsigned bits = near.__x;
    if (!(bits & 0x7FFF)) /* from zero to the smallest subnormal */
        bits = up ? 0x0001 : 0x8001;
    else
        bits += up == (v > 0) ? 1u : -1u;
    near.__x = (unsigned short)bits;
    return near;
}
} // namespace simt

#endif
