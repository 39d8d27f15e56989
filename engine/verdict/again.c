#include "engine/verdict/again.h"

#include "engine/verdict/reports.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *words;
} ways[] = {
#define FOUND_BY(id, name, words) [FOUND_BY_##id] = {name, words},
#include "engine/verdict/found_by.def"
#undef FOUND_BY
};

const char *found_by_name(enum found_by by)
{
    return ways[by].name;
}

bool finding_is_open(const struct finding *f)
{
    const bool has_rule = f->explained[0] && !f->pattern && f->share >= FINDING_WHOLE;
    return !f->loop && f->reason > 0 && !f->output_right && !f->event && f->found_by == FOUND_BY_RUN && !has_rule;
}

unsigned findings_open(const struct judgement *j)
{
    unsigned open = 0;
    for (int i = 0; i < j->n_findings; i++)
        if (finding_is_open(&j->findings[i]))
            open |= 1u << j->findings[i].channel;
    return open;
}

int finding_close(struct finding *f, enum found_by by, const struct trace_event *event)
{
    char reason[200];
    struct trace_event *kept = malloc(sizeof *kept);
    if (!kept)
        return -1;
    *kept = *event;
    event_reason(event, reason, sizeof reason);
    snprintf(f->text + f->reason, sizeof f->text - (size_t)f->reason, "%s (%s)", reason, ways[by].words);
    f->again = kept;
    f->found_by = by;
    return 0;
}
