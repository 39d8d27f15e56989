/* Types of the driver API that headers name: CuTe's of TMA above all. Of its functions cuTensorMapEncodeTiled is here.
 */
#ifndef SIMT_CUDA_H
#define SIMT_CUDA_H

#include "cuda_runtime.h"

#define CUDA_VERSION 12090

typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUfunc_st *CUfunction;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct CUlaunchAttribute_st {
    int id;
} CUlaunchAttribute;

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999
} CUresult;

typedef struct alignas(64) CUtensorMap_st {
    unsigned long long opaque[16];
} CUtensorMap;

typedef enum CUtensorMapDataType_enum {
    CU_TENSOR_MAP_DATA_TYPE_UINT8,
    CU_TENSOR_MAP_DATA_TYPE_UINT16,
    CU_TENSOR_MAP_DATA_TYPE_UINT32,
    CU_TENSOR_MAP_DATA_TYPE_INT32,
    CU_TENSOR_MAP_DATA_TYPE_UINT64,
    CU_TENSOR_MAP_DATA_TYPE_INT64,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B,
    CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
    CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B
} CUtensorMapDataType;

typedef enum CUtensorMapInterleave_enum {
    CU_TENSOR_MAP_INTERLEAVE_NONE,
    CU_TENSOR_MAP_INTERLEAVE_16B,
    CU_TENSOR_MAP_INTERLEAVE_32B
} CUtensorMapInterleave;

typedef enum CUtensorMapSwizzle_enum {
    CU_TENSOR_MAP_SWIZZLE_NONE,
    CU_TENSOR_MAP_SWIZZLE_32B,
    CU_TENSOR_MAP_SWIZZLE_64B,
    CU_TENSOR_MAP_SWIZZLE_128B,
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B
} CUtensorMapSwizzle;

typedef enum CUtensorMapL2promotion_enum {
    CU_TENSOR_MAP_L2_PROMOTION_NONE,
    CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B
} CUtensorMapL2promotion;

typedef enum CUtensorMapFloatOOBfill_enum {
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
} CUtensorMapFloatOOBfill;

/* A tiled tensor map of this executor. Errors are the driver's (CUDA Driver API, cuTensorMapEncodeTiled). Element
   strides other than 1 and interleaved layouts are not here. */
static inline CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                                              const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                              const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                              CUtensorMapFloatOOBfill fill)
{
    static const uint8_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    static const uint8_t swizzles[] = {0, 32, 64, 128};
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || (unsigned)type >= sizeof element_bytes ||
        (unsigned)swizzle >= sizeof swizzles)
        return CUDA_ERROR_NOT_SUPPORTED;
    simt_tensor_map m = {};
    m.magic = SIMT_TENSOR_MAP;
    m.base = (uint64_t)(uintptr_t)base;
    m.rank = (uint8_t)rank;
    m.dtype = (uint8_t)type;
    m.element_bytes = element_bytes[type];
    m.swizzle_bytes = swizzles[swizzle];
    m.nan_outside = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
    if (rank < 1 || rank > 5 || !base || m.base % 16)
        return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i < rank; i++) {
        if (!dims[i] || dims[i] > (uint64_t)1 << 32 || !box[i] || box[i] > 256)
            return CUDA_ERROR_INVALID_VALUE;
        if (element_strides && element_strides[i] != 1)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (i && (strides[i - 1] % 16 || strides[i - 1] >= (uint64_t)1 << 40))
            return CUDA_ERROR_INVALID_VALUE;
        m.dims[i] = dims[i];
        m.box[i] = (uint16_t)box[i];
        if (i)
            m.strides[i - 1] = strides[i - 1];
    }
    const unsigned row = box[0] * m.element_bytes;
    if (row % 16 || (m.swizzle_bytes && row > m.swizzle_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    static_assert(sizeof m <= sizeof *map, "a tensor map has 128 bytes");
    *map = {};
    memcpy((void *)map, &m, sizeof m);
    return CUDA_SUCCESS;
}

template <class T> static inline CUresult simt_fill(CUdeviceptr to, T value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy((char *)(uintptr_t)to + i * sizeof value, &value, sizeof value);
    return CUDA_SUCCESS;
}
static inline CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream)
{
    return simt_fill(to, value, n);
}
static inline CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream)
{
    return simt_fill(to, value, n);
}
static inline CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream)
{
    return simt_fill(to, value, n);
}
static inline CUresult cuGetErrorString(CUresult, const char **text)
{
    *text = "an error of the driver API";
    return CUDA_SUCCESS;
}

/* There is no driver to ask for other functions. */
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
enum { cudaEnableDefault };
static inline cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long,
                                                  cudaDriverEntryPointQueryResult *found = nullptr)
{
    const bool known = strcmp(name, "cuTensorMapEncodeTiled") == 0;
    *function = known ? (void *)cuTensorMapEncodeTiled : nullptr;
    if (found)
        *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return known ? cudaSuccess : cudaErrorNotSupported;
}
static inline cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned,
                                                           unsigned long long flags,
                                                           cudaDriverEntryPointQueryResult *found = nullptr)
{
    return cudaGetDriverEntryPoint(name, function, flags, found);
}

#endif
