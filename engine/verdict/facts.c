#include "engine/verdict/facts.h"

#include "engine/base/path.h"
#include "engine/oracle/search/rule.h"
#include "engine/trace/writers.h"
#include "engine/verdict/again.h"
#include "engine/verdict/case.h"
#include "engine/verdict/exactness.h"
#include "engine/verdict/onset.h"
#include "engine/verdict/own.h"
#include "engine/verdict/reports.h"
#include "engine/verdict/states.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct facts {
    const struct judgement *j;
    const struct trace *t;
    unsigned kinds;
    run_fact_take *take;
    void *ctx;
};

static const struct run_fact plain = {.place = {.slot = -1}, .row = -1, .col = -1, .after = ""};
static const struct run_fact detail = {.detail = true, .place = {.slot = -1}, .row = -1, .col = -1, .after = ""};

/* A fact that is words alone, or whose other parts *with has. */
__attribute__((format(printf, 4, 5))) static void tell(const struct facts *to, enum run_fact_kind kind,
                                                       const struct run_fact *with, const char *format, ...)
{
    char words[FACT_WORDS_BYTES];
    struct run_fact fact = *with;
    va_list args;
    if (!(to->kinds & FACT_SET(kind)))
        return;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    fact.kind = kind;
    fact.words = words;
    to->take(to->ctx, &fact);
}

/* ---- a finding ---- */

/* Products whose operands lie in memory from their probe to the product, in the order of the formula. */
static const struct {
    enum asc_channel product, operand[2];
} products[] = {{asc_s, {asc_q, asc_k}}, {asc_u, {asc_p, asc_v}}};

/* " (kernel.cu:165)" */
static void site_words(const struct trace *t, enum asc_channel ch, char out[96])
{
    const struct trace_site *site = trace_site(t, ch);
    out[0] = '\0';
    if (site)
        snprintf(out, 96, " (%.70s:%d)", path_name(site->file), site->line);
}

/* A local verdict blames the way from the probes of a product's operands to its own: where these were right. Nothing
   can be said of a stage that is no product, or of operands that are wrong themselves or unrecorded. */
static void tell_edge(const struct facts *to, const struct finding *f)
{
    const struct stage_summary *stage = to->j->summary.stage;
    char sites[2][96];
    if (to->t->fed || stage[f->channel].missing_local == stage[f->channel].bad_local)
        return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const enum asc_channel a = products[i].operand[0], b = products[i].operand[1];
        if (products[i].product != f->channel || stage[b].local != STAGE_OK)
            continue;
        site_words(to->t, a, sites[0]);
        site_words(to->t, b, sites[1]);
        if (f->cause == CAUSE_NONE && f->reason && !finding_has_rule(f) && stage[a].local == STAGE_OK)
            tell(to, FACT_EDGE, &detail,
                 "%s%s and %s%s were right at their probes. Between there and probe %s they are read wrong, or "
                 "overwritten, or the arithmetic is wrong or not done yet",
                 channel_label(a), sites[0], channel_label(b), sites[1], channel_name(f->channel));
        if (f->cause != CAUSE_NONE && cause_is_other_tile(f->cause))
            tell(to, FACT_EDGE, &detail,
                 "%s was right at its probe%s. Between there and probe %s another tile took its place: a barrier or a "
                 "wait is missing, or the wrong buffer is read",
                 channel_label(b), sites[1], channel_name(f->channel));
    }
}

static void tell_evidence(const struct facts *to, const struct cause_evidence *e)
{
    if (e->elements == 0)
        return;
    tell(to, FACT_EVIDENCE, &detail, "explained: %llu of %llu elements in bad tiles; plain rounding explains %llu",
         (unsigned long long)e->explained, (unsigned long long)e->elements, (unsigned long long)e->rounding);
    if (e->discriminating)
        tell(to, FACT_EVIDENCE, &detail, "distinguishing the two: %llu elements in %llu rows",
             (unsigned long long)e->discriminating, (unsigned long long)e->rows);
    if (e->chance_tried)
        tell(to, FACT_EVIDENCE, &detail, "by chance: fits %llu of %llu values of other elements",
             (unsigned long long)e->chance_hit, (unsigned long long)e->chance_tried);
}

