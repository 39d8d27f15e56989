#include "engine/oracle/magnitude.h"

#include "engine/base/format.h"
#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/multiply.h"

struct shape {
    int n, m, k;
    int transposed, add;
};

/* The bits of the largest |x|: ordered like the numbers they stand for, infinities above them, NaNs above those. */
static inline int64_t largest_bits(const double *x, int n)
{
    int64_t top = 0;
    for (int i = 0; i < n; i++) {
        const int64_t bits = (int64_t)(format_f64_bits(x[i]) & INT64_MAX);
        top = bits > top ? bits : top;
    }
    return top;
}

static int64_t largest_finite_bits(const double *x, int n, int64_t infinite)
{
    int64_t top = 0;
    for (int i = 0; i < n; i++) {
        const int64_t bits = (int64_t)(format_f64_bits(x[i]) & INT64_MAX);
        top = bits > top && bits < infinite ? bits : top;
    }
    return top;
}

/* The power of two at or below the largest finite |x|; the smallest normal one for what is smaller still. */
static inline double power_below(const double *x, int n)
{
    const int64_t infinite = (int64_t)format_f64_bits(INFINITY);
    int64_t top = largest_bits(x, n);
    if (top >= infinite)
        top = largest_finite_bits(x, n, infinite);
    const uint64_t exponent = (uint64_t)top >> 52;
    return format_f64_of((exponent ? exponent : 1) << 52);
}

/* out = |x| / unit as f32, the unit a power of two that brings the largest finite one to [1, 2): no sum of those leaves
   the range of f32. Returns the unit. */
VECTOR_UNITS static double narrow(const double *restrict x, int n, float *restrict out)
{
    const double unit = power_below(x, n), scale = 1 / unit;
    for (int i = 0; i < n; i++)
        out[i] = magnitude_narrow(x[i], scale);
    return unit;
}

/* Rounding a and b to f32, multiplying them and adding k products: k + 2 roundings of positive numbers; a, b and each
   product may have underflown, which costs a product less than 3 times the smallest normal number, since a and b are
   below 2. */
struct magnitude_row magnitude_row(const struct magnitude_sums *from, int row, int m, int k)
{
    const void *sums = from->sums;
    return (struct magnitude_row){(const float *)sums + (size_t)row * (size_t)m, magnitude_grown(from->unit[row], k),
                                  magnitude_lost(k)};
}

VECTOR_UNITS static void widen(const struct magnitude_row *row, int n, double factor, double *restrict c, int add)
{
    const float *restrict sums = row->sums;
    const double grown = factor * row->grown, lost = row->lost;
    for (int i = 0; i < n && add; i++)
        c[i] += (sums[i] + lost) * grown;
    for (int i = 0; i < n && !add; i++)
        c[i] = (sums[i] + lost) * grown;
}

static void narrow_rows(int n, int k, const double *a, float *out, double *unit)
{
    for (int r = 0; r < n; r++)
        unit[r] = narrow(a + (size_t)r * (size_t)k, k, out + (size_t)r * (size_t)k);
}

static void sum(const struct room *room, const struct shape *shape, const double *a, const double *b,
                const struct magnitude_sums *to)
{
    const struct shared *shared = &room->shared;
    const struct packed_operand *packed = shape->transposed ? &shared->k : &shared->v;
    const bool shares_a = shape->transposed && a == shared->size_q, shares_b = b == packed->size_of;
    const int n = shape->n, m = shape->m, k = shape->k;
    void *room_a = shares_a ? shared->q_rows : room->a, *room_b = shares_b ? packed->size_panels : room->b,
         *room_c = to->sums;
    float *narrow_a = room_a, *narrow_b = room_b, *sums = room_c;
    const double unit = shares_b ? packed->size_unit : narrow(b, m * k, narrow_b);
    if (!shares_a)
        narrow_rows(n, k, a, narrow_a, to->unit);
    for (int r = 0; r < n; r++)
        to->unit[r] = unit * (shares_a ? shared->q_unit : to->unit)[r];
    if (shares_b)
        matrix_multiply_packed_f32(n, m, k, narrow_a, narrow_b, sums);
    else
        matrix_multiply_f32(n, m, k, narrow_a, narrow_b, shape->transposed, sums);
}

void magnitude_share_q(struct room *room, int rows, int k, const double *size)
{
    void *to = room->shared.q_rows;
    narrow_rows(rows, k, size, to, room->shared.q_unit);
    room->shared.size_q = size;
}

void magnitude_pack(const struct room *room, int m, int k, const double *size, int transposed,
                    struct packed_operand *to)
{
    void *panels = to->size_panels, *narrowed = room->b;
    to->size_unit = narrow(size, m * k, narrowed);
    matrix_pack_f32(m, k, narrowed, transposed, panels);
    to->size_of = size;
}

void magnitude_sum(const struct room *room, int n, int m, int k, const double *a, const double *b,
                   const struct magnitude_sums *to)
{
    sum(room, &(struct shape){n, m, k, .transposed = 0}, a, b, to);
}

static void multiply(const struct room *room, const struct shape *shape, double factor, const double *a,
                     const double *b, double *c)
{
    const struct magnitude_sums sums = {room->c, room->unit};
    sum(room, shape, a, b, &sums);
    for (int r = 0; r < shape->n; r++) {
        const struct magnitude_row row = magnitude_row(&sums, r, shape->m, shape->k);
        widen(&row, shape->m, factor, c + (size_t)r * (size_t)shape->m, shape->add);
    }
}

void magnitude_multiply_transposed(const struct room *room, int n, int m, int k, double factor, const double *a,
                                   const double *b, double *c)
{
    multiply(room, &(struct shape){n, m, k, .transposed = 1}, factor, a, b, c);
}

void magnitude_multiply(const struct room *room, int n, int m, int k, double factor, const double *a, const double *b,
                        double *c, int add)
{
    multiply(room, &(struct shape){n, m, k, .add = add}, factor, a, b, c);
}
