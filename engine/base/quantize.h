/* Values as one-byte codes with a scale, each step an f32 operation that a GPU has too, so that both get the same bits.

   scale = amax / limit, amax being the largest magnitude of the values that share it; limit is the largest value of the
   type: 127 (u8, whose values are the code minus 128, and s8), 448 (e4m3), 57344 (e5m2). A group of zeros has scale 1.
   code = x / scale, rounded to nearest even, saturating; u8: plus 128. Or x times limit / amax, which is 1 there too.
   NaN becomes the code of NaN, and of u8 and s8, which have none, that of 0. */
#ifndef BASE_QUANTIZE_H
#define BASE_QUANTIZE_H

#include "engine/base/dtype.h"

enum quantize_by { QUANTISE_DIVISION, QUANTISE_RECIPROCAL };

struct quantizer {
    enum dtype type; /* a type of codes */
    enum quantize_by by;
    float scale, reciprocal;
};

/* The largest of amax and |x|; NaN counts for nothing. From 0 on. */
float quantize_amax(float amax, float x);
struct quantizer quantizer_of(enum dtype type, float amax, enum quantize_by by);
uint8_t quantize_code(const struct quantizer *q, float x);
/* What a code stands for, before its scale. */
float quantize_value(enum dtype type, uint8_t code);

#endif
