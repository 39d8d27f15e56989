/* Isolation: a run in which every probe up to a stage first records what the kernel computed and then overwrites it
   with fed values. The stage is then seen at work on exact inputs, and what follows at work on its exact output: a
   culprit stays wrong, and what only passed its error on heals. */
#ifndef STUDY_ISOLATION_H
#define STUDY_ISOLATION_H

#include "engine/base/err.h"
#include "engine/verdict/judgement.h"

struct isolation_request {
    unsigned stages; /* set of 1u << enum asc_channel: what is isolated */
    char name[32];   /* "S", "softmax" */
    char feed[600];  /* a saved trace; "": the reference */
};

struct isolation {
    struct isolation_request asked; /* of the isolated run that is shown */
    /* Borrowed from the session's runs: the ordinary run that it is of. NULL: that is the one shown. */
    struct trace *trace;
    struct judgement *judgement; /* borrowed, of that */
};

/* A channel's name or one of the groups; feed NULL or "reference": the reference. ERR_USAGE lists the names. */
int isolation_parse(const char *stage, const char *feed, struct isolation_request *out, struct err *err);
void isolation_of_stage(enum asc_channel ch, struct isolation_request *out);

struct isolation_group {
    const char *name, *meaning;
    unsigned stages;
};
const struct isolation_group *isolation_group(int i); /* from 0; NULL behind the last */

/* What has to be fed to isolate these stages in a run like t: every recorded channel up to the last of them; O and LSE,
   which nothing follows, never. */
uint32_t isolation_channels(unsigned stages, const struct trace *t);

enum stage_state { STATE_NONE, STATE_OK, STATE_WRONG, STATE_UPSTREAM };
const char *stage_state_word(enum stage_state state); /* "ok", "wrong", "wrong upstream", "not recorded" */
enum stage_state isolation_state(const struct summary *summary, enum asc_channel ch);

enum effect { EFFECT_NONE, EFFECT_AS_BEFORE, EFFECT_HEALED, EFFECT_STILL_WRONG, EFFECT_WRONG_NOW };
const char *effect_word(enum effect effect); /* "as before", "healed", ... ; "" for EFFECT_NONE */
enum effect isolation_effect(const struct summary *before, const struct summary *after, enum asc_channel ch);

/* An isolated run set beside the ordinary one. */
struct isolation_result {
    const struct isolation_request *asked; /* borrowed, as all here */
    const struct summary *before, *after;
    const struct trace *trace; /* the isolated one */
};

/* One line: "S still wrong on exact Q, K; m..LSE heal". */
void isolation_line(const struct isolation_result *r, char *out, size_t bytes);

enum { ISOLATION_SENTENCES = ASC_CHANNELS + 8, ISOLATION_SENTENCE_BYTES = 256 };
/* The same in whole sentences, and what could not be fed; returns how many. */
int isolation_sentences(const struct isolation_result *r, char out[ISOLATION_SENTENCES][ISOLATION_SENTENCE_BYTES]);

/* The labels of a set of stages, "S", "m, l", "m..LSE"; fed ones as isolation_channels() gives them. */
void isolation_labels(unsigned stages, char *out, size_t bytes);

#endif
