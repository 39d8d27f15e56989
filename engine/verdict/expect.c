/* Whether a run shows what its scenario says must be found. */
#include "engine/verdict/judgement.h"

#include "engine/scenario/scenario.h"
#include "engine/verdict/reports.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void culprits_words(unsigned culprits, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i <= CULPRIT_LOOP; i++)
        if (culprits & 1u << i && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? "," : "", culprit_name(i));
}

static void channel_set(unsigned set, char *out, size_t bytes)
{
    culprits_words(set, out, bytes);
    if (!out[0])
        snprintf(out, bytes, "none");
}

static int unmet(char *why, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int unmet(char *why, size_t bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, bytes, format, args);
    va_end(args);
    return 0;
}

static const struct trace_event *first_event(const struct trace *t, event_set kinds)
{
    for (size_t i = 0; i < t->info.n_events; i++)
        if (kinds & EVENT_BIT(t->info.events[i].kind))
            return &t->info.events[i];
    return NULL;
}

/* Whether the text that was compiled has `piece` in this line. */
static bool line_has(const struct trace *t, const char *file, int line, const char *piece)
{
    const char *text = trace_source(t, file);
    if (!text || line < 1)
        return false;
    while (--line > 0 && *text) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return memmem(text, strcspn(text, "\n"), piece, strlen(piece)) != NULL;
}

/* Kinds of reports: each is there. */
static int meets_events(const struct trace *t, const struct expect *e, char *why, size_t bytes)
{
    const struct trace_event *there = t->info.n_events ? &t->info.events[0] : NULL;
    if (e->no_event && there)
        return unmet(why, bytes, "expected no event, found %s: %.200s", event_name(there->kind), there->text);
    for (int kind = 0; kind < EVENT_KINDS; kind++)
        if (e->events & EVENT_BIT(kind) && !first_event(t, EVENT_BIT(kind)))
            return unmet(why, bytes, "expected the event %s, found %s%s", event_name((enum event_kind)kind),
                         there ? "only " : "none", there ? event_name(there->kind) : "");
    return 1;
}

static int meets_clean(const struct judgement *j, const struct trace *t, const struct expect *e, char *why,
                       size_t bytes)
{
    char names[128];
    if (j->summary.unvisited)
        return unmet(why, bytes, "expected clean, found %llu kv tiles that were never visited",
                     (unsigned long long)j->summary.unvisited);
    if (j->summary.culprits) {
        channel_set(j->summary.culprits, names, sizeof names);
        return unmet(why, bytes, "expected clean, found local errors in %s", names);
    }
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (j->summary.stage[ch].bad_global)
            return unmet(why, bytes, "expected clean, found %s off globally in %llu elements", channel_name(ch),
                         (unsigned long long)j->summary.stage[ch].bad_global);
    if (t->info.capture.off)
        return unmet(why, bytes, "expected clean, found o or lse off in %lld q tiles of the first pass",
                     (long long)t->info.capture.off);
    if (!meets_events(t, e, why, bytes))
        return 0;
    if (reports_count(t)) {
        char words[256];
        reports_words(t, words, sizeof words);
        return unmet(why, bytes, "expected clean; the values are right, but reported: %s", words);
    }
    snprintf(why, bytes, "clean, as expected");
    return 1;
}

static int meets_first(const struct judgement *j, const struct trace *t, const struct expect *e, char *why,
                       size_t bytes)
{
    static const char *const axis[4] = {"batch", "head", "q tile", "kv tile"};
    const struct place first = j->summary.first;
    const int culprit = j->summary.unvisited ? CULPRIT_LOOP : (int)first.channel;
    if (e->first_channel >= 0 && culprit != e->first_channel)
        return unmet(why, bytes, "expected %s as the first bad stage, found %s%s", culprit_name(e->first_channel),
                     culprit_name(culprit), culprit == CULPRIT_LOOP ? ": kv tiles that were never visited" : "");
    const int32_t *place = trace_slot_place(t, first.slot);
    const int found[4] = {place[0], place[1], place[2], first.kv};
    for (int i = 0; i < 4; i++)
        if (e->first[i] >= 0 && e->first[i] != found[i])
            return unmet(why, bytes, "expected the first bad tile at %s %d, found %s %d", axis[i], e->first[i], axis[i],
                         found[i]);
    return 1;
}

