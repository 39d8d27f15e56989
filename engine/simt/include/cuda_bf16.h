/* __nv_bfloat16 and __nv_bfloat162. */
#ifndef SIMT_CUDA_BF16_H
#define SIMT_CUDA_BF16_H

#include "simt_round16.h"

#define FLOAT16 __nv_bfloat16
#define FLOAT16_RAW __nv_bfloat16_raw
#define FLOAT16X2 __nv_bfloat162
#define FLOAT16X2_RAW __nv_bfloat162_raw
#define FLOAT16_NAME bfloat16
#define FLOAT16X2_NAME bfloat162
#define FLOAT16_TO(bits) bf16_to_f32(bits)
#define FLOAT16_FROM(x) bf16_from_f32(x)
#define FLOAT16_FROM64(x) bf16_from_f64(x)
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

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a)
{
    return __nv_bfloat162(a, a);
}

static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat162(x, y);
}

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7F80u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7FFFu)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001u)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7F7Fu)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000u)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000u)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3F80u)

#endif
