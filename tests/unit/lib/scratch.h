/* What judging needs, once for all tests of a program. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include "engine/oracle/oracle.h"

extern struct judge_scratch *scratch;

/* Around a group of tests. */
int scratch_begin(void **state);
int scratch_end(void **state);

#endif
