#include "cli/report.h"

#include "engine/base/json_memory.h"
#include "engine/base/units.h"
#include "engine/child/stamps.h"
#include "engine/run/resources.h"
#include "engine/session/look.h"
#include "engine/trace/trace.h"
#include "engine/verdict/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 1: the scenario expects the run to end early, and it did, or came to its end instead. */
static bool stop_expected(const struct session *s)
{
    return s->subject.has_scenario && s->subject.scenario.expect.stopped && s->run.judgement &&
           (s->job.err.code == ERR_NONE || s->job.err.code == ERR_RUN);
}

int report_meets(const struct session *s, char *why, size_t why_bytes)
{
    const struct expect nothing = {.first_channel = -1, .first = {-1, -1, -1, -1}};
    if (!s->run.judgement) {
        snprintf(why, why_bytes, "there is no run");
        return 0;
    }
    const int met = judgement_meets(s->run.judgement, s->run.trace,
                                    s->subject.has_scenario ? &s->subject.scenario.expect : &nothing, why, why_bytes);
    if (stop_expected(s)) /* what it takes is known of a run that came to its end */
        return met;
    char budget[384];
    const int within = budget_meets(&s->run.trace->info, budget, sizeof budget);
    size_t used = strlen(why);
    if (budget[0])
        snprintf(why + used, why_bytes - used, "; %s", budget);
    char bias[256] = "";
    const bool as_biased = !s->subject.has_scenario ||
                           rounding_meets(session_rounding_result(s), &s->subject.scenario.expect, bias, sizeof bias);
    used = strlen(why);
    if (bias[0])
        snprintf(why + used, why_bytes - used, "; %s", bias);
    return met && within && as_biased;
}

int report_checks(const struct session *s, char *why, size_t why_bytes)
{
    char missing[FACT_WORDS_BYTES];
    const int met = report_meets(s, why, why_bytes);
    const bool should_be_clean = !s->subject.has_scenario || s->subject.scenario.expect.verdict != EXPECT_FAIL;
    if (met && should_be_clean && run_fact_first(s->run.judgement, s->run.trace, FACT_SET(FACT_UNDECLARED), missing)) {
        snprintf(why, why_bytes, "%s", missing);
        return 0;
    }
    return met;
}

int report_status(const struct session *s, char *why, size_t why_bytes)
{
    const int met = report_meets(s, why, why_bytes);
    if (s->job.err.code != ERR_NONE && !stop_expected(s))
        return -1;
    return met ? 0 : 1;
}

void report_write_expectation(const struct session *s, FILE *out)
{
    char why[512];
    const int met = report_meets(s, why, sizeof why);
    const bool stated = (s->subject.has_scenario && s->subject.scenario.expect.verdict != EXPECT_NOTHING) ||
                        (s->run.trace && s->run.trace->info.launches.budget.stated);
    if (stated || (!met && s->job.err.code == ERR_NONE && s->run.judgement && !judgement_any(s->run.judgement))) {
        text_inline(out, "expectation: %s", why);
        fputs("\n", out);
    }
}

/* "s b0 h0 q0 k0": what is not stated (negative) is left out. */
static size_t write_first(int channel, const int at[4], char *out, size_t bytes)
{
    static const char axis[4] = {'b', 'h', 'q', 'k'};
    size_t used = channel >= 0 ? (size_t)snprintf(out, bytes, " %s", culprit_name(channel)) : 0;
    for (int i = 0; i < 4 && used < bytes; i++)
        if (at[i] >= 0)
            used += (size_t)snprintf(out + used, bytes - used, " %c%d", axis[i], at[i]);
    return used;
}

/* first may be empty (channel -1), as may culprits and cause. */
static void write_words(int channel, const int at[4], unsigned culprits, const char *cause,
                        char out[REPORT_WORDS_BYTES])
{
    char names[128] = "";
    char first[96] = "";
    write_first(channel, at, first, sizeof first);
    culprits_words(culprits, names, sizeof names);
    snprintf(out, REPORT_WORDS_BYTES, "fail%s%s%s%s%s%s", first[0] ? ":" : "", first, names[0] ? "; culprits " : "",
             names, cause[0] ? "; " : "", cause);
}

