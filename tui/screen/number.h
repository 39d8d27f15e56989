/* Numbers in columns of a fixed width. */
#ifndef SCREEN_NUMBER_H
#define SCREEN_NUMBER_H

#include <stddef.h>

#define NUMBER_BYTES 32

/* A signed value in at most `width` (7 or more) columns: fixed point where that shows two digits or more, else with an
   exponent. "+0.021025", "-2.1e-05", "-inf", "nan". Returns out. */
const char *number_signed(char out[NUMBER_BYTES], double value, int width);
/* A ratio in a few columns: "0.07", "7.4e3", "inf". */
const char *number_ratio(char out[NUMBER_BYTES], double value);

#endif
