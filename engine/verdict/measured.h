/* Declarations that are measured and tried, not listed: where O and LSE are right and a stage is not what was declared,
   the captured values say what would be. */
#ifndef VERDICT_MEASURED_H
#define VERDICT_MEASURED_H

#include "engine/trace/conventions.h"
#include "engine/verdict/judgement.h"
#include <stdbool.h>

/* Field and value of conventions.def or of the plan, and what speaks for it. */
struct declared_otherwise {
    char why[120];                                 /* "m lags by up to 7.3 (log2)" */
    char fields[DECLARATION_BYTES];                /* "m_policy = lagging, m_lag = 7.3 or more"; "": nothing fits */
    struct convention_line line[CONVENTION_LINES]; /* [n_lines]: what the kernel says then */
    int n_lines;
    bool follows;  /* the field is that of a stage above, which makes this one right as well */
    bool measured; /* in what was captured */
    bool strays;   /* m stays below the running maximum or lies above it, or alpha errs: a rule may say why */
    bool states;   /* the kv tiles are dealt to states: that is all that is wrong anywhere */
};

/* What would make each culprit of a run right whose output is. out: [ASC_CHANNELS]. -1 without memory. */
int declarations_try(const struct judgement *j, const struct trace *t, const struct summary *summary,
                     struct judge_scratch *scratch, struct declared_otherwise *out);

#endif
