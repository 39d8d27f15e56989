#include "engine/oracle/quantization/formats.h"

#include "engine/base/format.h"
#include "engine/base/quantize.h"
#include "engine/base/vector.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include <math.h>
#include <stdlib.h>

enum { BLOCK = 1024 };

double formats_limit(enum dtype type)
{
    return (double)quantize_limit(type);
}

/* Half the distance between the largest code and the one before it. */
static double half_top_step(enum dtype type)
{
    return dtype_is_step_code(type) ? 0.5 : type == DTYPE_E4M3 ? 16 : type == DTYPE_E2M1 ? 1 : 4096;
}

static bool subnormal(enum dtype type, uint8_t code)
{
    const int mantissa = type == DTYPE_E4M3   ? 3
                         : type == DTYPE_E2M1 ? 1
                                              : 2,
              magnitude = code & (type == DTYPE_E2M1 ? 0x7 : 0x7F);
    return !dtype_is_step_code(type) && magnitude && !(magnitude >> mantissa);
}

/* u8 and s8 have one negative number more than positive ones. */
bool formats_beyond(enum dtype type, double y)
{
    const double most = formats_limit(type) + (dtype_is_step_code(type) && y < 0 ? 1 : 0) + half_top_step(type);
    return fabs(y) > most;
}

void formats_add(const struct format_values *v, struct format_counts *to)
{
    double number[256];
    for (int i = 0; i < 256; i++)
        number[i] = values_code(v->type, (uint8_t)i);
    to->elements += v->n;
    for (size_t i = 0; i < v->n; i++) {
        const uint8_t code = v->code[i];
        to->code[code]++;
        to->nan += !isfinite(number[code]);
        to->subnormal += (uint64_t)subnormal(v->type, code);
        if (!v->value)
            continue;
        const double value = (double)v->value[i], error = fabs(number[code] * v->scale - value);
        to->known++;
        to->saturated += formats_beyond(v->type, value / v->scale);
        to->flushed += value != 0 && number[code] == 0;
        if (!isfinite(error))
            continue;
        to->compared++;
        to->largest = fmax(to->largest, error);
        to->squares += error * error;
    }
}

double formats_rms(const struct format_counts *c)
{
    return c->compared ? sqrt(c->squares / (double)c->compared) : NAN;
}

double formats_amax(const float *value, size_t n)
{
    float top = 0;
    for (size_t i = 0; i < n; i++) {
        const float size = fabsf(value[i]);
        top = size > top && size < INFINITY ? size : top;
    }
    return (double)top;
}

double formats_headroom(enum dtype type, double scale, double amax)
{
    return log2(formats_limit(type) * scale / amax);
}

/* A number of `mantissa` stored bits whose least normal exponent is `least`: adding and taking away
   1.5 2^(exponent + 23 - mantissa) leaves those bits, rounded to nearest even, since f32 has 24. */
VECTOR_UNITS static void round_floats(int mantissa, int least, float limit, float scale, const float *restrict x, int n,
                                      float *restrict out)
{
    const float tiny = format_f32_of((uint32_t)(least + 127) << 23);
    for (int i = 0; i < n; i++) {
        const float y = x[i] / scale, size = fabsf(y) < 2 * limit ? fabsf(y) : 2 * limit;
        const float floor = size > tiny ? size : tiny;
        const float power = format_f32_of(format_f32_bits(floor) & 0x7F800000u);
        const float shift = power * (float)(1 << (23 - mantissa)) * 1.5F;
        const float rounded = (size + shift) - shift;
        out[i] = copysignf(rounded > limit ? limit : rounded, y) * scale;
    }
}

VECTOR_UNITS static void round_steps(float scale, const float *restrict x, int n, float *restrict out)
{
    for (int i = 0; i < n; i++) {
        const float y = x[i] / scale, low = y < -128.0F ? -128.0F : y, held = low > 127.0F ? 127.0F : low;
        out[i] = ((held + 0x1.8p23F) - 0x1.8p23F) * scale;
    }
}

void formats_round_trip(enum dtype type, float scale, const float *x, size_t n, float *out)
{
    for (size_t at = 0; at < n; at += BLOCK) {
        const int part = n - at < BLOCK ? (int)(n - at) : BLOCK;
        if (dtype_is_step_code(type))
            round_steps(scale, x + at, part, out + at);
        else if (type == DTYPE_E4M3)
            round_floats(3, -6, E4M3_MAX, scale, x + at, part, out + at);
        else if (type == DTYPE_E2M1)
            round_floats(1, 0, E2M1_MAX, scale, x + at, part, out + at);
        else
            round_floats(2, -14, E5M2_MAX, scale, x + at, part, out + at);
    }
}

VECTOR_UNITS static double squares_of(const float *restrict x, const float *restrict y, int n)
{
    lanes_f64 sums = {0};
    double sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes_f64 error = {(double)x[i] - (double)y[i], (double)x[i + 1] - (double)y[i + 1],
                                 (double)x[i + 2] - (double)y[i + 2], (double)x[i + 3] - (double)y[i + 3]};
        sums += error * error;
    }
    for (; i < n; i++)
        sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return lanes_sum(&sums) + sum;
}

static double error_with(enum dtype type, float scale, const float *value, size_t n)
{
    float held[BLOCK], made[BLOCK];
    double sum = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        const int part = n - at < BLOCK ? (int)(n - at) : BLOCK;
        for (int i = 0; i < part; i++)
            held[i] = isfinite(value[at + (size_t)i]) ? value[at + (size_t)i] : 0;
        formats_round_trip(type, scale, held, (size_t)part, made);
        sum += squares_of(held, made, part);
    }
    return sum;
}

float formats_best_scale(enum dtype type, const float *value, size_t n, float own, double *squares)
{
    const double natural = formats_amax(value, n) / formats_limit(type);
    float best = own;
    int best_step = 0;
    *squares = 0;
    if (natural == 0)
        return 1;
    *squares = own > 0 ? error_with(type, own, value, n) : INFINITY;
    for (int i = FORMATS_LOWEST; i <= FORMATS_HIGHEST; i++) {
        const float scale = (float)(natural * exp2(i / 8.0));
        const double sum = scale > 0 ? error_with(type, scale, value, n) : INFINITY;
        if (sum < *squares || (sum == *squares && best != own && abs(i) < abs(best_step))) {
            *squares = sum;
            best = scale;
            best_step = i;
        }
    }
    return best;
}
