#include "engine/gpu/cuda_error.h"

#include <stdarg.h>
#include <stdio.h>

void cuda_error_text(cudaError_t status, char *text, size_t size)
{
    snprintf(text, size, "%s (%s)", cudaGetErrorString(status), cudaGetErrorName(status));
}

int cuda_error_set(struct err *err, cudaError_t status, const char *format, ...)
{
    char what[256], why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    cuda_error_text(status, why, sizeof why);
    return err_set(err, ERR_RUN, "CUDA", "%s: %s", what, why);
}
