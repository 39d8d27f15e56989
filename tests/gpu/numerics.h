/* Measures what a device's arithmetic is, as far as the oracle's bounds and the emulator of engine/base take it for
   granted: matrix products bit for bit, functions over all arguments, conversions over all codes. One row of a table
   per measurement. The device is behind an interface, so that the measuring itself can be tried without one. */
#ifndef TEST_GPU_NUMERICS_H
#define TEST_GPU_NUMERICS_H

#include "tests/gpu/numerics_function.h"
#include "tests/gpu/tensor_core_inputs.h"
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct numerics_device {
    char name[256];
    int sm;                                  /* 90; 0: no device but a file */
    char kernel_driver[32];                  /* "580.159.03"; "": not known */
    int driver, runtime;                     /* CUDA versions, times 1000 */
    unsigned function_step, conversion_step; /* of the arguments, every n-th one; 1: all of them */
    void *state;                             /* borrowed */
    /* All return 1 where done, 0 where this device has no such thing (*why says what is missing), -1 where it failed
       (*why says how). Operands as in struct vector_inputs, in their own width; out: words as in the vectors' file. */
    int (*product)(struct numerics_device *d, const struct vector_row *row, int tiles, const void *a, const void *b,
                   const void *c, uint32_t *out, const char **why);
    /* Adds arguments first, first + step, ... up to last to *w. */
    int (*function)(struct numerics_device *d, int f, uint32_t first, uint32_t last, uint32_t step,
                    struct numerics_worst *w, const char **why);
    /* Codes of arguments first, first + step, ..., n of them, in the result's own width. */
    int (*convert)(struct numerics_device *d, int conversion, uint32_t first, uint32_t step, uint32_t n, void *out,
                   const char **why);
};

/* The first CUDA device: 1, 0 where there is none, -1 where it failed. */
int numerics_cuda_open(struct numerics_device *d, const char **why);

/* The table: a TSV file, and lines for a reader on `text`. Either may be NULL. */
struct numerics_table {
    FILE *tsv, *text;                /* borrowed */
    int rows, failed, skipped, open; /* open: measured, nothing assumed of it */
};

enum numerics_status { NUMERICS_OK, NUMERICS_FAIL, NUMERICS_SKIP, NUMERICS_INFO };

struct numerics_row {
    enum numerics_status status;
    const char *section, *what, *setting; /* "product", "mma...", "normal, chain 2, C" */
    long long n, equal;                   /* elements; those that agree bit for bit, -1: not asked */
    double error, ratio;                  /* largest error, largest error / bound; negative: not asked */
    const char *error_unit;               /* "relative", "absolute" or "" */
    char note[400];                       /* where the worst lies, formula of the bound, model, why skipped */
};

/* The version in NVIDIA's /proc/driver/nvidia/version; "" where there is no such file, or no version in it. */
void numerics_driver_version(const char *path, char *out, size_t bytes);

void numerics_table_start(struct numerics_table *t, const struct numerics_device *d);
void numerics_table_row(struct numerics_table *t, const struct numerics_row *row);
/* The last line. Returns 0 if nothing failed, else 1. */
int numerics_table_end(struct numerics_table *t);

/* Each measures one part; 0, or -1 where memory or the device gave out (said in a FAIL row). */
/* search: which arithmetic fits, too. */
int numerics_products(struct numerics_device *d, struct numerics_table *t, int elements_per_row, int search);
int numerics_functions(struct numerics_device *d, struct numerics_table *t);
int numerics_conversions(struct numerics_device *d, struct numerics_table *t, int threads);
/* Writes a small file of vectors for the tests. */
int numerics_record(struct numerics_device *d, const char *path, const char **why);
/* Products from a file of vectors in place of a device. */
int numerics_replay(const char *path, struct numerics_table *t);

#ifdef __cplusplus
}
#endif
#endif
