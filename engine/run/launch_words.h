/* What a launch takes, in words: the same on the screen and in text. */
#ifndef RUN_LAUNCH_WORDS_H
#define RUN_LAUNCH_WORDS_H

#include "engine/trace/launch.h"

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
