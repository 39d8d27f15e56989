/* Words of findings that are made, and of a run without any. */
#include "engine/verdict/judgement.h"

#include "engine/verdict/reports.h"
#include <stdio.h>

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
