/* What judging needs, once for all tests of a program. */
#ifndef TEST_FIXTURE_SCRATCH_H
#define TEST_FIXTURE_SCRATCH_H

#include "engine/oracle/oracle.h"

static struct judge_scratch *scratch;

static int scratch_begin(void **state)
{
    (void)state;
    scratch = judge_scratch_new();
    return scratch ? 0 : -1;
}

static int scratch_end(void **state)
{
    (void)state;
    judge_scratch_free(scratch);
    judge_scratch_free(NULL);
    return 0;
}

#endif