void report_events_words(event_set set, bool none, char out[EVENT_SET_BYTES])
{
    event_set_words(set, out, EVENT_SET_BYTES);
    if (none)
        snprintf(out, EVENT_SET_BYTES, "none");
}

void report_expected(const struct session *s, char out[REPORT_WORDS_BYTES])
{
    const struct expect *e = &s->subject.scenario.expect;
    if (!s->subject.has_scenario || e->verdict != EXPECT_FAIL) {
        snprintf(out, REPORT_WORDS_BYTES, "clean");
        return;
    }
    write_words(e->first_channel, e->first, e->culprits, e->cause, out);
    char stopped[EVENT_SET_BYTES], events[EVENT_SET_BYTES];
    report_events_words(e->stopped, false, stopped);
    report_events_words(e->events, e->no_event, events);
    const size_t used = strlen(out);
    snprintf(out + used, REPORT_WORDS_BYTES - used, "%s%s%s%s%s%s", stopped[0] ? "; stopped by " : "", stopped,
             events[0] ? "; event " : "", events, e->event_at[0] ? " at " : "", e->event_at);
}

/* Of the culprits of which it is known. */
static void write_causes(const struct session *s, char *out, size_t bytes)
{
    const struct judgement *j = s->run.judgement;
    size_t used = 0;
    for (int i = 0; i < j->n_findings && used < bytes; i++)
        if (finding_says(&j->findings[i], s->run.trace)[0])
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? "," : "",
                                     finding_says(&j->findings[i], s->run.trace));
}

void report_found(const struct session *s, char out[REPORT_WORDS_BYTES])
{
    const struct judgement *j = s->run.judgement;
    const struct place *first = j ? &j->summary.first : NULL;
    if (!first || first->slot < 0 || j->run_incomplete || !j->complete) {
        snprintf(out, REPORT_WORDS_BYTES, "%s", session_verdict_word(s));
        for (char *c = out; *c; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        return;
    }
    const int32_t *place = trace_slot_place(s->run.trace, first->slot);
    const int at[4] = {place[0], place[1], place[2], channel_per_kv(first->channel) ? first->kv : -1};
    char causes[256] = "";
    write_causes(s, causes, sizeof causes);
    const int loop = j->summary.unvisited > 0, alone = j->summary.culprits == 1u << CULPRIT_LOOP;
    write_words(loop ? CULPRIT_LOOP : (int)first->channel, at, j->summary.culprits,
                causes[0] ? causes
                : alone   ? "tiles skipped"
                          : findings_unknown(j),
                out);
}

static const char *const marks[] = {
    [STAGE_OK] = "ok", [STAGE_BAD] = "bad", [STAGE_UNRECORDED] = "-", [STAGE_PARTIAL] = "part", [STAGE_UNKNOWN] = "?"};

static void write_marks(const struct session *s, const char *label, bool global, FILE *out)
{
    fprintf(out, "\n%-8s", label);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct stage_summary *stage = &s->run.judgement->summary.stage[ch];
        fprintf(out, "%-6s", marks[global ? stage->global : stage->local]);
    }
}

/* What stands before a fact; those of a finding are indented below it. */
static const char *const leads[FACT_KINDS] = {
    [FACT_FINDING] = "finding: ", [FACT_LOST] = "warning: ", [FACT_RECORDED] = "note: ",   [FACT_OWN] = "value ",
    [FACT_CHANGED] = "warning: ", [FACT_UNUSUAL] = "note: ", [FACT_UNDECLARED] = "note: ", [FACT_EVENT] = "event: "};
enum { DETAIL_COLS = 9 };

struct fact_lines {
    const struct trace *t;
    FILE *out;
};

