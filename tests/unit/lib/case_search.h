/* Names that the search gives for runs of the test kernels, each a head of its own. */
#ifndef TEST_CASE_SEARCH_H
#define TEST_CASE_SEARCH_H

#include "engine/oracle/search/search.h"
#include "tests/unit/lib/oracle_kernel.h"

/* named: gets the name of the rule of a stage, if it has one; said: what the rule says, may be NULL. */
void case_search(struct kernel_run *const *run, int n, enum asc_channel ch, struct judge_scratch *scratch,
                 bool named[CAUSE_COUNT], char *said);

#endif
