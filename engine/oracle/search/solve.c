#include "engine/oracle/search/solve.h"

#include <math.h>
#include <stdlib.h>

/* An unknown whose pivot has lost all but 2^-30 of its diagonal follows from the others, as far as float64 can tell of
   values that were rounded to f32. */
static const double least_pivot = 0x1p-30;

void solve_symmetric(double *a, double *b, int n, int m, unsigned char *known)
{
    for (int j = 0; j < n; j++) {
        double *row = a + (size_t)j * (size_t)n, sum = row[j];
        for (int k = 0; k < j; k++)
            sum -= row[k] * row[k];
        known[j] = sum > least_pivot * row[j] && row[j] > 0;
        row[j] = known[j] ? sqrt(sum) : 0;
        for (int i = j + 1; i < n; i++) {
            double *other = a + (size_t)i * (size_t)n, dot = other[j];
            for (int k = 0; k < j; k++)
                dot -= other[k] * row[k];
            other[j] = known[j] ? dot / row[j] : 0;
        }
    }
    for (int col = 0; col < m; col++) {
        for (int i = 0; i < n; i++) {
            double x = b[(size_t)i * (size_t)m + (size_t)col];
            for (int k = 0; k < i; k++)
                x -= a[(size_t)i * (size_t)n + (size_t)k] * b[(size_t)k * (size_t)m + (size_t)col];
            b[(size_t)i * (size_t)m + (size_t)col] = known[i] ? x / a[(size_t)i * (size_t)n + (size_t)i] : 0;
        }
        for (int i = n - 1; i >= 0; i--) {
            double x = b[(size_t)i * (size_t)m + (size_t)col];
            for (int k = i + 1; k < n; k++)
                x -= a[(size_t)k * (size_t)n + (size_t)i] * b[(size_t)k * (size_t)m + (size_t)col];
            b[(size_t)i * (size_t)m + (size_t)col] = known[i] ? x / a[(size_t)i * (size_t)n + (size_t)i] : 0;
        }
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *x, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(x, n, sizeof *x, ascending);
    return x[n / 2];
}

void *search_room(struct search *search, size_t bytes)
{
    void **blocks = realloc(search->blocks, (search->n_blocks + 1) * sizeof *blocks);
    void *block = blocks ? calloc(bytes ? bytes : 1, 1) : NULL;
    search->blocks = blocks ? blocks : search->blocks;
    search->failed |= !block;
    if (block)
        search->blocks[search->n_blocks++] = block;
    return block;
}

void search_release(struct search *search)
{
    while (search->n_blocks > 0)
        free(search->blocks[--search->n_blocks]);
    search->loaded = NULL;
}
