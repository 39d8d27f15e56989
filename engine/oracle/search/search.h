/* The search for a rule that explains what a stage got wrong. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "engine/oracle/causes/causes.h"
#include "engine/oracle/search/rule.h"

enum { SENTENCE_BYTES = 384 };

enum { RULES_MOST = 2 };

/* The name of a rule that has one. */
enum cause rule_cause(const struct sample *s, const struct rule *rule);

struct explanation {
    struct rule rule[RULES_MOST]; /* [n]: the second one explains what the first leaves */
    int n;
    enum cause cause;      /* the first one's name */
    struct rule runner_up; /* of the first one: the best that says something else, or RULE_NONE */
    char said[RULES_MOST][SENTENCE_BYTES], runner_up_said[SENTENCE_BYTES];
    size_t wrong;    /* wrong elements of the sample */
    double share;    /* of the wrong elements of the sample that they explain */
    bool pattern;    /* no rule passes, but where it is wrong is a rule, `where`: text says that */
    char place[128]; /* where a pattern is: " in rows r with r mod 8 >= 4" */
    struct region where;
    size_t tried; /* rules, in the search for the first one */
    char text[RULES_MOST * SENTENCE_BYTES];
};

/* Who searches: threads, each with a scratch of its own; pool NULL: the caller alone, with scratch[0]. */
struct searchers {
    struct pool *pool;
    struct judge_scratch *const *scratch; /* [pool_threads(pool)] */
};

/* What is searched in beside the sample. */
struct search_inputs {
    const struct source *sources; /* [n_sources] */
    int n_sources, heads, kv_heads;
    const float *slopes, *sinks; /* [heads] of ALiBi; NULL: there is none */
    const int32_t *page_table;   /* as in struct asc_problem; NULL without pages */
    int page_size, table_pages;
    const struct rule *elsewhere; /* [n_elsewhere] rules of all that is wrong in other stages of the run */
    int n_elsewhere;
    struct work_items items;
    struct searchers by; /* beside the scratch that is given: nobody where it is left out */
};

/* Finds the first rule. known: one that is tried alone, on a sample that has grown since *out was found, or RULE_NONE:
   then no rule is, and the pattern is found anew; NULL: all are. -1 where memory ran out. */
int search_stage(struct sample *sample, struct judge_scratch *scratch, const struct search_inputs *inputs,
                 const struct rule *known, struct explanation *out);
/* Finds a second one for what it leaves, and puts both in words. What the first explains is marked in the sample
   then. */
int search_rest(struct sample *sample, struct judge_scratch *scratch, const struct search_inputs *inputs,
                struct explanation *out);
/* What the regions of rules, or of a pattern, hold in a sample that they were not found on, which it changes as
   search_rest() does. */
int search_check(struct sample *sample, struct judge_scratch *scratch, const struct search_inputs *inputs,
                 const struct explanation *e, struct evidence found[RULES_MOST]);

/* One sentence: what is where it should not be, and where. */
void rule_say(const struct sample *sample, const struct rule *rule, char *out, size_t bytes);
/* " in rows 32 to 63, of head 1"; "" everywhere. */
void region_say(const struct sample *sample, const struct region *region, char *out, size_t bytes);

#endif
