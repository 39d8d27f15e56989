/* The test kernel's parts, for each other. */
#ifndef TESTS_ORACLE_PARTS_H
#define TESTS_ORACLE_PARTS_H

#include "tests/unit/lib/oracle_kernel.h"

/* The kernel's state between tiles. */
struct state {
    float *q, *m, *l, *u; /* [br][D], [br], [br][lanes], [br][D] */
    int lanes;
    struct tensor_core_operand k, v; /* of the tile at hand, where there is a tensor core */
};

/* 1: the inputs of the test kernel are codes, its own or given ones. */
int has_codes(const struct spec *s);
int descales_operand(const struct spec *s, enum asc_channel ch);
/* The type in which q, k and v are recorded, and in which a tensor core takes them. */
enum dtype operand_dtype(const struct spec *s, enum asc_channel ch);
enum dtype core_dtype(const struct spec *s, enum asc_channel ch);
/* Element i of an input as the kernel multiplies it. */
float run_code(const struct kernel_run *run, enum asc_channel ch, size_t i);
/* What is left of the scales of a score, of P V of a tile, and of O. */
float run_scale_of_score(const struct kernel_run *run, float dot, float factor, int row, int key);
float run_scale_of_tile(const struct kernel_run *run, int kv);
float run_scale_of_o(const struct kernel_run *run);
/* The case's scale, or the kernel's, where those of Q and K are folded into it. */
float run_folded_scale(const struct kernel_run *run);
struct coding run_coding(const struct kernel_run *run, enum asc_channel ch);
float sum_products(const struct spec *s, const float *a, const float *b, int n, ptrdiff_t stride_b, float start);
/* The keys a row sees, from the definition: one after the other. */
int run_sees(const struct spec *s, int row, int key);
int run_tile_masked(const struct spec *s, int kv, int rows);
/* A number of `unit` is this many natural ones; top: what a raw one is. */
float run_natural(int unit, float top);
float run_top(const struct kernel_run *run); /* a raw number is this many natural ones */
float run_fold(const struct kernel_run *run);
/* A natural number in unit `unit`. */
float run_in_unit(const struct kernel_run *run, float x, int unit);
/* A score, in the unit of S, with its biases. */
float run_biased(const struct kernel_run *run, float score, int row, int key);
/* A plain score, in the unit of S, behind the soft cap. */
float run_cap(const struct kernel_run *run, float score);
/* Rows of an operand as a tensor core takes them: [rows][n], element (row, i) at x[row * row_stride + i * stride]. */
void *run_operand(enum dtype t, const float *x, int rows, int n, ptrdiff_t row_stride, ptrdiff_t stride,
                  struct tensor_core_operand *out);
/* out [b->rows] = start + x b', x [n] in type t. */
void run_product(enum tensor_core core, enum dtype t, const float *x, int n, const struct tensor_core_operand *b,
                 const float *start, float *out);
/* dots: what a tensor core has made of the row; NULL: there is none. */
float run_score(const struct kernel_run *run, const float *q, const float *k, const float *dots, int row, int col,
                int kv);
/* exp of a difference of two values in their units, the way kernels of that convention compute it. */
float run_exp(const struct kernel_run *run, float x, int unit, float y);
void run_record(const struct kernel_run *run, enum asc_channel ch, int kv, size_t i, float x);
float run_p_factor(const struct spec *s);
void run_tile(struct kernel_run *run, int kv, struct state *at);
float run_sink(const struct kernel_run *run);
void run_end(const struct kernel_run *run, const struct state *splits, int n);

#endif
