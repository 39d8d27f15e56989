/* exp without a call, so that a loop over it runs on the vector unit.

   exp(x) = 2^k exp(r), k = x / ln 2 rounded, |r| <= ln 2 / 2 = 0.3466: the Taylor series of exp(r) up to r^11 leaves
   out r^12 / 12! and what follows, 2^-46.7 of the result at most; roundings add 2^-50. Stated and tested: a relative
   error of 2^-46, and 2^-1074 absolutely where the result is subnormal. exp(0) is 1; NaN, infinities, overflow and
   underflow are as in libm. */
#ifndef BASE_EXP_H
#define BASE_EXP_H

#include "engine/base/format.h"

#define EXP_ERROR 0x1p-46

/* 2^k, -1022 <= k <= 1023, k an integer: added to 1.5 2^52 its bits are the last ones of the sum. */
HOST_AND_DEVICE static inline double exp_power(double k)
{
    return format_f64_of((format_f64_bits(k + 0x1.8p52) + 1023) << 52);
}

HOST_AND_DEVICE static inline double exp_lane(double x)
{
    x = x < -746 ? -746 : x; /* 0 from here on, infinity from the other end on; a NaN stays one */
    x = x > 710 ? 710 : x;
    const double k = x * 0x1.71547652b82fep0 + 0x1.8p52 - 0x1.8p52;
    const double r =
        x - k * 0x1.62e42feep-1 - k * 0x1.a39ef35793c76p-33; /* ln 2 in two parts: k times the first is exact */
    const double r2 = r * r, r4 = r2 * r2;
    const double low = 1 + r + r2 * (1.0 / 2 + r * (1.0 / 6));
    const double middle = 1.0 / 24 + r * (1.0 / 120) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    const double high = 1.0 / 40320 + r * (1.0 / 362880) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    const double half = k * 0.5 + 0x1.8p52 - 0x1.8p52; /* in two steps, so that neither power leaves the range */
    return (low + r4 * (middle + r4 * high)) * exp_power(half) * exp_power(k - half);
}

#define TANH_ERROR 0x1p-43

/* tanh(x) = 1 - 2 / (exp(2 |x|) + 1) with the sign of x; below 1/16, where that cancels, its series up to x^11, which
   leaves out 2^-56 of the result. An error of 2^-46 of the exponential is one of 2^-47 of what is subtracted from 1,
   2^-43 of what is left at 1/16. Stated and tested: a relative error of 2^-43. */
HOST_AND_DEVICE static inline double tanh_lane(double x)
{
    const double size = x < 0 ? -x : x, x2 = x * x;
    const double below =
        x * (1 + x2 * (-1.0 / 3 + x2 * (2.0 / 15 + x2 * (-17.0 / 315 + x2 * (62.0 / 2835 - x2 * (1382.0 / 155925))))));
    const double above = 1 - 2 / (exp_lane(2 * size) + 1);
    return size < 0x1p-4 ? below : x < 0 ? -above : above;
}

#endif
