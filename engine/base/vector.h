/* Loops over many numbers, on whatever vector unit the machine has.

   VECTOR_UNITS before a function: it is compiled for AVX2 and AVX-512 as well, and what the machine has is chosen when
   the program is loaded. The results are the same bits either way: each element sees the same IEEE operations (nothing
   is contracted), and sums that span elements are taken in LANES. */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define VECTOR_UNITS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTOR_UNITS
#endif

enum { LANES = 4 };
typedef double lanes_f64 __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t lanes_i64 __attribute__((vector_size(LANES * sizeof(int64_t)))); /* a comparison: -1 true, 0 false */

#define LANES_LOAD(x) (*(const struct lanes_unaligned *)(x)).v
#define LANES_SIZE(x) ((lanes_f64)((lanes_i64)(x)&INT64_MAX))

/* Two of these, for what does not span elements: one register of AVX-512. */
enum { WIDE = 2 * LANES };
typedef double wide_f64 __attribute__((vector_size(WIDE * sizeof(double))));
typedef uint64_t wide_u64 __attribute__((vector_size(WIDE * sizeof(uint64_t))));

/* LANES numbers at any address. */
struct lanes_unaligned {
    lanes_f64 v;
} __attribute__((packed, aligned(sizeof(double)), may_alias));

struct wide_unaligned {
    wide_f64 v;
} __attribute__((packed, aligned(sizeof(double)), may_alias));

#define WIDE_LOAD(x) (*(const struct wide_unaligned *)(x)).v

union wide_halves {
    wide_f64 all;
    lanes_f64 half[2];
};

static inline double lanes_sum(const lanes_f64 *x)
{
    double sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += (*x)[i];
    return sum;
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

/* x where it is larger than y, else y: a NaN in x is passed over. */
static inline void lanes_raise(lanes_f64 *y, const lanes_f64 *x)
{
    const lanes_i64 larger = *x > *y;
    *y = (lanes_f64)(((lanes_i64)*x & larger) | ((lanes_i64)*y & ~larger));
}

/* The largest of least and all x & mask (see below), two at a time so that no comparison waits for the one before. */
static inline double vector_max_masked(const double *x, int n, double least, int64_t mask)
{
    lanes_f64 even = {least, least, least, least}, odd = even;
    double top = least;
    int i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const lanes_f64 a = (lanes_f64)((lanes_i64)LANES_LOAD(x + i) & mask);
        const lanes_f64 b = (lanes_f64)((lanes_i64)LANES_LOAD(x + i + LANES) & mask);
        lanes_raise(&even, &a);
        lanes_raise(&odd, &b);
    }
    for (; i < n; i++) {
        const double size = x[i] < 0 ? -x[i] : x[i], value = mask == INT64_MAX ? size : x[i];
        top = value > top ? value : top;
    }
    lanes_raise(&even, &odd);
    for (int lane = 0; lane < LANES; lane++)
        top = even[lane] > top ? even[lane] : top;
    return top;
}

/* The largest of x and least; NaNs are passed over. */
static inline double vector_max(const double *x, int n, double least)
{
    return vector_max_masked(x, n, least, -1);
}

/* The largest |x|; NaNs are passed over. */
static inline double vector_max_size(const double *x, int n)
{
    return vector_max_masked(x, n, 0, INT64_MAX);
}

static inline bool lanes_any(const lanes_i64 *x)
{
    int64_t any = 0;
    for (int i = 0; i < LANES; i++)
        any |= (*x)[i];
    return any != 0;
}

/* Whether the first bit of any is set: that of a number below 0, or of a difference that is. */
static inline bool wide_any_sign(const wide_u64 *x)
{
    const union wide_halves of = {(wide_f64)*x};
    const lanes_i64 both = (lanes_i64)of.half[0] | (lanes_i64)of.half[1];
    int64_t any = 0;
    for (int i = 0; i < LANES; i++)
        any |= both[i];
    return any < 0;
}

#endif
