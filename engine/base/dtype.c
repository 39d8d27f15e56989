#include "engine/base/dtype.h"

#include "engine/base/format.h"

#include <math.h>
#include <string.h>

static const struct {
    size_t bytes;
    const char *name, *safetensors;
} types[DTYPE_COUNT] = {
#define DTYPE(id, safetensors, bytes, name) [DTYPE_##id] = {bytes, name, safetensors},
#include "engine/base/dtypes.def"
#undef DTYPE
};

/* Channels use -1 for "not recorded"; asking such a type for its size or name is answered, not crashed on. */
static bool known(enum dtype t)
{
    return (unsigned)t < DTYPE_COUNT;
}

size_t dtype_bytes(enum dtype t)
{
    return known(t) ? types[t].bytes : 0;
}

bool dtype_is_code(enum dtype t)
{
    return t == DTYPE_E4M3 || t == DTYPE_E5M2 || t == DTYPE_E2M1 || dtype_is_step_code(t);
}

bool dtype_is_step_code(enum dtype t)
{
    return t == DTYPE_U8 || t == DTYPE_S8;
}

const char *dtype_name(enum dtype t)
{
    return known(t) ? types[t].name : "none";
}

const char *dtype_safetensors(enum dtype t)
{
    return known(t) ? types[t].safetensors : "none";
}

int dtype_from_name(const char *name)
{
    for (int t = 0; name && t < DTYPE_COUNT; t++)
        if (strcmp(types[t].name, name) == 0)
            return t;
    return -1;
}

/* Element i of an array; memcpy since a tensor in a mapped file need not be aligned to its type. */
#define LOAD(type, array, i)                                                                                           \
    type value;                                                                                                        \
    memcpy(&value, (const unsigned char *)(array) + (i) * sizeof value, sizeof value)

#define STORE(array, i, value) memcpy((unsigned char *)(array) + (i) * sizeof(value), &(value), sizeof(value))

static uint16_t load_16(const void *array, size_t i)
{
    LOAD(uint16_t, array, i);
    return value;
}

static uint32_t load_32(const void *array, size_t i)
{
    LOAD(uint32_t, array, i);
    return value;
}

static uint64_t load_64(const void *array, size_t i)
{
    LOAD(uint64_t, array, i);
    return value;
}

double dtype_load(enum dtype t, const void *array, size_t i)
{
    switch (t) {
    case DTYPE_F16:
        return f16_to_f64(load_16(array, i));
    case DTYPE_BF16:
        return bf16_to_f64(load_16(array, i));
    case DTYPE_F32:
        return (double)format_f32_of(load_32(array, i));
    case DTYPE_F64:
        return format_f64_of(load_64(array, i));
    case DTYPE_E4M3:
        return (double)e4m3_to_f32(((const uint8_t *)array)[i]);
    case DTYPE_E5M2:
        return (double)e5m2_to_f32(((const uint8_t *)array)[i]);
    case DTYPE_E2M1:
        return (double)e2m1_to_f32(((const uint8_t *)array)[i]);
    case DTYPE_E8M0:
        return (double)e8m0_to_f32(((const uint8_t *)array)[i]);
    case DTYPE_U8:
        return (double)((const uint8_t *)array)[i];
    case DTYPE_S8:
        return (double)((const int8_t *)array)[i];
    case DTYPE_I32: {
        LOAD(int32_t, array, i);
        return (double)value;
    }
    case DTYPE_I64: {
        LOAD(int64_t, array, i);
        return (double)value;
    }
    case DTYPE_COUNT:
        break;
    }
    return NAN;
}

/* Converting what the integer type cannot hold is undefined in C (6.3.1.4). high is the first power of two that is too
   large: exact as a double, which INT64_MAX is not. */
static int64_t clamp_integer(double value, double low, double high, int64_t max)
{
    if (isnan(value))
        return 0;
    if (value >= high)
        return max;
    return value <= low ? (int64_t)low : (int64_t)value;
}

