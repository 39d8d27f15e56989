/* What the oracle names for a run of the test kernel of causes: the same steps as a session takes. */
#ifndef TEST_CAUSE_OUTCOME_H
#define TEST_CAUSE_OUTCOME_H

#include "engine/oracle/causes/causes.h"
#include "engine/oracle/search/search.h"
#include "tests/unit/lib/cause_kernel.h"

/* What every mistake is tried on: square and oblong tiles, tails, both causal corners, every unit. And conventions. */
enum { SHAPES = 8, CONVENTIONS = 20 };
extern const struct spec shapes[SHAPES];
extern const struct convention_case {
    const char *name;
    struct spec spec;
} convention_cases[CONVENTIONS];

/* On these inputs: the first five tell much, the others little. */
enum { TELLING_FILLS = 5, CAUSE_FILLS = 8 };
extern const enum fill cause_fills[CAUSE_FILLS];

enum { Q_HEAD = 0, Q_HEADS = 2 };

struct outcome {
    unsigned culprits; /* set of 1u << channel */
    bool named[CAUSE_COUNT];
    struct cause_plan plan;
    struct cause_evidence evidence[CAUSE_COUNT];
    struct verdict worst[ASC_CHANNELS]; /* of the tile with most bad elements */
    /* P goes to V as e4m3 and is larger than e4m3 goes: then it is cut off there, whatever else is wrong. */
    bool cuts_p;
};

/* All that the run of the test kernel was given: two heads of Q, and kv heads. */
struct source *list_sources(const struct run *run);
struct search_inputs run_inputs(const struct source *sources);
/* All slots of one stage. */
void take_sample(struct run *run, enum asc_channel ch, struct judge_scratch *scratch, struct sample *sample);
int run_outcome(const struct spec *s, struct judge_scratch *scratch, struct outcome *o);
int count_names(const struct outcome *o);
void write_names(const struct outcome *o, char *text, size_t bytes);

#endif
