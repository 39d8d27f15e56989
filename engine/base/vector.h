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

static inline int lanes_any(const lanes_i64 *x)
{
    int64_t any = 0;
    for (int i = 0; i < LANES; i++)
        any |= (*x)[i];
    return any != 0;
}

#endif
