/* Numbers that a kernel's author would know: what a fitted factor is recognized as. */
#ifndef SEARCH_CONSTANT_H
#define SEARCH_CONSTANT_H

#include "engine/oracle/oracle.h"
#include <stdbool.h>

enum { CONSTANT_BYTES = 64 };

/* The cheapest known number within `off` of x, its name and its bits; false: none. words may be NULL. */
bool constant_near(const struct oracle_case *c, double x, double off, double *value, double *bits, char *words);

/* The number, and its name where it has one, or two: "0.125 (the softmax scale)". */
void constant_say(const struct oracle_case *c, double x, char *out, size_t bytes);

/* Bits of a number that nobody knows: the study's price. */
enum { CONSTANT_UNKNOWN_BITS = 24 };

#endif