void dtype_store(enum dtype t, void *array, size_t i, double value)
{
    switch (t) {
    case DTYPE_F16: {
        const uint16_t code = f16_from_f64(value);
        STORE(array, i, code);
        break;
    }
    case DTYPE_BF16: {
        const uint16_t code = bf16_from_f64(value);
        STORE(array, i, code);
        break;
    }
    case DTYPE_F32: {
        const float rounded = (float)value;
        STORE(array, i, rounded);
        break;
    }
    case DTYPE_F64:
        STORE(array, i, value);
        break;
    case DTYPE_E4M3:
        ((uint8_t *)array)[i] = e4m3_from_f64(value, 1);
        break;
    case DTYPE_E5M2:
        ((uint8_t *)array)[i] = e5m2_from_f64(value, 1);
        break;
    case DTYPE_E2M1:
        ((uint8_t *)array)[i] = e2m1_from_f64(value);
        break;
    case DTYPE_E8M0:
        ((uint8_t *)array)[i] = e8m0_from_f32((float)value);
        break;
    case DTYPE_U8:
        ((uint8_t *)array)[i] = (uint8_t)clamp_integer(value, 0, 0x1p8, UINT8_MAX);
        break;
    case DTYPE_S8:
        ((int8_t *)array)[i] = (int8_t)clamp_integer(value, INT8_MIN, 0x1p7, INT8_MAX);
        break;
    case DTYPE_I32: {
        const int32_t integer = (int32_t)clamp_integer(value, -0x1p31, 0x1p31, INT32_MAX);
        STORE(array, i, integer);
        break;
    }
    case DTYPE_I64: {
        const int64_t integer = clamp_integer(value, -0x1p63, 0x1p63, INT64_MAX);
        STORE(array, i, integer);
        break;
    }
    case DTYPE_COUNT:
        break;
    }
}

double error_larger(double a, double b)
{
    return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
}

bool dtype_has_unwritten(enum dtype t)
{
    return t == DTYPE_F16 || t == DTYPE_BF16 || t == DTYPE_F32 || t == DTYPE_F64;
}

uint16_t dtype_unwritten_pattern(enum dtype t)
{
    return dtype_has_unwritten(t) ? UNWRITTEN_16 : t == DTYPE_E4M3 || t == DTYPE_E5M2 ? 0x7F7Fu : 0;
}

bool dtype_is_unwritten(enum dtype t, const void *array, size_t i)
{
    switch (t) {
    case DTYPE_F16:
    case DTYPE_BF16:
        return load_16(array, i) == UNWRITTEN_16;
    case DTYPE_F32:
        return load_32(array, i) == UNWRITTEN_32;
    case DTYPE_F64:
        return load_64(array, i) == UNWRITTEN_64;
    default:
        return false;
    }
}

uint16_t dtype_nobodys(enum dtype t, const void *array, size_t i)
{
    /* f32: the pattern itself, and the 16 bits of an f16 (mantissa 13 places up) or a bf16 (16 up) as they are widened;
       an operation sets the quiet bit of what was a signalling NaN. */
    static const uint16_t narrow[] = {UNWRITTEN_16, POISON_16, ARRAY_POISON_16, UNFINISHED_16, UNUSED_16};
    const uint32_t quiet = 0x00400000u, sign = 0x80000000u;
    for (size_t k = 0; k < sizeof narrow / sizeof narrow[0]; k++) {
        const uint32_t code = narrow[k], forms[] = {code << 16 | code, 0x7F800000u | (code & 0x3FFu) << 13, code << 16};
        if (t == DTYPE_F16 && (load_16(array, i) & 0x7FFFu) == code)
            return narrow[k];
        if (t == DTYPE_BF16 && ((load_16(array, i) & 0x7FFFu) | quiet >> 16) == (code | quiet >> 16))
            return narrow[k];
        for (size_t f = 0; t == DTYPE_F32 && f < sizeof forms / sizeof forms[0]; f++)
            if (((load_32(array, i) & ~sign) | quiet) == (forms[f] | quiet))
                return narrow[k];
    }
    return dtype_is_unwritten(t, array, i) ? UNWRITTEN_16 : 0;
}

double dtype_ulp(enum dtype t, double x)
{
    /* Significand bits behind the point, exponent of the smallest normal number. */
    static const struct {
        int bits, least;
    } formats[DTYPE_COUNT] = {
        [DTYPE_F16] = {10, -14}, [DTYPE_BF16] = {7, -126}, [DTYPE_F32] = {23, -126}, [DTYPE_F64] = {52, -1022},
        [DTYPE_E4M3] = {3, -6},  [DTYPE_E5M2] = {2, -14},  [DTYPE_E2M1] = {1, 0}};
    int exponent = 0;
    if (!isfinite(x))
        return NAN;
    if (formats[t].bits == 0)
        return 1;
    frexp(x, &exponent); /* x = [0.5, 1) 2^exponent */
    exponent = x == 0 || exponent - 1 < formats[t].least ? formats[t].least : exponent - 1;
    return ldexp(1, exponent - formats[t].bits);
}