static void write_fact(void *ctx, const struct run_fact *fact)
{
    const struct fact_lines *to = ctx;
    char line[FACT_LINE_BYTES];
    run_fact_line(to->t, fact, line);
    fprintf(to->out, "%*s", fact->detail ? DETAIL_COLS : 0, "");
    text_inline(to->out, "%s%s", fact->detail || !leads[fact->kind] ? "" : leads[fact->kind], line);
    fputs("\n", to->out);
}

static void write_facts(const struct session *s, unsigned kinds, FILE *out)
{
    struct fact_lines to = {s->run.trace, out};
    run_facts(s->run.judgement, s->run.trace, kinds, write_fact, &to);
}

#define STAMP_LINES_MAX 16
/* How far each block came in a run that ended early: those that had begun and were not at their end. */
static void write_last_stamps(const struct session *s, FILE *out)
{
    const struct trace *t = s->run.trace;
    struct last_stamp *last = calloc((size_t)t->layout.n_slots, sizeof *last);
    int begun = 0, finished = 0, shown = 0;
    char place[PLACE_LINE_BYTES];
    if (!last)
        end_without_memory();
    begun = runner_last_stamps(t, last);
    for (int slot = 0; slot < t->layout.n_slots; slot++) {
        finished += last[slot].clock && last[slot].finished;
        if (!last[slot].clock || last[slot].finished || shown++ >= STAMP_LINES_MAX)
            continue;
        place_line(t, (struct place){slot, last[slot].kv, last[slot].channel}, place);
        fprintf(out, "last probe: %s at %s\n", channel_label(last[slot].channel), place);
    }
    fprintf(out, "of %d recorded q tiles, %d had begun and %d had finished", t->layout.n_slots, begun, finished);
    if (shown > STAMP_LINES_MAX)
        fprintf(out, "; %d unfinished ones are not listed", shown - STAMP_LINES_MAX);
    fputs("\n", out);
    free(last);
}

void report_write_findings(const struct session *s, FILE *out)
{
    if (!s->run.judgement)
        return;
    write_facts(s, FACTS_ALL & ~FACT_SET(FACT_CORE) & ~FACT_SET(FACT_BOUND) & ~FACT_SET(FACT_EVIDENCE), out);
    if (!trace_complete(s->run.trace))
        write_last_stamps(s, out);
}

void report_write(const struct session *s, FILE *out)
{
    const struct asc_problem *p = &s->run.trace->problem;
    static const char *const causal[] = {"", " causal top-left", " causal bottom-right"};
    text_inline(out, "%s  (%d,%d", s->title, p->batch, p->heads);
    if (p->kv_heads != p->heads)
        fprintf(out, "/%d", p->kv_heads);
    fputs(",", out);
    if (p->kv_len != p->q_len)
        fprintf(out, "%d,%d,%d)", p->q_len, p->kv_len, p->head_dim);
    else
        fprintf(out, "%d,%d)", p->q_len, p->head_dim);
    const struct trace_info *info = &s->run.trace->info;
    char seconds[32];
    units_seconds(info->seconds, seconds, sizeof seconds);
    char terms[TERMS_BYTES], types[TYPES_BYTES];
    problem_terms(p, &s->run.trace->plan, terms);
    problem_types(p, types);
    const char *const into = memory_meanings[info->memory];
    text_inline(out, " %s%s%s  %s%s%s%s%s%s%s%s%s%s%s  %s", types, causal[p->causal], terms,
                backend_names[info->backend], *info->device ? " " : "", info->device, *into ? ", recorded in " : "",
                into, *info->tensor_core ? " as " : "", info->tensor_core,
                s->run.trace->info.probes_off ? ", probes off" : "", s->run.trace->info.checked ? ", checked" : "",
                *seconds ? "  " : "", seconds, session_verdict_word(s));
    fputs("\n        ", out);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        fprintf(out, "%-6s", channel_name(ch));
    write_marks(s, "global", true, out);
    write_marks(s, "local", false, out);
    fputs("\n", out);
    write_facts(s, FACT_SET(FACT_CORE) | FACT_SET(FACT_BOUND), out);
    report_write_findings(s, out);
}