static void value_words(double x, char out[32])
{
    if (isfinite(x))
        snprintf(out, 32, "%.6g", x);
    else
        snprintf(out, 32, "%s", onset_value_word(x));
}

/* What speaks for a rule; its sentence, where the finding's own line has more than that one. */
static void tell_rule(const struct facts *to, const struct finding *f, const struct rule_told *r)
{
    char got[32], want[32], given[32], values[160];
    struct run_fact telling = detail;
    if (f->n_rules > 1)
        tell(to, FACT_EVIDENCE, &detail, "rule: %s", r->text);
    tell(to, FACT_EVIDENCE, &detail, "explained: %llu of %llu wrong elements that were looked at",
         (unsigned long long)r->in, (unsigned long long)r->wrong);
    tell(to, FACT_EVIDENCE, &detail,
         "in its region: it gives %llu of %llu elements on which it and the right formula differ, in %llu %s",
         (unsigned long long)(r->told - r->out), (unsigned long long)r->told, (unsigned long long)r->units,
         r->by_col ? "columns" : "rows");
    tell(to, FACT_EVIDENCE, &detail,
         "it explains %.0f bits; needed: %.0f (%.0f for the rule, %.0f for %llu tried, %d more)", r->bits, r->price,
         r->cost, r->price - r->cost - RULE_BITS_MORE, (unsigned long long)r->tried, RULE_BITS_MORE);
    value_words(r->got, got);
    value_words(r->want, want);
    value_words(r->given, given);
    snprintf(values, sizeof values, ": captured %s, by the rule %s, right %s", got, given, want);
    telling.place = r->place;
    telling.row = r->row;
    telling.col = r->col;
    telling.after = values;
    tell(to, FACT_EVIDENCE, &telling, "tells most:");
}

/* What the search for a rule came to. */
static void tell_search(const struct facts *to, const struct finding *f)
{
    const struct rule_told *second = &f->runner_up;
    for (int i = 0; i < f->n_rules; i++)
        tell_rule(to, f, &f->rule[i]);
    if (second->text[0])
        tell(to, FACT_EVIDENCE, &detail, "runner-up: %s (it explains %.0f bits; needed: %.0f)", second->text,
             second->bits, second->price);
    else if (f->n_rules)
        tell(to, FACT_EVIDENCE, &detail, "runner-up: none");
}

/* Every kv tile that was left out, and the rows that should see it. */
static void tell_skipped(const struct facts *to)
{
    enum { MOST = 16 };
    const uint64_t all = to->j->summary.unvisited;
    struct place at = {0};
    struct left_out it;
    uint64_t n = 0;
    struct run_fact skipped = detail;
    for (; n < MOST && judgement_left_out(to->j, to->t, &at, &it); n++) {
        char rows[48];
        char which[LEFT_OUT_ROWS_BYTES];
        left_out_rows(&it, which);
        snprintf(rows, sizeof rows, ", for %s", which);
        skipped.place = it.place;
        skipped.after = rows;
        tell(to, FACT_SKIPPED, &skipped, "never visited:");
    }
    if (all > n)
        tell(to, FACT_SKIPPED, &detail, "and %llu more", (unsigned long long)(all - n));
}

/* with: what the fact is beside its words. */
static void tell_event(const struct facts *to, enum run_fact_kind kind, const struct run_fact *with,
                       const struct trace_event *e)
{
    struct run_fact fact = *with;
    char lines[EVENT_LINES_BYTES], after[FACT_AFTER_BYTES], times[32] = "";
    event_lines(e, 0, lines, sizeof lines);
    if (e->times > 1)
        snprintf(times, sizeof times, ", %d times", e->times);
    snprintf(after, sizeof after, "%s%s%s%s", lines[0] ? " (" : "", lines, lines[0] ? ")" : "", times);
    fact.after = after;
    fact.event = e;
    const char *line = e->text + strcspn(e->text, "\n");
    tell(to, kind, &fact, "%s: %.*s", event_name(e->kind), (int)(line - e->text), e->text);
    while (*line) { /* a listing */
        const char *const text = line + 1;
        line = text + strcspn(text, "\n");
        tell(to, kind, &detail, "%.*s", (int)(line - text), text);
    }
}

