/* Device-side expectations: a value that differs is printed and counted. */
#ifndef TESTS_SIMT_CHECK_H
#define TESTS_SIMT_CHECK_H

#include <cuda_runtime.h>
#include <stdio.h>

__device__ int failures;

template <class T, class U> __device__ void check(T got, U want, const char *what, int line)
{
    if (got == want)
        return;
    atomicAdd(&failures, 1);
    printf("line %d: block %u thread %u: %s is %.9g, expected %.9g\n", line, blockIdx.x, threadIdx.x, what, (double)got,
           (double)want);
}

#define CHECK(got, want) check(got, want, #got, __LINE__)

#endif
