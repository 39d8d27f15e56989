/* Matrix products as tensor cores compute them, bit for bit: D = C + A B', A [rows][k], B [cols][k], C and D f32.
   What a model stands for is said in tensor_core.def. Valid as C and C++.

   Operands are taken apart once (tensor_core_take) and multiplied as often as needed (tensor_core_product); a single
   instruction's tile goes through tensor_core_mma.

   A NaN, inf * 0 or inf - inf gives the one NaN that GPU arithmetic returns, 0x7FFFFFFF. A sum of zero, or one that is
   cut to zero, is +0, whatever the signs; one beyond the largest f32 is infinite; results below the smallest normal f32
   are cut to its subnormals. */
#ifndef BASE_TENSOR_CORE_H
#define BASE_TENSOR_CORE_H

#include "engine/base/dtype.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tensor_core {
#define TENSOR_CORE(id, name, types, products, fraction, result, pair, parts) id,
#include "engine/base/tensor_core.def"
#undef TENSOR_CORE
    TENSOR_CORE_COUNT
};

#ifdef __cplusplus
extern "C" {
#endif

const char *tensor_core_name(enum tensor_core model); /* "h100" */
int tensor_core_from_name(const char *name);          /* enum tensor_core, or -1; NULL is no name */
/* Set of 1u << enum tensor_core of names between spaces; others than the models' are passed by. */
uint32_t tensor_cores_from_names(const char *names);
bool tensor_core_takes(enum tensor_core model, enum dtype t); /* 1 if its operands may be of type t */
/* Products in a chunk, fraction bits of the sum and of the result, as in tensor_core.def. */
void tensor_core_shape(enum tensor_core model, int *products, int *fraction, int *result);

/* Relative to the sum of |a b| over n products (subnormal factors counting as the smallest normal number of their
   format), with the accumulator's start among them: how far the model's result may lie from the exact one, whatever the
   order of the products. Each chunk cuts products + 1 terms by 2^-fraction of the largest one at most, and its sum by
   2^-result; an addition rounded to nearest errs by 2^-24. Sums that are rounded into f16 err by half of that
   2^-result: the other half is for devices whose chunks are half as long (sm_80 to 89, not measured with f16
   accumulators). */
double tensor_core_bound(enum tensor_core model, int n);

/* An operand taken apart. Views into the caller's room. */
struct tensor_core_operand {
    int rows, k;       /* k padded with zeros to whole instructions */
    float *value;      /* borrowed, [panels of 8 rows][k][8] */
    int16_t *exponent; /* borrowed, the same: of value, or that of a zero */
    int16_t
        *range; /* borrowed, [panels][2]: smallest and largest exponent there is, and 0; INT16_MIN: has NaN or inf */
};

size_t tensor_core_room(int rows, int k); /* bytes that tensor_core_take needs, aligned to 32 */
/* Element (row, i) is data[row * row_stride + i * k_stride], codes of f16, bf16, e4m3 or e5m2. */
void tensor_core_take(struct tensor_core_operand *o, void *room, enum dtype t, const void *data, int rows, int k,
                      ptrdiff_t row_stride, ptrdiff_t k_stride);

/* Rows first .. first + n - 1 of an operand, first a multiple of 8. */
struct tensor_core_operand tensor_core_rows(const struct tensor_core_operand *o, int first, int n);

/* d[i * ldd + j] = c[i * ldc + j] + sum over k of a[i][k] b[j][k]. c NULL: +0; d may be c. */
void tensor_core_product(enum tensor_core model, const struct tensor_core_operand *a,
                         const struct tensor_core_operand *b, const float *c, ptrdiff_t ldc, float *d, ptrdiff_t ldd);

/* The same over k from first to first + n alone, both multiples of what an instruction takes (tensor_core_step). */
void tensor_core_product_part(enum tensor_core model, const struct tensor_core_operand *a,
                              const struct tensor_core_operand *b, int first, int n, const float *c, ptrdiff_t ldc,
                              float *d, ptrdiff_t ldd);
/* Of models whose instructions start from zero: how many k each takes before its result is added. 0: of the others. */
int tensor_core_step(enum tensor_core model);

/* One instruction's tile: a [m][k], b [n][k] codes of type t, c [m][n], d [m][n]; m, n <= 16, k <= 32. c NULL: +0. */
void tensor_core_mma(enum tensor_core model, enum dtype t, int m, int n, int k, const void *a, const void *b,
                     const float *c, float *d);

#ifdef __cplusplus
}
#endif
#endif