/* Whether a finding before this one has the same event. */
static bool is_said(const struct judgement *j, const struct finding *f)
{
    bool said = false;
    for (int i = 0; &j->findings[i] != f && !said; i++)
        said = j->findings[i].again && strcmp(j->findings[i].again->text, f->again->text) == 0 &&
               j->findings[i].again->line == f->again->line;
    return said;
}

/* The same line makes what follows right as well: it is said once. */
static void tell_lines(const struct facts *to, const struct finding *f)
{
    char lines[FINDING_LINES_BYTES], before[FINDING_LINES_BYTES];
    finding_lines(f, lines);
    for (const struct finding *other = to->j->findings; other < f && lines[0]; other++) {
        finding_lines(other, before);
        if (strcmp(before, lines) == 0)
            return;
    }
    if (lines[0])
        tell(to, FACT_DECLARE, &detail, "%s: %s", f->output_right ? "declare it" : "where that is meant, declare it",
             lines);
}

/* Of the first finding that knows no cause. */
static void tell_next(const struct facts *to, const struct finding *f)
{
    const struct trace_info *info = &to->t->info;
    const bool on_cpu = info->backend == BACKEND_CPU, checked = info->checked || to->j->asked_again;
    for (const struct finding *other = to->j->findings; other < f; other++)
        if (finding_is_open(other) && !other->bare)
            return;
    if (!finding_is_open(f) || f->bare || f->output_right || to->t->fed || info->probes_off)
        return;
    char tried[32] = "rules";
    if (f->tried)
        snprintf(tried, sizeof tried, "%llu rules", (unsigned long long)f->tried);
    tell(to, FACT_NEXT, &detail,
         "tried: %s%s%s; next: %s--isolate %s (i: what is right once it is), an element's operands (d)", tried,
         checked && on_cpu ? ", access checks" : "", to->j->asked_again && on_cpu ? ", other orders" : "",
         checked  ? ""
         : on_cpu ? "--checks (c), "
                  : "--checks --backend cpu, ",
         channel_name(f->channel));
}

static void tell_writer(const struct facts *to, const struct finding *f)
{
    struct trace_writer w;
    char words[WRITER_WORDS_BYTES];
    if (!trace_writer(to->t, f->channel, f->first.slot, f->first.kv, f->row, f->col, &w))
        return;
    if (w.site == finding_site(f, to->t))
        w.site = NULL; /* it has been said */
    trace_writer_words(&w, words);
    tell(to, FACT_WRITER, &detail, "recorded by %s", words);
}

static void tell_finding(const struct facts *to, const struct finding *f)
{
    char lost[LOST_WORDS_BYTES], also[FACT_WORDS_BYTES];
    if (f->loop) {
        tell(to, FACT_FINDING, &plain, "%.*s", (int)strcspn(f->text, ":"), f->text); /* the list follows */
        tell_skipped(to);
        return;
    }
    const bool mistyped = trace_mistyped_words(to->t, f->channel, lost); /* then that is why it was never written */
    if (mistyped)
        tell(to, FACT_FINDING, &plain, "%s", lost);
    tell(to, FACT_FINDING, mistyped ? &detail : &plain, "%s", f->text);
    tell_lines(to, f);
    const struct run_fact begins = {
        .detail = true, .place = f->first, .row = f->row, .col = f->col, .after = "", .site = finding_site(f, to->t)};
    tell(to, FACT_BEGINS, &begins, "begins at");
    if (f->again && !is_said(to->j, f))
        tell_event(to, FACT_AGAIN, &detail, f->again);
    tell_writer(to, f);
    tell_evidence(to, &f->evidence);
    tell_search(to, f);
    tell_edge(to, f);
    tell_next(to, f);
    if (trace_dropped_words(to->t, f->channel, lost))
        tell(to, FACT_LOST, &detail, "%s", lost);
    for (int i = 0; i < f->n_also; i++) {
        finding_also(f, i, also, sizeof also);
        tell(to, FACT_ALSO, &detail, "%s", also);
    }
}

/* ---- the run ---- */

