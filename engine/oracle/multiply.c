#include "engine/oracle/multiply.h"

#include <stddef.h>
#include <string.h>
#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>
#define HAS_VECTORS
#endif

/* LINE bytes of columns for ROWS rows at a time: 12 sums in the registers of AVX2, 6 in those of AVX-512. A panel of B
   is DEPTH steps deep, so that it stays in the first cache; BLOCK rows share it. */
enum { LINE = 64, ROWS = 6, DEPTH = 256, BLOCK = 16 * ROWS };

struct shape {
    int n, m, k;
    ptrdiff_t lda, ldb;
    int transposed, add;
};

static int at_most(int x, int most)
{
    return x < most ? x : most;
}

#define REAL double
#define NAME(x) x##_f64
#define FUSED __builtin_fma
#ifdef HAS_VECTORS
#define VECTOR_256 __m256d
#define SPLAT_256 _mm256_set1_pd
#define FUSED_256 _mm256_fmadd_pd
#define VECTOR_512 __m512d
#define SPLAT_512 _mm512_set1_pd
#define FUSED_512 _mm512_fmadd_pd
#endif
#include "engine/oracle/multiply.inc"

#define REAL float
#define NAME(x) x##_f32
#define FUSED __builtin_fmaf
#ifdef HAS_VECTORS
#define VECTOR_256 __m256
#define SPLAT_256 _mm256_set1_ps
#define FUSED_256 _mm256_fmadd_ps
#define VECTOR_512 __m512
#define SPLAT_512 _mm512_set1_ps
#define FUSED_512 _mm512_fmadd_ps
#endif
#include "engine/oracle/multiply.inc"

void matrix_multiply_transposed(int n, int m, int k, double factor, const double *a, int lda, const double *b, int ldb,
                                double *c, int add)
{
    multiply_f64(&(struct shape){n, m, k, lda, ldb, 1, add}, choose_steps_f64(), factor, a, b, c);
}

void matrix_multiply(int n, int m, int k, double factor, const double *a, int lda, const double *b, int ldb, double *c,
                     int add)
{
    multiply_f64(&(struct shape){n, m, k, lda, ldb, 0, add}, choose_steps_f64(), factor, a, b, c);
}

void matrix_multiply_f32(int n, int m, int k, const float *a, const float *b, int transposed, float *c)
{
    multiply_f32(&(struct shape){n, m, k, k, transposed ? k : m, transposed, 0}, choose_steps_f32(), 1, a, b, c);
}
