/* A scenario's [budget] set against what the kernel takes without probes. */
#ifndef RUN_BUDGET_H
#define RUN_BUDGET_H

#include "engine/trace/trace.h"

enum budget_state {
    BUDGET_NOT_STATED,
    BUDGET_MET,
    BUDGET_OVER,
    BUDGET_UNJUDGED, /* on a GPU, and not known: as bad as over */
    BUDGET_NEEDS_GPU /* it ran on the CPU: neither met nor broken, and said */
};
const char *budget_state_word(enum budget_state state); /* "met", "over", "not judged" */

struct budget_verdict {
    enum budget_state state;
    int64_t most, takes;               /* -1: not known */
    const struct trace_launch *launch; /* borrowed: which takes most; NULL */
};
struct budget_verdict budget_judge(const struct trace_info *info, enum budget_item item);
/* One launch against one limit: what a view marks. */
enum budget_state budget_of_launch(const struct trace_info *info, const struct trace_launch *l, enum budget_item item);

/* 0: a limit is broken, or could not be judged on a GPU. words: one line, "" where there is no budget. */
int budget_meets(const struct trace_info *info, char *words, size_t bytes);

#endif