static void tell_verdict(const struct facts *to)
{
    const struct summary *summary = &to->j->summary;
    struct run_fact first = plain;
    char words[256];
    first.place = summary->first;
    if (summary->unvisited) {
        tell(to, FACT_VERDICT, &first, "the kernel's loop skipped kv tiles, first");
    } else if (summary->first.slot >= 0) {
        first.after = " on";
        tell(to, FACT_VERDICT, &first, "%s is the first bad stage, from", channel_label(summary->first.channel));
    } else if (to->j->complete && !summary->suspicious) {
        tell(to, FACT_VERDICT, &plain, "%s", judgement_quiet(to->j, to->t));
        /* Right values do not make a run clean. */
        reports_words(to->t, words, sizeof words);
        if (words[0] && trace_complete(to->t))
            tell(to, FACT_VERDICT, &plain, "the values are right; reported: %s", words);
    }
}

static void tell_state(const struct facts *to)
{
    const struct state_break *b = &to->j->state_break;
    const unsigned scores = 1u << asc_q | 1u << asc_k | 1u << asc_v | 1u << asc_s;
    struct run_fact at = plain;
    char words[BREAK_WORDS_BYTES];
    if (b->slot < 0 || to->j->summary.culprits & scores) /* then it is a consequence */
        return;
    at.place = (struct place){b->slot, b->kv, asc_m};
    at.row = b->row;
    states_broken_words(b->broken, words);
    tell(to, FACT_STATE, &at, "softmax state: %s; first at", words);
}

/* "NaN begins at P h0 q0 k1 [3, 17]: ..."; nothing where it does not. */
static void tell_onset(const struct facts *to)
{
    const struct run_onset *o = to->j->onset;
    const struct run_root *first = run_onset_first(o);
    char words[ONSET_WORDS_BYTES], origins[FACT_WORDS_BYTES / 2] = "";
    if (!first)
        return;
    onset_words(to->j, to->t, first, words);
    tell(to, FACT_ONSET, &plain, "%s", words);
    if (o->roots == (uint64_t)first->root.members)
        return;
    size_t used = 0;
    for (int r = 0; r < ORIGIN_COUNT && used < sizeof origins; r++)
        if (o->of_origin[r] && o->of_origin[r] < o->roots)
            used += (size_t)snprintf(origins + used, sizeof origins - used, "%s %llu %s", used ? "," : ":",
                                     (unsigned long long)o->of_origin[r], origin_name((enum nan_origin)r));
    tell(to, FACT_ONSET, &detail, "%llu such elements in total%s; %llu elements of O are NaN or infinite",
         (unsigned long long)o->roots, origins, (unsigned long long)o->outputs);
}

static bool has_finding(const struct judgement *j, enum asc_channel ch)
{
    for (int i = 0; j && i < j->n_findings; i++)
        if (j->findings[i].channel == ch && !j->findings[i].loop)
            return true;
    return false;
}

/* A channel with a finding has said it there. */
static void tell_lost(const struct facts *to)
{
    char words[LOST_WORDS_BYTES];
    for (enum asc_channel ch = 0; (int)ch < ASC_CHANNELS + plan_values(&to->t->plan); ch++) {
        if (has_finding(to->j, ch))
            continue;
        if (trace_dropped_words(to->t, ch, words))
            tell(to, FACT_LOST, &plain, "%s", words);
        if (trace_mistyped_words(to->t, ch, words))
            tell(to, FACT_LOST, &plain, "%s: they are not recorded", words);
    }
}

/* What of the kernel's own values was recorded, once all of it is judged. */
static void tell_own(const struct facts *to)
{
    for (int i = 0; to->j && i < plan_values(&to->t->plan); i++) {
        const struct own_count *count = &to->j->summary.own[i];
        const struct run_fact at = {.place = count->first_nan, .row = count->row, .col = count->col, .after = ""};
        char words[OWN_WORDS_BYTES];
        own_count_words(count, words);
        tell(to, FACT_OWN, count->nan ? &at : &plain, "%s: %s%s", to->t->plan.value[i].name, words,
             count->nan ? ", the first at" : "");
    }
}

