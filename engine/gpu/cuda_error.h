/* CUDA's own words, with the name a user can look up. */
#ifndef GPU_CUDA_ERROR_H
#define GPU_CUDA_ERROR_H

#include "engine/base/err.h"
#include <cuda_runtime_api.h>

/* "an illegal memory access was encountered (cudaErrorIllegalAddress)" */
void cuda_error_text(cudaError_t status, char *text, size_t size);

/* Fills *err with ERR_RUN, the words and CUDA's own behind them; -1. */
int cuda_error_set(struct err *err, cudaError_t status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
