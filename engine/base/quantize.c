#include "engine/base/quantize.h"

#include "engine/base/format.h"
#include <math.h>

#define U8_MIDPOINT 128 /* ASC_U8_MIDPOINT */

float quantize_amax(float amax, float x)
{
    const float magnitude = fabsf(x);
    return magnitude > amax ? magnitude : amax;
}

float quantize_limit(enum dtype type)
{
    return dtype_is_step_code(type) ? 127.0F : type == DTYPE_E4M3 ? E4M3_MAX : type == DTYPE_E2M1 ? E2M1_MAX : E5M2_MAX;
}

struct quantizer quantizer_by(enum dtype type, float scale)
{
    return (struct quantizer){type, QUANTISE_DIVISION, scale, 1 / scale};
}

float quantize_scale(enum dtype type, enum dtype scale_type, float amax, float tensor)
{
    const float limit = quantize_limit(type);
    if (amax == 0)
        return 1;
    if (scale_type == DTYPE_E8M0) {
        const int shared = (int)e8m0_from_f32(amax) - ilogbf(limit);
        return e8m0_to_f32((uint8_t)(shared > 0 ? shared : 0));
    }
    if (scale_type == DTYPE_E4M3)
        return fmaxf(e4m3_to_f32(e4m3_from_f32(amax / limit / tensor, 1)), 0x1p-9F);
    return amax / limit;
}

float quantize_tensor_scale(enum dtype type, float amax)
{
    return amax == 0 ? 1 : amax / (E4M3_MAX * quantize_limit(type));
}

struct quantizer quantizer_of(enum dtype type, float amax, enum quantize_by by)
{
    const float limit = quantize_limit(type);
    if (amax == 0)
        return (struct quantizer){type, by, 1, 1};
    return (struct quantizer){type, by, amax / limit, limit / amax};
}

static uint8_t u8_of(float x)
{
    if (isnan(x))
        return U8_MIDPOINT;
    const float code = rintf(x) + (float)U8_MIDPOINT; /* below 2^24 exact, and what lies beyond saturates anyway */
    return code <= 0 ? 0 : code >= UINT8_MAX ? UINT8_MAX : (uint8_t)code;
}

uint8_t quantize_code(const struct quantizer *q, float x)
{
    const float scaled = q->by == QUANTISE_RECIPROCAL ? x * q->reciprocal : x / q->scale;
    switch (q->type) {
    case DTYPE_E4M3:
        return e4m3_from_f32(scaled, 1);
    case DTYPE_E5M2:
        return e5m2_from_f32(scaled, 1);
    case DTYPE_E2M1:
        return e2m1_from_f64((double)scaled);
    case DTYPE_S8:
        return (uint8_t)(u8_of(scaled) - U8_MIDPOINT);
    default:
        return u8_of(scaled);
    }
}

float quantize_value(enum dtype type, uint8_t code)
{
    return type == DTYPE_E4M3   ? e4m3_to_f32(code)
           : type == DTYPE_E5M2 ? e5m2_to_f32(code)
           : type == DTYPE_E2M1 ? e2m1_to_f32(code)
           : type == DTYPE_S8   ? (float)(int8_t)code
                                : (float)(code - U8_MIDPOINT);
}
