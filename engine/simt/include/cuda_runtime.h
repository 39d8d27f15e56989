/* What ordinary host code around a kernel uses of the CUDA runtime: there is one device, its memory is the host's, a
   launch has ended when it returns. */
#ifndef SIMT_CUDA_RUNTIME_H
#define SIMT_CUDA_RUNTIME_H

#include "simt_runtime.h"

#include "vector_functions.h"
#include "vector_types.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* Registers are not known here: 0. */
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, maxDynamicSharedSizeBytes;
};

template <class F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, F *)
{
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->ptxVersion = attributes->binaryVersion = 90;
    attributes->maxDynamicSharedSizeBytes = SIMT_SHARED_MAX;
    return cudaSuccess;
}

/* As an H100 has them. With fewer a persistent kernel's block comes to its second tile in a small launch. */
static inline int simt_multiprocessors()
{
    const char *asked = getenv("ATTNSCOPE_SMS");
    const int n = asked ? atoi(asked) : 0;
    return n > 0 ? n : 132;
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
        *value = simt_multiprocessors();
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
    p.multiProcessorCount = simt_multiprocessors();
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

enum {
    cudaStreamDefault = 0,
    cudaStreamNonBlocking = 1,
    cudaEventDefault = 0,
    cudaEventBlockingSync = 1,
    cudaEventDisableTiming = 2
};

static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    return cudaStreamCreate(stream);
}

static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
    return cudaStreamCreate(stream);
}

static inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0)
{
    return cudaSuccess;
}

static inline cudaError_t cudaStreamQuery(cudaStream_t)
{
    return cudaGetLastError();
}

/* An event is the time at which it was recorded last. */
struct CUevent_st {
    timespec at;
};

static inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned = 0)
{
    *event = new CUevent_st();
    return cudaSuccess;
}

static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    return cudaEventCreate(event);
}

static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr)
{
    return clock_gettime(CLOCK_MONOTONIC, &event->at) ? cudaErrorUnknown : cudaSuccess;
}

static inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaGetLastError();
}

static inline cudaError_t cudaEventQuery(cudaEvent_t)
{
    return cudaGetLastError();
}

static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    *ms = 1e3f * (float)(end->at.tv_sec - begin->at.tv_sec) + 1e-6f * (float)(end->at.tv_nsec - begin->at.tv_nsec);
    return cudaSuccess;
}

static inline cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

static inline cudaError_t cudaDeviceReset()
{
    return cudaSuccess;
}

enum cudaFuncCache {
    cudaFuncCachePreferNone,
    cudaFuncCachePreferShared,
    cudaFuncCachePreferL1,
    cudaFuncCachePreferEqual
};
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize };

static inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache)
{
    return cudaSuccess;
}

static inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t)
{
    return cudaSuccess;
}

template <class F> static inline cudaError_t cudaFuncSetCacheConfig(F *, cudaFuncCache)
{
    return cudaSuccess;
}

static inline cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

static inline cudaError_t cudaDriverGetVersion(int *version)
{
    return cudaRuntimeGetVersion(version);
}

/* A multiprocessor of compute capability 9.0 by its threads and shared memory alone: registers are not known here. */
template <class F>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *, int threads,
                                                                        size_t shared_bytes)
{
    const int by_threads = 2048 / (threads > 0 ? threads : 2048);
    const size_t by_memory = 228 * 1024 / (shared_bytes + 1024); /* 1 KB of each block is the system's */
    *blocks = by_memory < (size_t)by_threads ? (int)by_memory : by_threads < 32 ? by_threads : 32;
    return cudaSuccess;
}

/* No stream is ever captured into a graph. */
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1 };
static inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status)
{
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

static inline cudaError_t cudaStreamDestroy(cudaStream_t)
{
    return cudaSuccess;
}

template <class T> static inline cudaError_t cudaMalloc(T **memory, size_t bytes)
{
    *memory = static_cast<T *>(bytes ? simt_allocate(bytes) : nullptr);
    return *memory || !bytes ? cudaSuccess : cudaErrorMemoryAllocation;
}

static inline cudaError_t cudaFree(void *memory)
{
    return !memory || simt_release(memory) ? cudaSuccess : cudaErrorInvalidValue;
}

template <class T> static inline cudaError_t cudaMallocManaged(T **memory, size_t bytes, unsigned = 1)
{
    return cudaMalloc(memory, bytes);
}

template <class T> static inline cudaError_t cudaMallocAsync(T **memory, size_t bytes, cudaStream_t)
{
    return cudaMalloc(memory, bytes);
}

static inline cudaError_t cudaFreeAsync(void *memory, cudaStream_t)
{
    return cudaFree(memory);
}

template <class T> static inline cudaError_t cudaMallocHost(T **memory, size_t bytes, unsigned = 0)
{
    *memory = static_cast<T *>(malloc(bytes));
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

template <class T> static inline cudaError_t cudaHostAlloc(T **memory, size_t bytes, unsigned flags)
{
    return cudaMallocHost(memory, bytes, flags);
}

static inline cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

enum { cudaHostRegisterDefault };

static inline cudaError_t cudaHostRegister(void *, size_t, unsigned)
{
    return cudaSuccess;
}

static inline cudaError_t cudaHostUnregister(void *)
{
    return cudaSuccess;
}

static inline cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = (size_t)1 << 36;
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

static inline cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                       size_t height, cudaMemcpyKind)
{
    for (size_t row = 0; row < height; row++)
        memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                            size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t = nullptr)
{
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
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
