#include "engine/oracle/bound.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include <float.h>

bool bound_narrow(enum dtype t, double *unit, double *half_tiny)
{
    *unit = 0;
    *half_tiny = 0;
    switch (t) {
    case DTYPE_F16: /* 11 significant bits, smallest subnormal 2^-24 */
        *unit = 0x1p-11;
        *half_tiny = 0x1p-25;
        return true;
    case DTYPE_BF16: /* 8, 2^-133 */
        *unit = 0x1p-8;
        *half_tiny = 0x1p-134;
        return true;
    case DTYPE_E4M3: /* 4, 2^-9 */
        *unit = 0x1p-4;
        *half_tiny = 0x1p-10;
        return true;
    case DTYPE_E5M2: /* 3, 2^-16 */
        *unit = 0x1p-3;
        *half_tiny = 0x1p-17;
        return true;
    case DTYPE_E2M1: /* 2, 2^-1 */
        *unit = 0x1p-2;
        *half_tiny = 0x1p-2;
        return true;
    default:
        return false;
    }
}

/* Of types that have no infinity, or saturate: OCP FP8 and MX. */
static double saturated(double x, int bits, int least_exponent, double largest)
{
    return fmin(fmax(formula_round(x, bits, least_exponent, largest), -largest), largest);
}

double bound_round(enum dtype t, double x)
{
    uint64_t room = 0;
    if (t == DTYPE_F32)
        return (double)(float)x;
    if (t == DTYPE_F16)
        return formula_f16(x);
    if (t == DTYPE_BF16)
        return formula_bf16(x);
    if (t == DTYPE_E4M3 && isfinite(x))
        return saturated(x, 4, -6, (double)E4M3_MAX);
    if (t == DTYPE_E5M2 && isfinite(x))
        return saturated(x, 3, -14, (double)E5M2_MAX);
    if (t == DTYPE_E2M1 && isfinite(x))
        return saturated(x, 2, 0, (double)E2M1_MAX);
    dtype_store(t, &room, 0, x);
    return dtype_load(t, &room, 0);
}

/* A power of two brings x to 1 .. 2, where every type has all of its precision, and room. */
double bound_round_unlimited(enum dtype t, double x)
{
    int exponent = 0;
    if (!isfinite(x) || !(fabs(frexp(x, &exponent)) > 0) || exponent < 1)
        return bound_round(t, x);
    return ldexp(bound_round(t, ldexp(x, 1 - exponent)), exponent - 1);
}

/* Types of `kept` bits behind the first and of 2^least as their smallest normal number. The bits that go are added up
   to half of the last one that stays, less one where that is even; below 2^least the last bits of a sum stay whose unit
   is the smallest subnormal number. */
VECTOR_UNITS static void round_row(const double *x, int n, int kept, int least, double *out)
{
    const int cut = 52 - kept;
    const uint64_t half = (UINT64_C(1) << (cut - 1)) - 1, stay = ~((UINT64_C(1) << cut) - 1);
    const double normal = ldexp(1, least), magic = ldexp(1.5, 52 + least - kept);
    for (int i = 0; i < n; i++) {
        const uint64_t bits = format_f64_bits(x[i]);
        const double size = fabs(x[i]), sum = x[i] + magic - magic;
        const uint64_t small = (format_f64_bits(sum) & INT64_MAX) | (bits & ~(uint64_t)INT64_MAX);
        const uint64_t rounded = (bits + half + (bits >> cut & 1)) & stay;
        out[i] = format_f64_of(size <= DBL_MAX ? size < normal ? small : rounded : bits);
    }
}

void bound_round_row(enum dtype t, const double *x, int n, double *out)
{
    switch (t) {
    case DTYPE_F16:
        round_row(x, n, 10, -14, out);
        break;
    case DTYPE_BF16:
        round_row(x, n, 7, -126, out);
        break;
    case DTYPE_E4M3:
        round_row(x, n, 3, -6, out);
        break;
    case DTYPE_E5M2:
        round_row(x, n, 2, -14, out);
        break;
    case DTYPE_E2M1:
        round_row(x, n, 1, 0, out);
        break;
    default:
        for (int i = 0; i < n; i++)
            out[i] = isfinite(x[i]) ? bound_round_unlimited(t, x[i]) : x[i];
    }
}
