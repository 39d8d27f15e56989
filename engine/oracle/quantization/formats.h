/* How values fare as one-byte codes: what a format and a scale make of them, and which scale would have been best. */
#ifndef QUANTIZATION_FORMATS_H
#define QUANTIZATION_FORMATS_H

#include "engine/base/dtype.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Codes that share a scale, and what they were made from. */
struct format_values {
    enum dtype type;     /* e4m3, e5m2 or u8 */
    const uint8_t *code; /* [n] */
    const float *value;  /* [n]; NULL: not known */
    size_t n;
    double scale; /* a code stands for its value times this */
};

/* Counted over any number of groups. Zero-initialize. */
struct format_counts {
    uint64_t code[256];
    uint64_t elements;
    uint64_t nan;       /* codes that are no number: NaN, of e5m2 infinities too */
    uint64_t subnormal; /* codes below the smallest normal number of their type, zero apart; u8 has none */
    /* Of elements whose value is known. */
    uint64_t known;
    uint64_t saturated; /* values beyond the largest code's by more than half its step, NaN apart */
    uint64_t flushed;   /* values that are not 0 and have the code of 0 */
    /* Of those of them that are finite on both sides. */
    uint64_t compared;
    double largest, squares; /* |value of the code - value|, and the sum of its squares */
};
void formats_add(const struct format_values *v, struct format_counts *to);
double formats_rms(const struct format_counts *c); /* of the round trip; NaN: nothing was compared */

/* The largest magnitude of a type: 127, 448, 57344; and of n values, NaN and infinities apart. */
double formats_limit(enum dtype type);
double formats_amax(const float *value, size_t n);
/* Whether y is further beyond the largest code than rounding to nearest would put it there: more than half its step. */
bool formats_beyond(enum dtype type, double y);
/* Factors of two by which amax could grow before it passes the largest code: log2(limit scale / amax). Infinite for a
   group of zeros. */
double formats_headroom(enum dtype type, double scale, double amax);

/* The value of the code that is nearest to x / scale, times scale: what a saturating conversion in f32 gives. */
void formats_round_trip(enum dtype type, float scale, const float *x, size_t n, float *out);

/* The scale with the least sum of squared errors over n values (NaN and infinities apart), among amax / limit
   2^(i / 8), i = FORMATS_LOWEST .. FORMATS_HIGHEST, all of which are tried. A smaller scale saturates the largest
   values and spares small ones: of u8, whose step is the same for all, that pays with outliers down to about an eighth;
   of e4m3 and e5m2 only where values are flushed. A larger one never pays by more than where roundings happen to fall,
   which repeats with every factor of two. Of equals the
   nearest to amax / limit. own, a scale to be tried before all of them (0: none), is taken where none is better. A
   group of zeros has 1. */
enum { FORMATS_LOWEST = -32, FORMATS_HIGHEST = 8 };
float formats_best_scale(enum dtype type, const float *value, size_t n, float own, double *squares);

#endif