void report_write_bias(const struct session *s, FILE *out)
{
    const struct rounding *b = session_rounding_result(s);
    const struct rounding_progress *now = session_rounding(s);
    if (now && now->err.code != ERR_NONE) {
        text_inline(out, "bias: %s", now->err.message);
        fputs("\n", out);
    }
    if (!b)
        return;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct rounding_cell *cell = rounding_stage(b, (enum asc_channel)ch);
        char words[256];
        rounding_words((enum asc_channel)ch, cell, words, sizeof words);
        if (cell->state != ROUNDING_UNRECORDED)
            fprintf(out, "bias of %-5s %-12s  %s\n", channel_name((enum asc_channel)ch),
                    rounding_state_word(cell->state), words);
    }
    if (b->lost[0])
        fprintf(out, "not rerun: %s\n", b->lost);
}

void report_write_isolation(const struct session *s, FILE *out)
{
    struct isolation_result r;
    char fed[64], sentences[ISOLATION_SENTENCES][ISOLATION_SENTENCE_BYTES];
    if (!session_isolated(s, &r))
        return;
    isolation_labels(r.trace->fed_channels, fed, sizeof fed);
    fprintf(out, "isolated %s: %s fed from %s\n        %-16s%-16s\n", r.asked->name, *fed ? fed : "nothing",
            r.asked->feed[0] ? r.asked->feed : "the reference", "before", "isolated");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const enum asc_channel channel = (enum asc_channel)ch;
        fprintf(out, "%-8s%-16s%-16s%s\n", channel_name(channel), stage_state_word(isolation_state(r.before, channel)),
                stage_state_word(isolation_state(r.after, channel)),
                effect_word(isolation_effect(r.before, r.after, channel)));
    }
    const int n = isolation_sentences(&r, sentences);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s\n", sentences[i]);
}

void report_write_probes(const struct probe_effect *effect, FILE *out)
{
    char text[PROBE_EFFECT_WORDS];
    fprintf(out, "probes: %s\n", probe_effect_sentence(effect->verdict));
    if (effect->verdict == PROBES_CHANGE_STATUS)
        fprintf(out, "        with probes: %s; without: %s%s%s\n", run_status_names[effect->status[0]],
                run_status_names[effect->status[1]], effect->status_text[0] ? ": " : "", effect->status_text);
    for (enum asc_channel ch = asc_o; ch <= asc_lse; ch++) {
        probe_effect_channel(effect, ch, text);
        if (text[0])
            fprintf(out, "        %s: %s\n", channel_name(ch), text);
    }
}

void report_write_unquantized(const struct unquantized_error *error, FILE *out)
{
    if (!error->known)
        return;
    if (!isfinite(error->largest))
        fputs("O against unquantized inputs: not measured, O contains NaN or infinity\n", out);
    else
        fprintf(out, "O against unquantized inputs: max %.3g, rms %.3g\n", error->largest, error->rms);
}

static void write_time(const char *name, int indent, double seconds, FILE *out)
{
    char text[32];
    units_seconds(seconds, text, sizeof text);
    fprintf(out, "%*s%-*s %9s\n", indent, "", 50 - indent, name, text);
}

void report_write_times(const struct runner_spent *spent, FILE *out)
{
    double all = 0;
    fputs("where the time went\n", out);
    for (int i = STEP_NONE + 1; i < STEP_COUNT; i++) {
        if (spent->step[i] > 0)
            write_time(runner_step_words((enum runner_step)i), 2, spent->step[i], out);
        for (int part = 0; i == STEP_COMPILING && part < spent->n_parts; part++)
            write_time(spent->part[part].name, 4, spent->part[part].seconds, out);
        all += spent->step[i];
    }
    write_time("in all", 2, all, out);
    if (runner_built_before(spent))
        fputs("  nothing was compiled: the program was built before\n", out);
}
