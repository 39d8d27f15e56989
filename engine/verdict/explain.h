/* The rule that explains a stage which no named cause does. */
#ifndef VERDICT_EXPLAIN_H
#define VERDICT_EXPLAIN_H

#include "engine/oracle/search/search.h"
#include "engine/verdict/judgement.h"

/* Rules of stages that were explained before, [n]. */
struct known_rules {
    struct rule rule[ASC_CHANNELS];
    int n;
};

/* Searches on at most ten slots of the stage, those that are wrong first. known: may be NULL. -1 where memory ran out.
 */
int judgement_explain(const struct judgement *j, const struct trace *t, enum asc_channel ch, struct searchers by,
                      const struct known_rules *known, struct explanation *out);

#endif
