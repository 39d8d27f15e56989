/* What ordinary host code around a kernel uses of the CUDA runtime: there is one device, its memory is the host's, a
   launch has ended when it returns. */
#ifndef SIMT_CUDA_RUNTIME_H
#define SIMT_CUDA_RUNTIME_H

#include "simt_runtime.h"

#include "vector_functions.h"
#include "vector_types.h"
#include <stdlib.h>
#include <string.h>

enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
};
typedef enum cudaError cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
    cudaFuncAttributeNonPortableClusterSizeAllowed = 13
};

enum cudaSharedCarveout {
    cudaSharedmemCarveoutDefault = -1,
    cudaSharedmemCarveoutMaxL1 = 0,
    cudaSharedmemCarveoutMaxShared = 100
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    int major, minor, multiProcessorCount, maxThreadsPerMultiProcessor;
};

/* As of the last launch. Unlike CUDA's, the error stays until the next one. */
static inline cudaError_t cudaGetLastError()
{
    return simt_error() ? cudaErrorLaunchFailure : cudaSuccess;
}

static inline cudaError_t cudaPeekAtLastError()
{
    return cudaGetLastError();
}

static inline const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define SIMT_ERROR(name)                                                                                               \
    case name:                                                                                                         \
        return #name;
        SIMT_ERROR(cudaSuccess)
        SIMT_ERROR(cudaErrorInvalidValue)
        SIMT_ERROR(cudaErrorMemoryAllocation)
        SIMT_ERROR(cudaErrorInvalidConfiguration)
        SIMT_ERROR(cudaErrorInvalidDevice)
        SIMT_ERROR(cudaErrorNotReady)
        SIMT_ERROR(cudaErrorLaunchFailure)
        SIMT_ERROR(cudaErrorNotSupported)
        SIMT_ERROR(cudaErrorUnknown)
#undef SIMT_ERROR
    }
    return "unrecognized error code";
}

static inline const char *cudaGetErrorString(cudaError_t error)
{
    if (error == cudaErrorLaunchFailure && simt_error())
        return simt_error();
    return error == cudaSuccess ? "no error" : cudaGetErrorName(error);
}

template <class F> static inline cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute attribute, int value)
{
    const bool too_much =
        attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && (value < 0 || (unsigned)value > SIMT_SHARED_MAX);
    return too_much ? cudaErrorInvalidValue : cudaSuccess;
}

static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = 48 * 1024;
        return cudaSuccess;
    case cudaDevAttrWarpSize:
        *value = 32;
        return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
        *value = 132;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = 228 * 1024;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = SIMT_SHARED_MAX;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int)
{
    cudaDeviceProp p = {};
    memcpy(p.name, "attnscope CPU executor", sizeof "attnscope CPU executor");
    p.totalGlobalMem = (size_t)1 << 36;
    p.sharedMemPerBlock = 48 * 1024;
    p.sharedMemPerBlockOptin = SIMT_SHARED_MAX;
    p.sharedMemPerMultiprocessor = 228 * 1024;
    p.regsPerBlock = 65536;
    p.warpSize = 32;
    p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 2147483647;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.major = 9;
    p.multiProcessorCount = 132;
    p.maxThreadsPerMultiProcessor = 2048;
    *prop = p;
    return cudaSuccess;
}

static inline cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

static inline cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

static inline cudaError_t cudaSetDevice(int device)
{
    return device ? cudaErrorInvalidDevice : cudaSuccess;
}

static inline cudaError_t cudaDeviceSynchronize()
{
    return cudaGetLastError();
}

static inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaGetLastError();
}

static inline cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    *stream = nullptr;
    return cudaSuccess;
}

static inline cudaError_t cudaStreamDestroy(cudaStream_t)
{
    return cudaSuccess;
}

template <class T> static inline cudaError_t cudaMalloc(T **memory, size_t bytes)
{
    /* 256: CUDA's own alignment, which vector loads rely on. */
    *memory = static_cast<T *>(aligned_alloc(256, (bytes + 255) & ~(size_t)255));
    return *memory || !bytes ? cudaSuccess : cudaErrorMemoryAllocation;
}

static inline cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    memmove(to, from, bytes);
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                          cudaStream_t = nullptr)
{
    return cudaMemcpy(to, from, bytes, kind);
}

static inline cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

static inline cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t = nullptr)
{
    return cudaMemset(memory, value, bytes);
}

/* A __device__ or __constant__ variable is an ordinary one. */
template <class T>
static inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                             cudaMemcpyKind = cudaMemcpyHostToDevice)
{
    if (offset > sizeof symbol || bytes > sizeof symbol - offset)
        return cudaErrorInvalidValue;
    memcpy((char *)&symbol + offset, from, bytes);
    return cudaSuccess;
}

template <class T>
static inline cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                               cudaMemcpyKind = cudaMemcpyDeviceToHost)
{
    if (offset > sizeof symbol || bytes > sizeof symbol - offset)
        return cudaErrorInvalidValue;
    memcpy(to, (const char *)&symbol + offset, bytes);
    return cudaSuccess;
}

#endif
