/* __nv_fp8_e4m3, __nv_fp8_e5m2, their vectors of two and four, and the conversion functions. */
#ifndef SIMT_CUDA_FP8_H
#define SIMT_CUDA_FP8_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t format)
{
    const int finite = saturate == __NV_SATFINITE;
    return format == __NV_E4M3 ? e4m3_from_f32(x, finite) : e5m2_from_f32(x, finite);
}

static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate,
                                                        __nv_fp8_interpretation_t format)
{
    const int finite = saturate == __NV_SATFINITE;
    return format == __NV_E4M3 ? e4m3_from_f64(x, finite) : e5m2_from_f64(x, finite);
}

static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t format)
{
    return __nv_cvt_float_to_fp8(f16_to_f32(x.x), saturate, format);
}

static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturate,
                                                             __nv_fp8_interpretation_t format)
{
    return __nv_cvt_float_to_fp8(bf16_to_f32(x.x), saturate, format);
}

namespace simt
{
static inline float fp8_widen(__nv_fp8_storage_t code, __nv_fp8_interpretation_t format)
{
    return format == __NV_E4M3 ? e4m3_to_f32(code) : e5m2_to_f32(code);
}

static inline __nv_fp8x2_storage_t fp8_pair(unsigned low, unsigned high)
{
    return (__nv_fp8x2_storage_t)(high << 8 | low);
}
} // namespace simt

static inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturate,
                                                            __nv_fp8_interpretation_t format)
{
    return simt::fp8_pair(__nv_cvt_float_to_fp8(x.x, saturate, format), __nv_cvt_float_to_fp8(x.y, saturate, format));
}

static inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t saturate,
                                                             __nv_fp8_interpretation_t format)
{
    return simt::fp8_pair(__nv_cvt_double_to_fp8(x.x, saturate, format), __nv_cvt_double_to_fp8(x.y, saturate, format));
}

static inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t saturate,
                                                              __nv_fp8_interpretation_t format)
{
    return __nv_cvt_float2_to_fp8x2(float2{f16_to_f32(x.x), f16_to_f32(x.y)}, saturate, format);
}

static inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw x, __nv_saturation_t saturate,
                                                                  __nv_fp8_interpretation_t format)
{
    return __nv_cvt_float2_to_fp8x2(float2{bf16_to_f32(x.x), bf16_to_f32(x.y)}, saturate, format);
}

/* Every FP8 value is an f16 value. */
static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t format)
{
    return __half_raw{f16_from_f32(simt::fp8_widen(x, format))};
}

static inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t format)
{
    return __half2_raw{__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x & 255), format).x,
                       __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), format).x};
}

/* Constructors saturate to the largest finite value, as CUDA's do. SIMT_FP8(format, interpretation) */
#define SIMT_FP8(format, interpretation)                                                                               \
    struct __nv_fp8_##format {                                                                                         \
        __nv_fp8_storage_t __x;                                                                                        \
        __nv_fp8_##format() = default;                                                                                 \
        explicit __nv_fp8_##format(float v) : __x(format##_from_f32(v, 1)) {}                                          \
        explicit __nv_fp8_##format(double v) : __x(format##_from_f64(v, 1)) {}                                         \
        explicit __nv_fp8_##format(__half v) : __x(format##_from_f32(simt::widen(v), 1)) {}                            \
        explicit __nv_fp8_##format(__nv_bfloat16 v) : __x(format##_from_f32(simt::widen(v), 1)) {}                     \
        explicit __nv_fp8_##format(int v) : __x(format##_from_f64(v, 1)) {}                                            \
        explicit __nv_fp8_##format(unsigned v) : __x(format##_from_f64(v, 1)) {}                                       \
        explicit operator float() const                                                                                \
        {                                                                                                              \
            return format##_to_f32(__x);                                                                               \
        }                                                                                                              \
        explicit operator double() const                                                                               \
        {                                                                                                              \
            return format##_to_f32(__x);                                                                               \
        }                                                                                                              \
        explicit operator __half() const                                                                               \
        {                                                                                                              \
            return __half(format##_to_f32(__x));                                                                       \
        }                                                                                                              \
        explicit operator __nv_bfloat16() const                                                                        \
        {                                                                                                              \
            return __nv_bfloat16(format##_to_f32(__x));                                                                \
        }                                                                                                              \
        explicit operator int() const                                                                                  \
        {                                                                                                              \
            return simt::to_int<int>(truncf(format##_to_f32(__x)));                                                    \
        }                                                                                                              \
        explicit operator bool() const                                                                                 \
        {                                                                                                              \
            return (__x & 127) != 0;                                                                                   \
        }                                                                                                              \
    };                                                                                                                 \
    struct __nv_fp8x2_##format {                                                                                       \
        __nv_fp8x2_storage_t __x;                                                                                      \
        __nv_fp8x2_##format() = default;                                                                               \
        explicit __nv_fp8x2_##format(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, interpretation)) {}   \
        explicit __nv_fp8x2_##format(double2 v) : __x(__nv_cvt_double2_to_fp8x2(v, __NV_SATFINITE, interpretation)) {} \
        explicit __nv_fp8x2_##format(__half2 v)                                                                        \
            : __x(__nv_cvt_halfraw2_to_fp8x2(v, __NV_SATFINITE, interpretation)) {}                                    \
        explicit __nv_fp8x2_##format(__nv_bfloat162 v)                                                                 \
            : __x(__nv_cvt_bfloat16raw2_to_fp8x2(v, __NV_SATFINITE, interpretation))                                   \
        {                                                                                                              \
        }                                                                                                              \
        explicit operator float2() const                                                                               \
        {                                                                                                              \
            return float2{format##_to_f32((uint8_t)(__x & 255)), format##_to_f32((uint8_t)(__x >> 8))};                \
        }                                                                                                              \
        explicit operator __half2() const                                                                              \
        {                                                                                                              \
            return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, interpretation));                                           \
        }                                                                                                              \
    };                                                                                                                 \
    struct __nv_fp8x4_##format {                                                                                       \
        __nv_fp8x4_storage_t __x;                                                                                      \
        __nv_fp8x4_##format() = default;                                                                               \
        explicit __nv_fp8x4_##format(float4 v)                                                                         \
        {                                                                                                              \
            const __nv_fp8x2_##format low(float2{v.x, v.y}), high(float2{v.z, v.w});                                   \
            __x = (__nv_fp8x4_storage_t)high.__x << 16 | low.__x;                                                      \
        }                                                                                                              \
        explicit operator float4() const                                                                               \
        {                                                                                                              \
            return float4{format##_to_f32((uint8_t)__x), format##_to_f32((uint8_t)(__x >> 8)),                         \
                          format##_to_f32((uint8_t)(__x >> 16)), format##_to_f32((uint8_t)(__x >> 24))};               \
        }                                                                                                              \
    };
SIMT_FP8(e4m3, __NV_E4M3)
SIMT_FP8(e5m2, __NV_E5M2)
#undef SIMT_FP8

#endif
