/* Matrix products of the oracle.

   Every element is one chain in ascending k: sum = 0, then sum = fma(a[k], b[k], sum), then factor * sum. Each fma is
   rounded once, so the bits are those of every machine, whatever vector unit it has, and of any other program that
   keeps to that chain: the f64 tensor cores of a GPU do. Nothing is allocated. */
#ifndef ORACLE_MULTIPLY_H
#define ORACLE_MULTIPLY_H

#include <stddef.h>

/* C = factor * A B' (or A B), A [n][k] with rows of lda, C [n][m] packed; add: C += it. */
void matrix_multiply_transposed(int n, int m, int k, double factor, const double *a, int lda, const double *b, int ldb,
                                double *c, int add);
void matrix_multiply(int n, int m, int k, double factor, const double *a, int lda, const double *b, int ldb, double *c,
                     int add);

/* The same in f32, all packed, without a factor. */
void matrix_multiply_f32(int n, int m, int k, const float *a, const float *b, int transposed, float *c);

/* B [k][m] (transposed: [m][k]) in panels, as products take it, for those that share it. `panels` begins on a cache
   line and has room for matrix_packed() numbers. A, B and C have no gaps; C = factor * A B, or A B. */
size_t matrix_packed(int m, int k);
void matrix_pack(int m, int k, const double *b, int transposed, double *panels);
void matrix_multiply_packed(int n, int m, int k, double factor, const double *a, const double *panels, double *c);
void matrix_pack_f32(int m, int k, const float *b, int transposed, float *panels);
void matrix_multiply_packed_f32(int n, int m, int k, const float *a, const float *panels, float *c);

#endif
