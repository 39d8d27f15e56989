/* attnscope bench --rank: which of several kernels is the fastest that is right. */
#ifndef CLI_BENCH_RANK_H
#define CLI_BENCH_RANK_H

#include "cli/options.h"

/* An exit status: 1 where a kernel is wrong, 3 where one could not be built, run or timed. -1 with *err. */
int bench_rank(const struct options *o, struct err *err);

#endif
