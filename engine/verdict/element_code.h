/* An element that is a code: what was quantized, to what, and what stands beside it. */
#ifndef VERDICT_ELEMENT_CODE_H
#define VERDICT_ELEMENT_CODE_H

#include "engine/verdict/judgement.h"

struct code_neighbor {
    bool is; /* false: the code is at the end of its format */
    unsigned code;
    double value; /* with the scale */
};

struct element_code {
    enum dtype type;
    unsigned code;
    double plain, scale, value; /* of the code alone; what it is multiplied by; their product */
    double given;               /* what was quantized; NaN: not known */
    struct code_neighbor below, above;
};

/* Element (row, col) of the tile of Q, K, V or P at `place`. given: what P is by S and m, in its own unit; NaN: not
   known, and of the others unused. false: it is no code. */
bool element_code(const struct trace *t, struct place place, int row, int col, double given, struct element_code *out);

/* In lines: "code 0x3a of e4m3 is +0.8125, times the scale 0.0123 +0.01", "quantized from +0.0099: off by +1e-4
   (1.2 %)", "beside it 0x39 +0.0092 and 0x3b +0.0108". */
enum { CODE_LINES = 3, CODE_LINE_BYTES = 128 };
void element_code_words(const struct element_code *c, char out[CODE_LINES][CODE_LINE_BYTES]);

#endif
