/* Times and rows of a table, for the programs of `make bench`. */
#ifndef TESTS_BENCH_SAMPLES_H
#define TESTS_BENCH_SAMPLES_H

#include "engine/base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SAMPLES = 4096 };

/* What comes behind the first MAX_SAMPLES is left out. */
struct samples {
    double ms[MAX_SAMPLES];
    int n;
};

static inline double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline void sample(struct samples *s, double ms)
{
    if (s->n < MAX_SAMPLES)
        s->ms[s->n++] = ms;
}

static inline int samples_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void bench_heads(const char *what)
{
    printf("%s, %ld cores; ms\n%-44s %9s %9s %9s %9s %8s\n", what, sysconf(_SC_NPROCESSORS_ONLN), "", "median", "least",
           "most", "aim", "of aim");
}

/* One row of the table; aim_ms 0: none. Returns the median. */
static inline double report(const char *what, struct samples *s, double aim_ms)
{
    if (s->n == 0) {
        printf("%-44s %9s\n", what, "-");
        return 0;
    }
    qsort(s->ms, (size_t)s->n, sizeof s->ms[0], samples_ascending);
    const double median = s->ms[s->n / 2];
    printf("%-44s %9.2f %9.2f %9.2f", what, median, s->ms[0], s->ms[s->n - 1]);
    if (aim_ms > 0)
        printf(" %9.0f %8.2f", aim_ms, median / aim_ms);
    printf("\n");
    fflush(stdout);
    return median;
}

static inline int bench_fail(const char *what, const struct err *err)
{
    fprintf(stderr, "bench: %s: %s%s%s\n", what, err->where, err->where[0] ? ": " : "", err->message);
    return 3;
}

#endif
