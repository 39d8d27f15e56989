#include "engine/oracle/magnitude.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include <cblas.h>

struct shape {
    int n, m, k;
    int transposed, add;
};

/* out = |x| / unit as f32, the unit a power of two that brings the largest to [1, 2): no sum leaves the range of f32
   then. What would be subnormal is raised to the smallest normal number. Returns the unit. */
VECTOR_UNITS static double narrow(const double *x, int n, float *restrict out)
{
    int exponent = 0;
    const double top = vector_max_size(x, n);
    if (top > 0 && top < INFINITY)
        frexp(top, &exponent);
    exponent = exponent < -1000 ? -1000 : exponent;
    const double unit = ldexp(1, exponent - 1), scale = 1 / unit;
    for (int i = 0; i < n; i++) {
        const double size = fabs(x[i]) * scale, least = size > 0 ? BOUND_TINY : 0;
        out[i] = (float)(size < least ? least : size);
    }
    return unit;
}

/* What one row of sums stands for. Rounding a and b to f32, multiplying them and adding k products: k + 2 roundings of
   positive numbers, and each product may have underflown. */
VECTOR_UNITS static void widen(const float *restrict sums, int n, int k, double unit, double *restrict c, int add)
{
    const double grown = unit / (1 - bound_gamma(k + 2)), lost = k * BOUND_TINY;
    for (int i = 0; i < n && add; i++)
        c[i] += (sums[i] + lost) * grown;
    for (int i = 0; i < n && !add; i++)
        c[i] = (sums[i] + lost) * grown;
}

static void multiply(const struct judge_scratch *s, const struct shape *shape, double factor, const double *a,
                     const double *b, double *c)
{
    const int n = shape->n, m = shape->m, k = shape->k;
    void *room_a = s->magnitude_a, *room_b = s->magnitude_b, *room_c = s->magnitude_c;
    float *narrow_a = room_a, *narrow_b = room_b, *sums = room_c;
    const double unit = factor * narrow(b, m * k, narrow_b);
    for (int r = 0; r < n; r++)
        s->magnitude_unit[r] = unit * narrow(a + (size_t)r * (size_t)k, k, narrow_a + (size_t)r * (size_t)k);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, shape->transposed ? CblasTrans : CblasNoTrans, n, m, k, 1, narrow_a, k,
                narrow_b, shape->transposed ? k : m, 0, sums, m);
    for (int r = 0; r < n; r++)
        widen(sums + (size_t)r * (size_t)m, m, k, s->magnitude_unit[r], c + (size_t)r * (size_t)m, shape->add);
}

void magnitude_multiply_transposed(const struct judge_scratch *s, int n, int m, int k, double factor, const double *a,
                                   const double *b, double *c)
{
    multiply(s, &(struct shape){n, m, k, .transposed = 1}, factor, a, b, c);
}

void magnitude_multiply(const struct judge_scratch *s, int n, int m, int k, double factor, const double *a,
                        const double *b, double *c, int add)
{
    multiply(s, &(struct shape){n, m, k, .add = add}, factor, a, b, c);
}
