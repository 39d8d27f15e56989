/* __half and __half2. */
#ifndef SIMT_CUDA_FP16_H
#define SIMT_CUDA_FP16_H

#include "simt_round16.h"

#define FLOAT16 __half
#define FLOAT16_RAW __half_raw
#define FLOAT16X2 __half2
#define FLOAT16X2_RAW __half2_raw
#define FLOAT16_NAME half
#define FLOAT16X2_NAME half2
#define FLOAT16_TO(bits) f16_to_f32(bits)
#define FLOAT16_FROM(x) f16_from_f32(x)
#define FLOAT16_FROM64(x) f16_from_f64(x)
#include "simt_float16.inc"

#include "simt_convert16.inc"
#undef FLOAT16
#undef FLOAT16_RAW
#undef FLOAT16X2
#undef FLOAT16X2_RAW
#undef FLOAT16_NAME
#undef FLOAT16X2_NAME
#undef FLOAT16_TO
#undef FLOAT16_FROM
#undef FLOAT16_FROM64

typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;
typedef __half nv_half;
typedef __half2 nv_half2;

static inline __half2 __half2half2(__half a)
{
    return __half2(a, a);
}

static inline __half2 make_half2(__half x, __half y)
{
    return __half2(x, y);
}

#define CUDART_INF_FP16 __ushort_as_half(0x7C00u)
#define CUDART_NAN_FP16 __ushort_as_half(0x7FFFu)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001u)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7BFFu)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000u)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000u)
#define CUDART_ONE_FP16 __ushort_as_half(0x3C00u)

#endif