/* What of it there is: slots, and what a first pass in bounded memory found. */
static void tell_recorded(const struct facts *to)
{
    const struct trace *t = to->t;
    const struct trace_capture *c = &t->info.capture;
    const long long all = trace_places(t);
    if (t->layout.n_slots < all)
        tell(to, FACT_RECORDED, &plain, "%d of %lld (batch, head, q tile)s are recorded", t->layout.n_slots, all);
    if (c->wanted && c->judged)
        tell(to, FACT_RECORDED, &plain,
             "a first pass judged o and lse of %lld of %lld q tiles against the reference; off: %lld%s%s%s",
             (long long)c->judged, (long long)c->wanted, (long long)c->off, c->off ? " (" : "", c->off_places,
             c->off ? ")" : "");
    if (c->by_gpu)
        tell(to, FACT_RECORDED, &plain, "it was judged by %s; %lld verdicts rest on the GPU's word", c->judge,
             (long long)c->by_gpu);
    else if (c->judge[0])
        tell(to, FACT_RECORDED, &plain, "it was judged by %s", c->judge);
    if (to->j && to->j->judge[0])
        tell(to, FACT_RECORDED, &plain, "what was recorded was judged by %s", to->j->judge);
    if (c->unusual)
        tell(to, FACT_UNUSUAL, &plain,
             "the first pass found o of %lld of them within its bounds, but with errors that are not of the size of "
             "roundings (%s): recorded to judge their stages",
             (long long)c->unusual, c->unusual_places);
    if (c->wanted && !c->judged)
        tell(to, FACT_RECORDED, &plain, "the first pass left no output to judge");
    if (t->info.memory_why[0])
        tell(to, FACT_MEMORY, &plain, "recorded in %s: %s", memory_meanings[t->info.memory], t->info.memory_why);
    if (c->wanted && c->differing > 0)
        tell(to, FACT_CHANGED, &plain,
             "o or lse of %lld q tiles changed in the second pass: the kernel is not deterministic",
             (long long)c->differing);
}

/* Values that went out one by one, as a GPU's shared memory had no room for them: why that took long. */
static void tell_unstaged(const struct facts *to)
{
    const struct trace_launches *launches = &to->t->info.launches;
    for (size_t i = 0; i < launches->n; i++) {
        const struct trace_launch *l = &launches->at[i];
        if (l->probes == 0 || l->staging_lacks <= 0)
            continue;
        tell(to, FACT_RECORDED, &plain,
             "%.*s records slowly: its blocks leave %d bytes too few of shared memory to gather values in",
             (int)strcspn(l->kernel, "<"), l->kernel, (int)l->staging_lacks);
        return;
    }
}

/* What the kernel left unwritten throughout though its registration does not say that there is none. */
static void tell_undeclared(const struct facts *to)
{
    if (trace_lse(to->t) == TRACE_LSE_UNDECLARED)
        tell(to, FACT_UNDECLARED, &plain, "LSE is not written; if the kernel has none, declare it: kernel.no_lse = 1");
    if (to->t->conventions.alpha_first != ASC_ALPHA_NONE_FIRST && case_alpha_left_out(to->t))
        tell(to, FACT_UNDECLARED, &plain,
             "α is not written on the first kv tile; if the kernel has none there, declare it: kernel.alpha_first = "
             "ASC_ALPHA_NONE_FIRST");
}

/* What became of declared tensor cores: "S: bit-equal to h100". */
static void tell_cores(const struct facts *to)
{
    char words[256];
    arithmetic_words(to->t, words, sizeof words);
    if (words[0])
        tell(to, FACT_CORE, &plain, "%s", words);
    for (enum asc_channel ch = 0; ch < ASC_CHANNELS; ch++) {
        exactness_words(to->j, to->t, ch, words, sizeof words);
        if (words[0])
            tell(to, FACT_CORE, &plain, "%s: %s", channel_label(ch), words);
    }
}

/* Of short rows nothing: there is but the worst case. */
static void tell_bounds(const struct facts *to)
{
    for (enum asc_channel ch = asc_o; ch <= asc_lse; ch++) {
        const struct stage_summary *stage = &to->j->summary.stage[ch];
        const unsigned long long likely = stage->likely, all = likely + stage->worst_case;
        if (likely)
            tell(to, FACT_BOUND, &plain, "%s: likely bounds decided globally in %llu of %llu q tiles%s",
                 channel_label(ch), likely, all, stage->worst_case ? "; the worst case in the others" : "");
    }
}

