/* What a second run says of a finding that the first one knows no cause of (engine/study/retry.h). */
#ifndef VERDICT_AGAIN_H
#define VERDICT_AGAIN_H

#include "engine/verdict/judgement.h"

/* What was found of a stage. by FOUND_BY_RUN: nothing. */
struct found_again {
    enum found_by by;
    bool has_event, between; /* between: where the stage's values are made */
    bool in_part;            /* the event explains some tiles of the stage alone */
    struct trace_event event;
};

const char *found_by_name(enum found_by by); /* "checks" */
/* Whether no cause, no declaration, no event and no whole rule is known of it, though it is wrong. */
bool finding_is_open(const struct finding *f);
/* Stages whose findings are; a set of 1u << enum asc_channel. */
unsigned findings_open(const struct judgement *j);
/* Says in the finding's text what was found, and keeps a copy of the event. -1 without memory. */
int finding_close(struct finding *f, const struct found_again *found);

#endif
