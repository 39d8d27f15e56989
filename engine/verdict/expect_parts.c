/* Which of the things that a scenario states a run shows: the expectation, a part at a time. */
#include "engine/verdict/judgement.h"

#include "engine/scenario/scenario.h"
#include "engine/verdict/reports.h"
#include <stdio.h>
#include <string.h>

/* Nothing is stated but the verdict. A run that should end early counts as one that did as it should: by what it ended
   is for the finding. */
static struct expect bare(const struct trace *t, const struct expect *e)
{
    struct expect part = {.verdict = e->verdict, .first_channel = -1, .first = {-1, -1, -1, -1}};
    if (e->stopped[0])
        snprintf(part.stopped, sizeof part.stopped, "%s", t->info.stopped);
    else if (e->event[0]) /* so that right values do not count as no failure */
        snprintf(part.event, sizeof part.event, "%s", e->event);
    return part;
}

static enum expect_part judge(const struct judgement *j, const struct trace *t, const struct expect *part)
{
    char why[512];
    return judgement_meets(j, t, part, why, sizeof why) ? PART_RIGHT : PART_WRONG;
}

void judgement_parts(const struct judgement *j, const struct trace *t, const struct expect *e, struct expect_parts *out)
{
    struct expect part = bare(t, e);
    *out = (struct expect_parts){PART_NOT_STATED, PART_NOT_STATED, PART_NOT_STATED};
    if (e->verdict != EXPECT_FAIL || e->first_channel >= 0 || e->culprits || e->no_culprits) {
        part.first_channel = e->first_channel;
        part.culprits = e->culprits;
        part.no_culprits = e->no_culprits;
        out->stage = judge(j, t, &part);
    }
    part = bare(t, e);
    if (e->first[0] >= 0 || e->first[1] >= 0 || e->first[2] >= 0 || e->first[3] >= 0 || e->event_at[0]) {
        memcpy(part.first, e->first, sizeof part.first);
        memcpy(part.event, e->event, sizeof part.event);
        memcpy(part.event_at, e->event_at, sizeof part.event_at);
        out->tile = judge(j, t, &part);
    }
    part = bare(t, e);
    if (e->cause[0] || e->stopped[0] || (e->event[0] && e->verdict == EXPECT_FAIL)) {
        memcpy(part.cause, e->cause, sizeof part.cause);
        memcpy(part.event, e->event, sizeof part.event);
        memcpy(part.stopped, e->stopped, sizeof part.stopped);
        out->finding = judge(j, t, &part);
    }
}
