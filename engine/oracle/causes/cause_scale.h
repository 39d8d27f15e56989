/* What a kernel may take for the scale, the zero point or the format of a code. */
#ifndef CAUSES_CAUSE_SCALE_H
#define CAUSES_CAUSE_SCALE_H

#include "engine/oracle/causes/cause.h"

/* A scale that is left out, applied twice, or another one: the parameter says which. */
enum cause_scale { SCALE_MISSING, SCALE_TWICE, SCALE_OTHER };

/* What row r of the input of channel q, k or v is then multiplied by. NaN: there is no such scale. */
double cause_scale(const struct oracle_case *c, enum asc_channel ch, enum cause_scale wrong, int parameter, int r);
/* The same where Q and K have their scales at one place: the parameter says whose is wrong, the other's is right. */
double cause_scale_of_pair(const struct oracle_case *c, enum asc_channel ch, enum cause_scale wrong, int parameter,
                           int r);

enum cause_format { FORMAT_U8, FORMAT_I8, FORMAT_E4M3, FORMAT_E5M2, FORMATS };
double cause_decode(enum cause_format format, uint8_t code);

struct cause_zero_point {
    double z;
    int of_q, of_k;
};
struct cause_zero_point cause_code_zero_point(int parameter);

#endif
