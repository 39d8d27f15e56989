#include "engine/oracle/bound.h"

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

double bound_round(enum dtype t, double x)
{
    uint64_t room = 0;
    dtype_store(t, &room, 0, x);
    return dtype_load(t, &room, 0);
}

/* A power of two brings x to where every type has all of its precision, and room. */
double bound_round_unlimited(enum dtype t, double x)
{
    int exponent = 0;
    if (!isfinite(x) || !(fabs(frexp(x, &exponent)) > 0) || exponent < 1)
        return bound_round(t, x);
    return ldexp(bound_round(t, ldexp(x, -exponent)), exponent);
}