static void tell_unusual(const struct facts *to)
{
    const struct stage_summary *stage = &to->j->summary.stage[asc_o];
    const struct run_fact at = {.place = stage->first_unusual, .row = -1, .col = -1, .after = ""};
    const unsigned long long unusual = stage->unusual, all = stage->likely + stage->worst_case;
    if (!unusual || to->j->summary.culprits) /* then the stage that makes them is known */
        return;
    tell(to, FACT_UNUSUAL, &at,
         "O is within its bounds, but its errors are not of the size of roundings in %llu of %llu q tiles%s; the first "
         "at",
         unusual, all, to->t->info.probes_off ? ": run it with probes to see which stage makes them" : "");
}

/* What the verdicts say. */
static void tell_judged(const struct facts *to)
{
    const struct judgement *j = to->j;
    if (to->kinds & FACT_SET(FACT_CORE)) /* asks every tile */
        tell_cores(to);
    tell_bounds(to);
    tell_verdict(to);
    for (int i = 0; i < j->n_findings; i++)
        tell_finding(to, &j->findings[i]);
    tell_state(to);
    tell_onset(to);
    tell_unusual(to);
    for (enum asc_channel ch = 0; ch < ASC_CHANNELS; ch++)
        if (j->summary.suspicious & 1u << ch)
            tell(to, FACT_SUSPECT, &plain,
                 "%s is off globally, but no stage up to it is wrong locally: a bound or a declared convention is "
                 "wrong",
                 channel_label(ch));
}

void run_facts_of(const struct judgement *j, const struct trace *t, const struct finding *f, unsigned kinds,
                  run_fact_take *take, void *ctx)
{
    const struct facts to = {j, t, kinds, take, ctx};
    tell_finding(&to, f);
}

void run_facts(const struct judgement *j, const struct trace *t, unsigned kinds, run_fact_take *take, void *ctx)
{
    const struct facts to = {j, t, kinds, take, ctx};
    if (j)
        tell_judged(&to);
    tell_lost(&to);
    tell_recorded(&to);
    tell_own(&to);
    tell_unstaged(&to);
    tell_undeclared(&to);
    for (size_t i = 0; i < t->info.n_events; i++)
        tell_event(&to, FACT_EVENT, &plain, &t->info.events[i]);
}

/* ---- one of them ---- */

static void keep_first(void *ctx, const struct run_fact *fact)
{
    char *out = ctx;
    if (!out[0])
        snprintf(out, FACT_WORDS_BYTES, "%s", fact->words);
}

bool run_fact_first(const struct judgement *j, const struct trace *t, unsigned kinds, char out[FACT_WORDS_BYTES])
{
    out[0] = '\0';
    run_facts(j, t, kinds, keep_first, out);
    return out[0] != '\0';
}

bool run_fact_first_of(const struct judgement *j, const struct trace *t, const struct finding *f, unsigned kinds,
                       char out[FACT_WORDS_BYTES])
{
    out[0] = '\0';
    run_facts_of(j, t, f, kinds, keep_first, out);
    return out[0] != '\0';
}

const char *run_fact_name(enum run_fact_kind kind)
{
    static const char *const names[] = {
#define FACT(id, name) [id] = (name),
#include "engine/verdict/facts.def"
#undef FACT
    };
    return names[kind];
}

void place_line(const struct trace *t, struct place place, char out[PLACE_LINE_BYTES])
{
    const int32_t *at = trace_slot_place(t, place.slot);
    const int used = snprintf(out, PLACE_LINE_BYTES, "batch %d, head %d, q tile %d", at[0], at[1], at[2]);
    if (channel_per_kv(place.channel))
        snprintf(out + used, PLACE_LINE_BYTES - (size_t)used, ", kv tile %d", place.kv);
}

void run_fact_line(const struct trace *t, const struct run_fact *fact, char out[FACT_LINE_BYTES])
{
    char place[PLACE_LINE_BYTES] = "", element[48] = "", site[320] = "";
    if (fact->place.slot >= 0)
        place_line(t, fact->place, place);
    if (fact->row >= 0)
        snprintf(element, sizeof element, fact->col >= 0 ? ", row %d, column %d" : ", row %d", fact->row, fact->col);
    if (fact->site)
        snprintf(site, sizeof site, "; probe at %s:%d", fact->site->file, fact->site->line);
    snprintf(out, FACT_LINE_BYTES, "%s%s%s%s%s%s", fact->words, place[0] ? " " : "", place, element, fact->after, site);
}