/* Formulas that are the same on this shape all survive: any of them will do. */
static int explained_by(const struct finding *f, enum cause cause)
{
    int found = f->cause == cause;
    for (int i = 0; i < f->n_also; i++)
        found |= f->also[i] == cause;
    return found;
}

/* Each cause that is expected has to be the finding of its own stage. */
static int meets_causes(const struct judgement *j, const struct trace *t, const struct expect *e, char *why,
                        size_t bytes)
{
    char name[64];
    for (int i = 0; scenario_listed(e->cause, i, name); i++) {
        const int cause = cause_from_name(name);
        const struct finding *of = NULL;
        for (int k = 0; k < j->n_findings && !of; k++)
            if (!j->findings[k].loop &&
                (cause == CAUSE_NONE || (cause > 0 && j->findings[k].channel == cause_channel((enum cause)cause))))
                of = &j->findings[k];
        if (of && explained_by(of, (enum cause)cause))
            continue;
        return unmet(why, bytes, "expected the cause %s, found %s", name,
                     !of                      ? "that its stage is no culprit"
                     : finding_word(of, t)[0] ? finding_word(of, t)
                                              : findings_unknown(j));
    }
    return 1;
}

static bool stack_has(const struct trace *t, const struct trace_stack *stack, const char *piece)
{
    for (int i = 0; i < stack->n; i++)
        if (line_has(t, stack->at[i].file, stack->at[i].line, piece))
            return true;
    return false;
}

/* Whether it stands there, or where a run stopped is not known; *known says which. */
static bool meets_event_at(const struct trace *t, const struct expect *e, int *known, char *why, size_t bytes)
{
    const struct trace_event *event = first_event(t, e->events ? e->events : e->stopped);
    *known = event && (event->line > 0 || event->other_line > 0);
    if (!e->event_at[0] || (!*known && !e->events))
        return true;
    if (*known && (line_has(t, event->file, event->line, e->event_at) ||
                   line_has(t, event->other_file, event->other_line, e->event_at) ||
                   stack_has(t, &event->stack, e->event_at) || stack_has(t, &event->other_stack, e->event_at)))
        return true;
    char lines[EVENT_LINES_BYTES] = "";
    if (event)
        event_lines(event, 0, lines, sizeof lines);
    return unmet(why, bytes, "expected %s at the source line `%s`, found it at %s",
                 event ? event_name(event->kind) : "it", e->event_at, lines[0] ? lines : "an unknown line");
}

static bool values_bad(const struct judgement *j)
{
    return j->summary.first.slot >= 0;
}

/* What the scenario says about values. */
static int meets_values(const struct judgement *j, const struct trace *t, const struct expect *e, char *why,
                        size_t bytes)
{
    char want[128], got[128];
    const bool stated = e->first_channel >= 0 || e->culprits || e->cause[0] || e->first[0] >= 0 || e->first[1] >= 0 ||
                        e->first[2] >= 0 || e->first[3] >= 0;
    if (stated && !values_bad(j))
        return unmet(why, bytes, "expected a failure, found every recorded stage within its bound");
    if (stated && !meets_first(j, t, e, why, bytes))
        return 0;
    if ((e->culprits || e->no_culprits) && e->culprits != j->summary.culprits) {
        channel_set(e->culprits, want, sizeof want);
        channel_set(j->summary.culprits, got, sizeof got);
        return unmet(why, bytes, "expected the culprits %s, found %s", want, got);
    }
    return meets_causes(j, t, e, why, bytes);
}

