#include "engine/base/quantize.h"

#include "engine/base/format.h"
#include <math.h>

#define U8_MIDPOINT 128 /* ASC_U8_MIDPOINT */

float quantize_amax(float amax, float x)
{
    const float magnitude = fabsf(x);
    return magnitude > amax ? magnitude : amax;
}

struct quantizer quantizer_of(enum dtype type, float amax, enum quantize_by by)
{
    const float limit = dtype_is_step_code(type) ? 127.0F : type == DTYPE_E4M3 ? 448.0F : 57344.0F;
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
           : type == DTYPE_S8   ? (float)(int8_t)code
                                : (float)(code - U8_MIDPOINT);
}
