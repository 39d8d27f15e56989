/* What launches take: in words, the same on the screen and in text, and set against a scenario's [budget]. */
#ifndef RUN_RESOURCES_H
#define RUN_RESOURCES_H

#include "engine/trace/trace.h"
#include <stdbool.h>

/* What a kernel takes without probes against its limit. */
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

/* false: a limit is broken, or could not be judged on a GPU. words: one line, "" where there is no budget. */
bool budget_meets(const struct trace_info *info, char *words, size_t bytes);

/* The lines on a launch, in this order; each says one resource with its unit. */
enum fact {
    FACT_TIME,
    FACT_REGISTERS,
    FACT_SHARED,
    FACT_LOCAL,
    FACT_OCCUPANCY,
    FACT_ACHIEVED,
    FACT_TENSOR,
    FACT_DRAM,
    FACTS
};

const char *fact_label(enum fact fact);
/* One line; "not known", or "not counted" for counters. */
void fact_words(const struct trace_launch *l, enum fact fact, char *out, size_t bytes);
/* The budget that limits a fact, or BUDGET_ITEMS. */
enum budget_item fact_budget(enum fact fact);
/* "attention<__half, 64>, grid 8 x 8, block 128": trailing ones are left out. */
void launch_title(const struct trace_launch *l, char *out, size_t bytes);

#endif