static int meets_fail(const struct judgement *j, const struct trace *t, const struct expect *e, char *why, size_t bytes)
{
    if (!reports_count(t) && !values_bad(j) && !e->events)
        return unmet(why, bytes, "expected a failure, found every recorded stage within its bound");
    int known;
    if (!meets_values(j, t, e, why, bytes) || !meets_events(t, e, why, bytes) ||
        !meets_event_at(t, e, &known, why, bytes))
        return 0;
    char words[256];
    reports_words(t, words, sizeof words);
    snprintf(why, bytes, "found, as expected%s%s",
             values_bad(j) || !words[0] ? "" : ": the values are right, but reported: ", values_bad(j) ? "" : words);
    return 1;
}

/* A run that has to end early: by what, where, and what it recorded until then. */
static int meets_stopped(const struct judgement *j, const struct trace *t, const struct expect *e, char *why,
                         size_t bytes)
{
    const struct trace_info *info = &t->info;
    char kinds[EVENT_SET_BYTES];
    event_set_words(e->stopped, kinds, sizeof kinds);
    if (trace_complete(t))
        return unmet(why, bytes, "expected the run to be stopped by %s, but it completed", kinds);
    if (!(e->stopped & EVENT_BIT(info->stopped)))
        return unmet(why, bytes, "expected the run to be stopped by %s, found %s: %.300s", kinds,
                     info->stopped != EVENT_NONE ? event_name(info->stopped) : run_status_names[info->status],
                     info->status_text);
    int known;
    if (!meets_values(j, t, e, why, bytes) || !meets_events(t, e, why, bytes) ||
        !meets_event_at(t, e, &known, why, bytes))
        return 0;
    snprintf(why, bytes, "stopped by %s, as expected%s", event_name(info->stopped),
             e->event_at[0] && !known ? "; at which line is not known" : "");
    return 1;
}

bool judgement_meets(const struct judgement *j, const struct trace *t, const struct expect *expect, char *why,
                     size_t why_bytes)
{
    if (!j->complete)
        return unmet(why, why_bytes, "not judged to the end");
    if (expect->stopped)
        return meets_stopped(j, t, expect, why, why_bytes);
    if (j->run_incomplete)
        return unmet(why, why_bytes, "the run did not complete: %.*s", (int)strcspn(t->info.status_text, "\n"),
                     t->info.status_text);
    if (!judgement_any(j))
        return unmet(why, why_bytes, "nothing was recorded that can be judged");
    if (expect->verdict == EXPECT_FAIL)
        return meets_fail(j, t, expect, why, why_bytes);
    return meets_clean(j, t, expect, why, why_bytes); /* a scenario that says nothing expects a correct kernel */
}

/* Nothing is stated but the verdict. A run that should end early counts as one that did as it should: by what it ended
   is for the finding. */
static struct expect bare(const struct trace *t, const struct expect *e)
{
    struct expect part = {.verdict = e->verdict, .first_channel = -1, .first = {-1, -1, -1, -1}};
    if (e->stopped) {
        part.stopped = t->info.stopped != EVENT_NONE ? EVENT_BIT(t->info.stopped) : 0;
    } else { /* so that right values do not count as no failure */
        part.events = e->events;
        part.no_event = e->no_event;
    }
    return part;
}

static enum expect_part judge_part(const struct judgement *j, const struct trace *t, const struct expect *part)
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
        out->stage = judge_part(j, t, &part);
    }
    part = bare(t, e);
    if (e->first[0] >= 0 || e->first[1] >= 0 || e->first[2] >= 0 || e->first[3] >= 0 || e->event_at[0]) {
        memcpy(part.first, e->first, sizeof part.first);
        part.events = e->events;
        part.no_event = e->no_event;
        memcpy(part.event_at, e->event_at, sizeof part.event_at);
        out->tile = judge_part(j, t, &part);
    }
    part = bare(t, e);
    if (e->cause[0] || e->stopped || ((e->events || e->no_event) && e->verdict == EXPECT_FAIL)) {
        memcpy(part.cause, e->cause, sizeof part.cause);
        part.events = e->events;
        part.no_event = e->no_event;
        part.stopped = e->stopped;
        out->finding = judge_part(j, t, &part);
    }
}
