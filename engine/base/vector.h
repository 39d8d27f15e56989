/* Loops over many numbers, on whatever vector unit the machine has.

   VECTOR_UNITS before a function: it is compiled for AVX2 as well, and what the machine has is chosen when the program
   is loaded. The results are the same bits either way: each element sees the same IEEE operations (nothing is
   contracted), and sums that span elements are taken in LANES. */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define VECTOR_UNITS __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTOR_UNITS
#endif

enum { LANES = 4 };
typedef double lanes_f64 __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t lanes_i64 __attribute__((vector_size(LANES * sizeof(int64_t)))); /* a comparison: -1 true, 0 false */

#define LANES_LOAD(x) (*(const struct lanes_unaligned *)(x)).v
#define LANES_SIZE(x) ((lanes_f64)((lanes_i64)(x)&INT64_MAX))

/* LANES numbers at any address. */
struct lanes_unaligned {
    lanes_f64 v;
} __attribute__((packed, aligned(sizeof(double)), may_alias));

static inline double lanes_sum(const lanes_f64 *x)
{
    double sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += (*x)[i];
    return sum;
}

/* x where it is larger than y, else y: a NaN in x is passed over. */
static inline void lanes_raise(lanes_f64 *y, const lanes_f64 *x)
{
    const lanes_i64 larger = *x > *y;
    *y = (lanes_f64)(((lanes_i64)*x & larger) | ((lanes_i64)*y & ~larger));
}

static inline double vector_sum(const double *x, int n)
{
    lanes_f64 sums = {0};
    double sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        sums += LANES_LOAD(x + i);
    for (; i < n; i++)
        sum += x[i];
    return lanes_sum(&sums) + sum;
}

static inline double vector_sum_sizes(const double *x, int n)
{
    lanes_f64 sums = {0};
    double sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        sums += LANES_SIZE(LANES_LOAD(x + i));
    for (; i < n; i++)
        sum += x[i] < 0 ? -x[i] : x[i];
    return lanes_sum(&sums) + sum;
}

/* The largest of x and least; NaNs are passed over. */
static inline double vector_max(const double *x, int n, double least)
{
    lanes_f64 tops = {least, least, least, least};
    double top = least;
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes_f64 next = LANES_LOAD(x + i);
        lanes_raise(&tops, &next);
    }
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (int lane = 0; lane < LANES; lane++)
        top = tops[lane] > top ? tops[lane] : top;
    return top;
}

/* The largest |x|; NaNs are passed over. */
static inline double vector_max_size(const double *x, int n)
{
    lanes_f64 tops = {0};
    double top = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes_f64 next = LANES_SIZE(LANES_LOAD(x + i));
        lanes_raise(&tops, &next);
    }
    for (; i < n; i++) {
        const double size = x[i] < 0 ? -x[i] : x[i];
        top = size > top ? size : top;
    }
    for (int lane = 0; lane < LANES; lane++)
        top = tops[lane] > top ? tops[lane] : top;
    return top;
}

static inline int lanes_any(const lanes_i64 *x)
{
    int64_t any = 0;
    for (int i = 0; i < LANES; i++)
        any |= (*x)[i];
    return any != 0;
}

#endif
