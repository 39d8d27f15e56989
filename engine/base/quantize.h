/* Values as one-byte codes with a scale, each step an f32 operation that a GPU has too, so that both get the same bits.

   scale = amax / limit, amax being the largest magnitude of the values that share it; limit is the largest value of the
   type: 127 (u8, whose values are the code minus 128, and s8), 448 (e4m3), 57344 (e5m2), 6 (e2m1). A group of zeros has
   scale 1. code = x / scale, rounded to nearest even, saturating; u8: plus 128. Or x times limit / amax, which is 1
   there too. NaN becomes the code of NaN, of u8 and s8, which have none, that of 0, and of e2m1 that of 6, as in CUDA.

   Scales of a narrower type, in the place of amax / limit:
   e8m0: 2^(floor(log2 amax) - emax), emax being the exponent of limit (2, 8, 15), within 2^-127 .. 2^127; the largest
     values may saturate (OCP Microscaling Formats Specification 1.0, 6.3).
   e4m3: the value of e4m3(amax / limit / tensor), not below the least one, 2^-9, so that nothing is divided by zero;
     x is divided by it times tensor. tensor, an f32, is the amax of the tensor / (448 limit): "Pretraining Large
   Language Models with NVFP4" (arXiv:2509.25149). */
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
/* The scale of a group, of type scale_type: f32, e4m3 or e8m0; tensor counts with e4m3 alone. */
float quantize_scale(enum dtype type, enum dtype scale_type, float amax, float tensor);
float quantize_tensor_scale(enum dtype type, float amax);
/* By a scale that is known. */
struct quantizer quantizer_by(enum dtype type, float scale);
/* The largest value of a type of codes. */
float quantize_limit(enum dtype type);
uint8_t quantize_code(const struct quantizer *q, float x);
/* What a code stands for, before its scale. */
float quantize_value(enum dtype type, uint8_t code);

#endif
