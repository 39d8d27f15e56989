#include "engine/oracle/multiply.h"

#include "engine/base/vector.h"
#include <stdbool.h>
#include <string.h>
#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>
#define HAS_VECTORS
#endif

/* LINE bytes of columns for ROWS rows at a time: 12 sums in the registers of AVX2, 6 in those of AVX-512; for FEW_ROWS
   where no more are left, as in a tile of 64 rows. A panel of B is DEPTH steps deep, so that it stays in the first
   cache; BLOCK rows share it. */
enum { LINE = 64, ROWS = 6, FEW_ROWS = 4, DEPTH = 256, BLOCK = 16 * ROWS };

struct shape {
    int n, m, k;
    ptrdiff_t lda, ldb;
    int transposed, add;
    int packed; /* B is in panels */
};

/* A line of columns from col on, or two (`cols` of each), for rows from `first` on, depth steps from `from` on. */
struct panel {
    int col, cols, lines, first, rows, from, depth;
    const void *next; /* what is taken behind it, which may come from afar; NULL: not known */
};

static int at_most(int x, int most)
{
    return x < most ? x : most;
}

/* Turns rows of B into the lines of a panel, as many steps of k as come together; returns how many. */
static int turn_f64(const double *b, ptrdiff_t ldb, int k, double *panel)
{
    int done = 0;
#ifdef HAS_VECTORS
    enum { COLS = LINE / sizeof(double) };
    for (; done + 2 <= k; done += 2)
        for (int j = 0; j < COLS; j += 2) {
            const __m128d x = _mm_loadu_pd(b + j * ldb + done), y = _mm_loadu_pd(b + (j + 1) * ldb + done);
            _mm_store_pd(panel + (ptrdiff_t)done * COLS + j, _mm_unpacklo_pd(x, y));
            _mm_store_pd(panel + (ptrdiff_t)(done + 1) * COLS + j, _mm_unpackhi_pd(x, y));
        }
#endif
    return done;
}

static int turn_f32(const float *b, ptrdiff_t ldb, int k, float *panel)
{
    int done = 0;
#ifdef HAS_VECTORS
    enum { COLS = LINE / sizeof(float) };
    for (; done + 4 <= k; done += 4)
        for (int j = 0; j < COLS; j += 4) {
            const float *from = b + j * ldb + done;
            __m128 x = _mm_loadu_ps(from), y = _mm_loadu_ps(from + ldb), z = _mm_loadu_ps(from + 2 * ldb),
                   w = _mm_loadu_ps(from + 3 * ldb);
            _MM_TRANSPOSE4_PS(x, y, z, w);
            float *to = panel + (ptrdiff_t)done * COLS + j;
            _mm_store_ps(to, x);
            _mm_store_ps(to + COLS, y);
            _mm_store_ps(to + (ptrdiff_t)2 * COLS, z);
            _mm_store_ps(to + (ptrdiff_t)3 * COLS, w);
        }
#endif
    return done;
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
    multiply_f64(&(struct shape){n, m, k, lda, ldb, 1, add, 0}, choose_steps_f64(), factor, a, b, c);
}

void matrix_multiply(int n, int m, int k, double factor, const double *a, int lda, const double *b, int ldb, double *c,
                     int add)
{
    multiply_f64(&(struct shape){n, m, k, lda, ldb, 0, add, 0}, choose_steps_f64(), factor, a, b, c);
}

size_t matrix_packed(int m, int k)
{
    return ((size_t)m * sizeof(float) + LINE - 1) / LINE * (LINE / sizeof(float)) * (size_t)k;
}

void matrix_pack(int m, int k, const double *b, int transposed, double *panels)
{
    pack_all_f64(&(struct shape){0, m, k, 0, transposed ? k : m, transposed, 0, 0}, b, panels);
}

void matrix_multiply_packed(int n, int m, int k, double factor, const double *a, const double *panels, double *c)
{
    multiply_f64(&(struct shape){n, m, k, k, 0, 0, 0, 1}, choose_steps_f64(), factor, a, panels, c);
}

void matrix_multiply_f32(int n, int m, int k, const float *a, const float *b, int transposed, float *c)
{
    multiply_f32(&(struct shape){n, m, k, k, transposed ? k : m, transposed, 0, 0}, choose_steps_f32(), 1, a, b, c);
}

void matrix_pack_f32(int m, int k, const float *b, int transposed, float *panels)
{
    pack_all_f32(&(struct shape){0, m, k, 0, transposed ? k : m, transposed, 0, 0}, b, panels);
}

void matrix_multiply_packed_f32(int n, int m, int k, const float *a, const float *panels, float *c)
{
    multiply_f32(&(struct shape){n, m, k, k, 0, 0, 0, 1}, choose_steps_f32(), 1, a, panels, c);
}
