/* What the CUDA files of numerics share. */
#ifndef TEST_GPU_NUMERICS_CUDA_H
#define TEST_GPU_NUMERICS_CUDA_H

#include "tests/gpu/numerics.h"

/* Operands on the device; out: words, one per element. Each returns 1, or 0 where the instruction is not in the code
   for this architecture. */
struct product_arguments {
    const void *a, *b, *c;
    uint32_t *out;
    int tiles, chain;
};
int numerics_launch_warp(uint32_t instruction, const struct product_arguments *p);      /* mma.sync and WMMA */
int numerics_launch_warpgroup(uint32_t instruction, const struct product_arguments *p); /* wgmma */

int numerics_cuda_function(struct numerics_device *d, int f, uint32_t first, uint32_t last, uint32_t step,
                           struct numerics_worst *w, const char **why);
int numerics_cuda_convert(struct numerics_device *d, int conversion, uint32_t first, uint32_t step, uint32_t n,
                          void *out, const char **why);

/* 1 if no CUDA call so far failed, else -1 with CUDA's words. */
int numerics_cuda_status(const char **why);

#endif
