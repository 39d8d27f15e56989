#include "tests/unit/lib/scratch.h"

struct judge_scratch *scratch;

int scratch_begin(void **state)
{
    (void)state;
    scratch = judge_scratch_new();
    return scratch ? 0 : -1;
}

int scratch_end(void **state)
{
    (void)state;
    judge_scratch_free(scratch);
    judge_scratch_free(NULL);
    return 0;
}
