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

bool finding_has_rule(const struct finding *f)
{
    return f->explained[0] && !f->pattern && f->share >= FINDING_WHOLE;
}

char *finding_reason(struct finding *f, size_t *bytes)
{
    size_t used = (size_t)f->reason;
    if (f->explained[0] && !f->pattern) {
        used = strlen(f->text);
        used += (size_t)snprintf(f->text + used, sizeof f->text - used, "; ");
        used = used < sizeof f->text ? used : sizeof f->text - 1;
    }
    *bytes = sizeof f->text - used;
    return f->text + used;
}

bool finding_is_open(const struct finding *f)
{
    return !f->loop && f->reason > 0 && f->found_by == FOUND_BY_RUN && (f->bare || !finding_has_rule(f));
}

unsigned findings_open(const struct judgement *j)
{
    unsigned open = 0;
    for (int i = 0; i < j->n_findings; i++)
        if (finding_is_open(&j->findings[i]))
            open |= 1u << j->findings[i].channel;
    return open;
}

/* Why, and what stands behind it. */
static void again_words(const struct found_again *found, char *out, size_t bytes)
{
    char lines[160] = "";
    size_t used;
    if (found->between) {
        used = (size_t)snprintf(out, bytes, "%s", found->in_part ? "in part " : "");
        event_reason(&found->event, out + used, bytes - used);
    }
    if (!found->between && found->has_event)
        event_lines(&found->event, 1, lines, sizeof lines);
    if (!found->between && found->has_event)
        snprintf(out, bytes, "%s in its block, %s", event_name(found->event.kind), lines);
    else if (!found->has_event && found->by == FOUND_BY_REPEAT)
        snprintf(out, bytes, "the same run gives other values each time, as a race between blocks does");
    else if (!found->has_event)
        snprintf(out, bytes, "it depends on the order of lanes and warps: a race that --checks does not see");
    used = strlen(out);
    if (found->by == FOUND_BY_REPEAT && found->has_event)
        snprintf(out + used, bytes - used, ": the same run gives other values");
    if (found->by == FOUND_BY_ORDER && found->has_event)
        snprintf(out + used, bytes - used, ": other orders of lanes and warps give other values");
    if (found->by == FOUND_BY_LOCKSTEP)
        snprintf(out + used, bytes - used,
                 "; it is right where the lanes of a warp advance together: warp-synchronous code without "
                 "__syncwarp()");
}

int finding_close(struct finding *f, const struct found_again *found)
{
    char why[300];
    struct trace_event *kept = found->has_event ? malloc(sizeof *kept) : NULL;
    if (found->has_event && !kept)
        return -1;
    if (kept)
        *kept = found->event;
    again_words(found, why, sizeof why);
    size_t bytes = 0;
    char *reason = finding_reason(f, &bytes);
    snprintf(reason, bytes, "%s (%s)", why, ways[found->by].words);
    f->again = kept;
    f->event = 0;
    f->found_by = found->by;
    return 0;
}

const char *finding_word(const struct finding *f, const struct trace *t)
{
    return f->cause != CAUSE_NONE ? cause_name(f->cause)
           : f->event             ? event_name(t->info.events[f->event - 1].kind)
           : f->again             ? event_name(f->again->kind)
           : f->found_by          ? event_name(EVENT_RACE)
                                  : f->declaration;
}

const char *finding_says(const struct finding *f, const struct trace *t)
{
    const char *word = finding_word(f, t);
    return word[0] ? word : finding_has_rule(f) ? f->rule[0].text : "";
}

void finding_lines(const struct finding *f, char out[FINDING_LINES_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < f->n_lines; i++) {
        char line[CONVENTION_LINE_BYTES];
        convention_line_words(&f->line[i], line);
        used += (size_t)snprintf(out + used, FINDING_LINES_BYTES - used, "%s%s", i ? " " : "", line);
    }
}

void finding_also(const struct finding *f, int i, char *out, size_t bytes)
{
    snprintf(out, bytes, "also explained by %s: %s", cause_formula(f->also[i]), cause_sentence(f->also[i]));
}

const struct trace_site *finding_site(const struct finding *f, const struct trace *t)
{
    return f->loop ? NULL : trace_site(t, f->channel);
}

const char *judgement_quiet(const struct judgement *j, const struct trace *t)
{
    return !judgement_any(j)    ? "nothing was recorded that can be judged"
           : j->run_incomplete  ? "everything recorded is within its bound"
           : t->info.probes_off ? "o and lse are within their bounds"
                                : "every recorded stage is within its bound";
}

const char *findings_unknown(const struct judgement *j)
{
    return j->n_findings && j->findings[j->n_findings - 1].output_right ? "no known declaration" : "no known cause";
}
