#include "engine/oracle/magnitude.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include <cblas.h>

struct shape {
    int n, m, k;
    int transposed, add;
};

/* The power of two at or below a finite number; the smallest normal one for what is smaller still. */
static inline double power_below(double top)
{
    const uint64_t exponent = format_f64_bits(top) >> 52;
    return format_f64_of((exponent ? exponent : 1) << 52);
}

static double largest_finite(const double *x, int n)
{
    double top = 0;
    for (int i = 0; i < n; i++)
        top = fabs(x[i]) > top && fabs(x[i]) < INFINITY ? fabs(x[i]) : top;
    return top;
}

/* out = |x| / unit as f32, the unit a power of two that brings the largest finite one to [1, 2): no sum of those leaves
   the range of f32. Returns the unit. */
VECTOR_UNITS static double narrow(const double *restrict x, int n, float *restrict out)
{
    const double top = vector_max_size(x, n);
    const double unit = power_below(top < INFINITY ? top : largest_finite(x, n)), scale = 1 / unit;
    for (int i = 0; i < n; i++)
        out[i] = (float)(fabs(x[i]) * scale);
    return unit;
}

/* What one row of sums stands for. Rounding a and b to f32, multiplying them and adding k products: k + 2 roundings of
   positive numbers; a, b and each product may have underflown, which costs a product less than 3 times the smallest
   normal number, since a and b are below 2. */
VECTOR_UNITS static void widen(const float *restrict sums, int n, int k, double unit, double *restrict c, int add)
{
    const double grown = unit / (1 - bound_gamma(k + 2)), lost = 3 * k * BOUND_TINY;
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
