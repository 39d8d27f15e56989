/* What a run shows, in words: each fact once, in the order in which they are read. Reports, JSON and views print this
   list. */
#ifndef VERDICT_FACTS_H
#define VERDICT_FACTS_H

#include "engine/verdict/judgement.h"

enum run_fact_kind {
#define FACT(id, name) id,
#include "engine/verdict/facts.def"
#undef FACT
    FACT_KINDS
};

#define FACT_SET(kind) (1u << (kind))
#define FACTS_ALL (FACT_SET(FACT_KINDS) - 1)

enum { FACT_WORDS_BYTES = 800, FACT_AFTER_BYTES = 1440, FACT_LINE_BYTES = FACT_WORDS_BYTES + FACT_AFTER_BYTES + 512 };

/* What it points to is the list's, while the fact is taken. */
struct run_fact {
    enum run_fact_kind kind;
    bool detail; /* of the last one that is none */
    const char *words;
    struct place place;              /* which follows the words; slot -1: none does */
    int row, col;                    /* of it; -1: none */
    const char *after;               /* behind the place */
    const struct trace_site *site;   /* the probe, which comes last; NULL: not known */
    const struct trace_event *event; /* which it is about; NULL: none */
};

typedef void run_fact_take(void *ctx, const struct run_fact *fact);

/* Those of a set of kinds; j NULL: those of a run that nothing is judged of yet. */
void run_facts(const struct judgement *j, const struct trace *t, unsigned kinds, run_fact_take *take, void *ctx);
/* Those of one finding, which is the first. */
void run_facts_of(const struct judgement *j, const struct trace *t, const struct finding *f, unsigned kinds,
                  run_fact_take *take, void *ctx);
/* The words of the first one; false, and "": there is none. */
bool run_fact_first(const struct judgement *j, const struct trace *t, unsigned kinds, char out[FACT_WORDS_BYTES]);
/* The same of a finding. */
bool run_fact_first_of(const struct judgement *j, const struct trace *t, const struct finding *f, unsigned kinds,
                       char out[FACT_WORDS_BYTES]);

const char *run_fact_name(enum run_fact_kind kind);
/* "begins at batch 0, head 0, q tile 0, kv tile 0, row 0, column 0; probe at my.cu:97" */
void run_fact_line(const struct trace *t, const struct run_fact *fact, char out[FACT_LINE_BYTES]);
/* "batch 0, head 0, q tile 0, kv tile 0" */
enum { PLACE_LINE_BYTES = 96 };
void place_line(const struct trace *t, struct place place, char out[PLACE_LINE_BYTES]);

#endif
