#include "engine/oracle/bound.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include <float.h>

/* IEEE 754, OCP FP8, OCP MX: significant bits, the exponent of the smallest normal number, the largest number, and
   whether that stands for all beyond it: what it is stored by saturates. bits 0: no narrow type. */
static const struct narrow {
    int bits, least;
    double largest;
    bool saturates;
} narrow[DTYPE_COUNT] = {
    [DTYPE_F16] = {11, -14, 65504, false}, [DTYPE_BF16] = {8, -126, 0x1.FEp127, false},
    [DTYPE_E4M3] = {4, -6, 448, true},     [DTYPE_E5M2] = {3, -14, 57344, true},
    [DTYPE_E2M1] = {2, 0, 6, true},
};

static const struct narrow *narrow_of(enum dtype t)
{
    static const struct narrow none;
    return (unsigned)t < DTYPE_COUNT ? &narrow[t] : &none; /* DTYPE_COUNT: no type */
}

static double power_of_2(int exponent)
{
    return format_f64_of((uint64_t)(1023 + exponent) << 52);
}

bool bound_narrow(enum dtype t, double *unit, double *half_tiny)
{
    const struct narrow *n = narrow_of(t);
    *unit = n->bits ? power_of_2(-n->bits) : 0;
    *half_tiny = n->bits ? power_of_2(n->least - n->bits) : 0;
    return n->bits > 0;
}

double bound_largest(enum dtype t)
{
    return narrow_of(t)->largest;
}

double bound_round(enum dtype t, double x)
{
    const struct narrow *n = narrow_of(t);
    uint64_t room = 0;
    if (t == DTYPE_F32)
        return (double)(float)x;
    if (n->bits && !n->saturates)
        return formula_round(x, n->bits, n->least, n->largest);
    if (n->bits && isfinite(x))
        return fmin(fmax(formula_round(x, n->bits, n->least, n->largest), -n->largest), n->largest);
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
    const struct narrow *format = narrow_of(t);
    if (format->bits)
        round_row(x, n, format->bits - 1, format->least, out);
    else
        for (int i = 0; i < n; i++)
            out[i] = isfinite(x[i]) ? bound_round_unlimited(t, x[i]) : x[i];
}
