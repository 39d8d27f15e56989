/* Findings: for each stage with local faults, which known mistake explains what was captured. */
#include "engine/verdict/judgement.h"

#include "engine/verdict/addresses.h"
#include "engine/verdict/another.h"
#include "engine/verdict/case.h"
#include "engine/verdict/explain.h"
#include "engine/verdict/lengths.h"
#include "engine/verdict/masks.h"
#include "engine/verdict/measured.h"
#include "engine/verdict/misplaced.h"
#include "engine/verdict/reports.h"
#include "engine/verdict/skipping.h"
#include "engine/verdict/stored.h"
#include "engine/verdict/strides.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t elements_of(const struct verdict *v)
{
    uint64_t n = 0;
    for (int i = 0; i < CLASS_COUNT; i++)
        n += v->count[i];
    return n;
}

static bool is_bad(const struct judgement *j, const struct cause_plan *plan, struct place place)
{
    return plan->culprits & 1u << place.channel && (channel_per_kv(place.channel) || place.kv == 0) &&
           judgement_tile_bad(j, place, 0);
}

/* Sets of culprits with bad elements at each kv tile of a slot; NULL without memory. */
static uint32_t *bad_tiles(const struct judgement *j, const struct cause_plan *plan, int slot)
{
    uint32_t *bad = calloc((size_t)j->kv_tiles, sizeof *bad);
    for (int kv = 0; bad && kv < j->kv_tiles; kv++)
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            if (is_bad(j, plan, (struct place){slot, kv, ch}))
                bad[kv] |= 1u << ch;
    return bad;
}

static uint64_t weight_of(const struct judgement *j, const struct trace *t, struct place place)
{
    const int batch = trace_slot_place(t, place.slot)[0];
    const int keys = channel_valid_rows(asc_k, &t->problem, &t->plan, batch, 0, place.kv);
    return verdict_bad(&judgement_tile(j, place)->local) * (uint64_t)keys;
}

/* The tile to choose parameters on: most bad elements, over most keys. Counts the elements of all bad tiles. */
static struct place best_tile(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                              struct cause_plan *plan)
{
    struct place best = {.slot = -1, .channel = ch};
    uint64_t most = 0;
    for (int slot = 0; slot < j->n_slots; slot++) {
        for (int kv = 0; kv < j->kv_tiles; kv++) {
            const struct place place = {slot, kv, ch};
            if (!judgement_slot_done(j, slot) || !is_bad(j, plan, place))
                continue;
            const struct verdict *v = &judgement_tile(j, place)->local;
            const uint64_t weight = weight_of(j, t, place);
            plan->elements[ch] += elements_of(v);
            if (weight < most)
                continue;
            most = weight;
            best = place;
        }
    }
    return best;
}

/* The worst other such tile of the same slot: what is one choice in one tile is another there, as the tile visited
   before and the first one. slot -1: there is none. */
static struct place other_tile(const struct judgement *j, const struct trace *t, struct place at,
                               const struct cause_plan *plan)
{
    struct place best = {.slot = -1, .channel = at.channel};
    for (int kv = 0; kv < j->kv_tiles; kv++) {
        const struct place place = {at.slot, kv, at.channel};
        if (kv != at.kv && is_bad(j, plan, place) && (best.slot < 0 || weight_of(j, t, place) > weight_of(j, t, best)))
            best = place;
    }
    return best;
}

static int choose_on(const struct judgement *j, const struct trace *t, struct place at, struct judge_scratch *scratch,
                     struct cause_plan *plan)
{
    struct slot_case c = {0};
    uint32_t *one = calloc((size_t)j->kv_tiles, sizeof *one);
    int failed = !one || slot_case_make(t, at.slot, &c) != 0;
    if (!failed) {
        one[at.kv] = 1u << at.channel;
        failed = cause_choose(&c.c, one, scratch, plan);
    }
    slot_case_free(&c);
    free(one);
    return failed;
}

int judgement_plan(const struct judgement *j, const struct trace *t, unsigned culprits, struct judge_scratch *scratch,
                   struct cause_plan *plan)
{
    int failed = 0;
    cause_plan_begin(plan, culprits);
    for (int ch = 0; ch < ASC_CHANNELS && !failed; ch++) {
        const struct place at = best_tile(j, t, ch, plan);
        if (at.slot < 0)
            continue;
        failed = choose_on(j, t, at, scratch, plan);
        const struct place second = other_tile(j, t, at, plan);
        if (second.slot >= 0 && !failed)
            failed = choose_on(j, t, second, scratch, plan);
    }
    return failed ? -1 : 0;
}

int judgement_collect(const struct judgement *j, const struct trace *t, const struct cause_plan *plan, int slot,
                      struct judge_scratch *scratch, struct cause_evidence evidence[CAUSE_COUNT])
{
    struct slot_case c = {0};
    uint32_t *bad = bad_tiles(j, plan, slot);
    int failed = !bad || slot_case_make(t, slot, &c) != 0;
    if (!failed)
        failed = cause_collect(&c.c, bad, plan, scratch, evidence);
    slot_case_free(&c);
    free(bad);
    return failed ? -1 : 0;
}

/* The first tile that is wrong by the inputs, where there is one. */
static void take_first_global(const struct judgement *j, struct finding *f)
{
    const int tiles = channel_per_kv(f->channel) ? j->kv_tiles : 1;
    for (int i = 0; i < j->n_slots * tiles; i++) {
        const struct place place = {i / tiles, i % tiles, f->channel};
        if (judgement_slot_done(j, place.slot) && judgement_tile_bad(j, place, true)) {
            f->first = place;
            return;
        }
    }
}

/* In row order; where only padding is bad, what the verdict says. by_inputs: what is wrong by them, if anything is. */
static int first_bad_element(const struct judgement *j, const struct trace *t, struct judge_scratch *scratch,
                             bool by_inputs, struct finding *f)
{
    const struct verdict *v = &judgement_tile(j, f->first)->local;
    struct tile_detail d;
    f->row = v->worst_row;
    f->col = v->worst_col;
    if (judgement_detail(j, t, f->first, scratch, &d) != 0)
        return -1;
    const uint8_t *class = by_inputs ? d.class_global : d.class_local;
    int i = 0;
    while (i < d.rows * d.cols && !class_bad(class[i]))
        i++;
    if (i < d.rows * d.cols) {
        f->row = i / d.cols;
        f->col = i % d.cols;
    }
    tile_detail_free(&d);
    return 0;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* Whether o or lse reached memory otherwise than the probe recorded it, anywhere. */
static bool stored_otherwise(const struct trace *t, enum asc_channel ch)
{
    if (ch != asc_o && ch != asc_lse)
        return false;
    for (int slot = 0; slot < t->layout.n_slots; slot++)
        if (case_output_differs(t, ch, slot))
            return true;
    return false;
}

/* What a rule says, and of how much, where that is not all. */
static void rule_words(const struct finding *f, char *out, size_t bytes)
{
    char part[40] = "";
    const bool of_part = !f->pattern && f->n_rules && f->share < FINDING_WHOLE;
    if (of_part && f->placed)
        snprintf(part, sizeof part, " (not all of them)");
    else if (of_part && f->sampled)
        snprintf(part, sizeof part, " (about %.3g%% of them)", 100 * f->share);
    else if (of_part)
        snprintf(part, sizeof part, " (%llu of them)", (unsigned long long)f->given);
    snprintf(out, bytes, "%s%s%s", f->pattern ? "no known cause; " : "", f->explained, part);
}

static void write_unknown(struct finding *f, int above, int few)
{
    char *out = f->text + f->reason;
    const size_t bytes = sizeof f->text - (size_t)f->reason;
    if (f->explained[0]) {
        rule_words(f, out, bytes);
        return;
    }
    if (f->follows)
        snprintf(out, bytes, "it is judged as the plan deals kv tiles, and this kernel deals them otherwise");
    else if (!f->output_right)
        snprintf(out, bytes, "no known cause");
    else if (above >= 0)
        snprintf(out, bytes, "O and LSE are within their bounds; it is judged by %s, which is not as declared",
                 channel_label((enum asc_channel)above));
    else
        snprintf(out, bytes,
                 "O and LSE are within their bounds, and no declaration that was tried explains it; see its probe");
    const size_t used = strlen(out);
    if (few)
        snprintf(out + used, bytes - used, "; too few elements to tell: a larger shape or other inputs may name it");
}

void finding_explained(const struct finding *f, int shorter, char *out, size_t bytes)
{
    const struct cause_evidence *e = &f->evidence;
    if (f->explained[0]) {
        const bool is_family = cause_is_family(f->cause);
        snprintf(out, bytes, "%s: %s%s%s", channel_label(f->channel),
                 shorter < 2 || !is_family ? cause_sentence(f->cause) : "", shorter < 2 ? ": " : "",
                 shorter < 2 || is_family ? f->explained : "");
        return;
    }
    char of[48] = "", rounding[48] = "", detail[sizeof f->detail + 4] = "";
    if (shorter < 1 && f->detail[0])
        snprintf(detail, sizeof detail, " (%s)", f->detail);
    if (shorter < 1)
        snprintf(of, sizeof of, " of %llu", (unsigned long long)e->elements);
    if (shorter < 2)
        snprintf(rounding, sizeof rounding, " (rounding %.2g%%)", percent(e->rounding, e->elements));
    snprintf(out, bytes, "%s = %s explains %.4g%%%s%s: %s%s", channel_label(f->channel), cause_formula(f->cause),
             percent(e->explained, e->elements), of, rounding, cause_sentence(f->cause), detail);
}

/* `used` bytes of the text stand. */
static void write_stored(struct finding *f, const struct trace *t, const struct stage_summary *stage, int used)
{
    char where[240] = "", missing[64] = "";
    const bool told = stored_words(t, f->channel, where, sizeof where);
    if (told && stage->missing_local)
        snprintf(missing, sizeof missing, "; %llu elements are never written",
                 (unsigned long long)stage->missing_local);
    f->reason = told ? 0 : used;
    snprintf(f->text + used, sizeof f->text - (size_t)used, "memory does not match what the probe saw%s%s%s",
             told ? ": " : " (wrong address or missing store)", where, missing);
}

/* Threads that do not meet at a barrier may not have meant to work on the same tile. */
static void say_visitors(struct finding *f, const struct trace *t)
{
    int rows[2];
    const size_t used = strlen(f->text);
    if (!channel_per_kv(f->channel) || !case_visited_in_part(t, f->first.slot, f->first.kv, rows))
        return;
    const int q_tile = trace_slot_place(t, f->first.slot)[2];
    if (rows[0] < 0)
        snprintf(f->text + used, sizeof f->text - used, "; only some rows of q tile %d visit kv tile %d", q_tile,
                 f->first.kv);
    else
        snprintf(f->text + used, sizeof f->text - used, "; rows %d to %d of q tile %d alone visit kv tile %d", rows[0],
                 rows[1], q_tile, f->first.kv);
}

/* A search looks at keys that there are: what is behind them is read off the mask. */
static void add_mask(const struct masks *masks, struct finding *f)
{
    char columns[240];
    const size_t used = strlen(f->text);
    if (masks && masks_columns_words(masks, f->first.slot, f->first.kv, columns, sizeof columns))
        snprintf(f->text + used, sizeof f->text - used, "; the mask of kv tile %d %s", f->first.kv, columns);
}

/* few: a cause fits, but on less than it takes to be named. */
static void write_text(struct finding *f, const char *misplaced, const struct trace *t,
                       const struct stage_summary *stage, const char *why, int above, int few)
{
    const char *label = channel_label(f->channel);
    const unsigned long long bad = stage->bad_local, all = stage->elements;
    if (f->channel == asc_lse && t->conventions.no_lse) {
        snprintf(f->text, sizeof f->text, "%s is written in %llu of %llu elements, but the kernel declares no_lse",
                 label, bad, all);
        return;
    }
    if (f->cause == CAUSE_NONE && misplaced[0]) {
        snprintf(f->text, sizeof f->text, "%s is not as declared in %llu of %llu elements: %s", label, bad, all,
                 misplaced);
        return;
    }
    if (f->cause == CAUSE_NONE && stage->missing_local == stage->bad_local) {
        char where[240];
        const bool elsewhere = f->channel >= asc_o && stored_words(t, f->channel, where, sizeof where);
        snprintf(f->text, sizeof f->text, "%s was never written in %llu of %llu elements%s%s%s%s", label, bad, all,
                 f->place[0] ? ":" : "", f->place, elsewhere ? "; what the probe saw lies elsewhere: " : "",
                 elsewhere ? where : "");
        return;
    }
    if (f->event) {
        const int used = snprintf(f->text, sizeof f->text, "%s is wrong in %llu of %llu elements: %s", label, bad, all,
                                  f->in_part ? "in part " : "");
        event_reason(&t->info.events[f->event - 1], f->text + used, sizeof f->text - (size_t)used);
        if (t->info.events[f->event - 1].kind == EVENT_BARRIER)
            say_visitors(f, t);
        return;
    }
    if (f->cause == CAUSE_NONE && stored_otherwise(t, f->channel)) {
        const int used = snprintf(f->text, sizeof f->text, "%s is wrong in %llu of %llu elements: ", label, bad, all);
        write_stored(f, t, stage, used);
        return;
    }
    if (f->cause == CAUSE_NONE && f->declaration[0]) {
        snprintf(f->text, sizeof f->text, "%s: %s", why, f->declaration);
        return;
    }
    if (f->cause == CAUSE_NONE) {
        f->reason = snprintf(f->text, sizeof f->text, "%s %s in %llu of %llu elements: ", label,
                             f->output_right ? "is not as declared" : "is wrong", bad, all);
        write_unknown(f, above, few);
        return;
    }
    if (!f->explained[0]) {
        finding_explained(f, 0, f->text, sizeof f->text);
        return;
    }
    /* A name may say no more than its rule. */
    const bool says_more = strcmp(cause_sentence(f->cause), f->explained) != 0;
    const int used = snprintf(f->text, sizeof f->text, "%s is wrong in %llu of %llu elements: %s%s", label, bad, all,
                              says_more ? cause_sentence(f->cause) : "", says_more ? ": " : "");
    rule_words(f, f->text + used, sizeof f->text - (size_t)used);
}

/* Where the stage or one behind it was fed, O is made of what was fed: it says nothing of what this stage computed. */
static bool output_tells(const struct summary *summary, enum asc_channel ch)
{
    return summary->fed_channels >> ch == 0;
}

/* Another declaration is believed where the output is right whatever was declared; in a run with a wrong output, a
   mistake of the same formula is: a missing scale looks like a wrong unit. */
static bool declarations_first(const struct summary *summary, enum asc_channel ch)
{
    return summary->stage[asc_o].global == STAGE_OK && output_tells(summary, ch);
}

/* A stage that is wrong shows in what is made of it. Where O and LSE are right, and err as roundings do, what m, alpha,
   P, l or U seems to be wrong by is its declaration. */
static bool output_right(const struct summary *summary, enum asc_channel ch)
{
    const struct stage_summary *o = &summary->stage[asc_o];
    return output_tells(summary, ch) && o->global == STAGE_OK && !o->unusual &&
           summary->stage[asc_lse].global != STAGE_BAD;
}

/* A declaration is no cause where a stage above is a culprit: what is computed from wrong values looks like much.
   A mistake shows in the output. Where it does not, what looks like one was declared otherwise, or its probe is wrong.
 */
static bool may_be(const struct summary *summary, enum cause cause)
{
    const unsigned above = (1u << cause_channel(cause)) - 1;
    if (output_right(summary, cause_channel(cause)))
        return cause_is_declaration(cause);
    return !(cause_is_declaration(cause) && summary->culprits & above);
}

struct testing {
    const struct judgement *j;
    const struct trace *t;
    const struct summary *summary;
    const struct cause_plan *plan;
    const struct cause_evidence *evidence; /* [CAUSE_COUNT] */
    struct searchers by;
    struct judge_scratch *scratch;             /* the first of theirs */
    const struct declared_otherwise *declared; /* [ASC_CHANNELS] */
    struct known_rules *known;                 /* of the stages so far */
    int above;                                 /* the last stage so far that is wrong for no known reason; -1: none */
};

static int take_cause(const struct testing *testing, enum cause cause, struct finding *f)
{
    struct slot_case c;
    if (f->cause != CAUSE_NONE) {
        f->also[f->n_also++] = cause;
        return 0;
    }
    f->cause = cause;
    f->evidence = testing->evidence[cause];
    if (slot_case_make(testing->t, f->first.slot, &c) != 0)
        return -1;
    cause_detail(cause, &c.c, testing->plan, f->detail, sizeof f->detail);
    slot_case_free(&c);
    return 0;
}

/* The declaration that makes a stage right whose output is; one that is a stage's own cause says more, but of m: a
   maximum that lags looks like one in another unit. */
static void take_declaration(const struct testing *testing, struct finding *f, struct declared_otherwise *it)
{
    const struct stage_summary *stage = &testing->summary->stage[f->channel];
    *it = testing->declared[f->channel];
    if (!f->output_right || stage->missing_local == stage->bad_local ||
        (f->cause != CAUSE_NONE && cause_is_declaration(f->cause) && !it->follows && !it->states &&
         !(it->measured && f->channel == asc_m)))
        return;
    if (!it->fields[0])
        return;
    f->cause = CAUSE_NONE;
    f->n_also = 0;
    f->detail[0] = '\0';
    snprintf(f->declaration, sizeof f->declaration, "%s", it->fields);
}

/* P rounded on the way to l or U is a mistake, or meant and not declared: the values do not tell. */
static int rounded_lines(const struct testing *testing, const struct explanation *found, struct finding *f)
{
    const struct rule *rule = &found->rule[0];
    const bool rounds = found->n == 1 && found->share >= FINDING_WHOLE && rule->kind == RULE_OPERAND &&
                        rule->rows.operand == asc_p && rule->type != DTYPE_COUNT && !rule->cuts && !rule->reads &&
                        rule->turns == 0 && rule->limit == 0 && rule->plus == 0;
    return rounds && (f->channel == asc_l || f->channel == asc_u)
               ? cause_rounded_lines(f->channel, &testing->t->conventions, rule->type, f->line)
               : 0;
}

static void take_lines(const struct testing *testing, const struct declared_otherwise *declared, struct finding *f)
{
    if (f->declaration[0]) {
        memcpy(f->line, declared->line, sizeof f->line);
        f->n_lines = declared->n_lines;
    } else if (f->cause != CAUSE_NONE && cause_is_declaration(f->cause)) {
        f->n_lines = cause_lines(f->cause, &testing->t->conventions, testing->plan, f->line);
    }
}

static void tell_rule(const struct trace *t, const struct rule *rule, const char *words, struct rule_told *out)
{
    const struct evidence *e = &rule->evidence;
    const struct telling *at = &e->telling;
    *out = (struct rule_told){.wrong = e->wrong,
                              .in = e->in,
                              .told = e->told,
                              .out = e->out,
                              .units = e->units,
                              .by_col = e->by_col,
                              .bits = e->bits,
                              .cost = rule->cost + rule->region.bits,
                              .price = rule_price(rule),
                              .tried = e->tried,
                              .place = {trace_slot(t, at->at[0], at->at[1], at->at[2]), at->kv, rule->channel},
                              .row = at->row,
                              .col = at->col,
                              .got = at->got,
                              .want = at->want,
                              .given = at->given};
    snprintf(out->text, sizeof out->text, "%s", words);
}

/* Causes of one kind that explain the stage. */
static int take_causes(const struct testing *testing, bool declarations, struct finding *f)
{
    int failed = 0;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (cause_channel(cause) == f->channel && cause_is_declaration(cause) == declarations &&
            may_be(testing->summary, (enum cause)cause) && cause_named(&testing->evidence[cause]))
            failed |= take_cause(testing, cause, f);
    return failed;
}

/* What the search has found. */
static void take_explanation(const struct testing *testing, const struct explanation *found, struct finding *f)
{
    const struct stage_summary *stage = &testing->summary->stage[f->channel];
    if (found->n && found->rule[0].evidence.share >= FINDING_WHOLE && testing->known->n < ASC_CHANNELS)
        testing->known->rule[testing->known->n++] = found->rule[0];
    snprintf(f->explained, sizeof f->explained, "%s", found->text);
    f->pattern = found->pattern;
    f->bare = found->n && f->channel <= asc_v && found->rule[0].kind == RULE_CONSTANT;
    snprintf(f->place, sizeof f->place, "%s", found->place);
    f->share = found->share;
    f->tried = found->tried;
    f->sampled = found->wrong < stage->bad_local - stage->missing_local;
    f->given = 0;
    f->placed = true;
    for (f->n_rules = 0; f->n_rules < found->n; f->n_rules++) {
        const struct rule *rule = &found->rule[f->n_rules];
        f->given += rule->evidence.in;
        f->placed = f->placed && (rule->region.n || rule->region.some_rows);
        tell_rule(testing->t, &found->rule[f->n_rules], found->said[f->n_rules], &f->rule[f->n_rules]);
    }
    if (found->n && found->runner_up.kind != RULE_NONE)
        tell_rule(testing->t, &found->runner_up, found->runner_up_said, &f->runner_up);
}

/* Where the output is right, a rule is no mistake; but how a stage rounds may be more than a declaration can say, and
   no kernel means another group's scale: the bounds of narrow types hide that from O. Q, K and V, and the output
   itself, have no other way to be right: what a rule says of them stands, small as it is. */
static int explain_right(const struct testing *testing, enum asc_channel ch, struct explanation *found)
{
    const int failed = judgement_explain(testing->j, testing->t, ch, testing->by, testing->known, found);
    const struct rule *rule = &found->rule[0];
    const bool said = ch <= asc_v || ch >= asc_o || rule->kind == RULE_ROUNDED || rule->kind == RULE_SCALE ||
                      rule->kind == RULE_SUMMED || (rule->kind == RULE_EXPONENT && testing->above < 0) ||
                      (rule->kind == RULE_VECTOR && rule->type != DTYPE_COUNT) ||
                      (rule->kind == RULE_OPERAND && !rule->turns && rule->plus == 0);
    if (found->n != 1 || !said || found->share < FINDING_WHOLE)
        *found = (struct explanation){0};
    found->cause = CAUSE_NONE;
    return failed;
}

/* Why a maximum strays, or an alpha errs, a rule may say. That it may be declared is no reason to. */
static int describe_strays(const struct testing *testing, const char *why, struct finding *f)
{
    struct explanation found = {0};
    const int failed = judgement_explain(testing->j, testing->t, f->channel, testing->by, NULL, &found);
    const struct rule *rule = &found.rule[0];
    const bool narrow = (rule->kind == RULE_VECTOR || rule->kind == RULE_ROUNDED) && rule->type != DTYPE_COUNT;
    const bool whole = found.n == 1 && found.share >= FINDING_WHOLE;
    if (whole && (narrow || (rule->kind == RULE_CARRIED && !rule->region.n && !rule->region.some_rows)))
        snprintf(f->text, sizeof f->text, "%s: %s; %s would declare it", why, found.said[0], f->declaration);
    else if (whole && f->channel == asc_m && !rule->region.n && !rule->region.some_rows)
        snprintf(f->text + strlen(f->text), sizeof f->text - strlen(f->text), "; %s", found.said[0]);
    return failed;
}

/* Tiles that no range has say that the kernel deals them otherwise than its plan: which one came before a tile in its
   range is not known then, nor what its state should be made of, unless blocks say so. */
static bool deals_otherwise(const struct testing *testing, enum asc_channel ch)
{
    return testing->t->plan.kv_splits > 1 && !testing->t->dealt && testing->summary->unvisited && ch >= asc_m;
}

/* Rows lie otherwise than in a trace: what is said of them is said of memory. */
static bool is_laid_out(const struct trace *t)
{
    return t->problem.lie != ASC_CONTIGUOUS || t->problem.left_pad;
}

/* A search looks at keys that there are; a mask that goes wrong behind them is known by its bits. Nothing else is wrong
   in S where as many elements are as bits of the mask. */
static void take_mask(const struct testing *testing, struct explanation *found, struct finding *f)
{
    const struct masks *masks = testing->j->masks;
    char words[240];
    bool certain = true;
    if (!masks ||
        !masks_explain(masks, testing->t, testing->summary->stage[asc_s].bad_local, words, sizeof words, &certain))
        return;
    if (found->n && !certain && found->share >= FINDING_WHOLE) {
        const size_t used = strlen(found->text);
        snprintf(found->text + used, sizeof found->text - used, ", or %s", words);
        return;
    }
    *found = (struct explanation){.cause = CAUSE_s_mask_moved, .share = 1};
    f->cause = found->cause;
    snprintf(found->text, sizeof found->text, "%s", words);
}

/* What one of those that know memory says of a stage is its cause. */
static int take_address(const struct testing *testing, enum asc_channel ch,
                        int (*look)(const struct judgement *j, const struct trace *t, enum asc_channel ch, char *out),
                        struct explanation *found, struct finding *f)
{
    static const enum cause of[] = {[asc_q] = CAUSE_q_address,
                                    [asc_k] = CAUSE_k_address,
                                    [asc_v] = CAUSE_v_address,
                                    [asc_s] = CAUSE_s_other_lengths};
    char text[LENGTHS_BYTES] = "";
    _Static_assert((int)LENGTHS_BYTES >= (int)ADDRESS_BYTES, "room for what either says");
    const int failed = look(testing->j, testing->t, ch, text);
    if (failed || !text[0])
        return failed;
    *found = (struct explanation){.cause = of[ch], .share = 1};
    f->cause = found->cause;
    snprintf(found->text, sizeof found->text, "%s", text);
    return 0;
}

/* O or LSE of another q tile, where that tells more than a rule. */
static int take_another(const struct testing *testing, enum asc_channel ch, struct explanation *found)
{
    char text[ANOTHER_BYTES];
    double share = 0;
    if (found->n && found->share >= FINDING_WHOLE)
        return 0;
    const int failed = another_words(testing->j, testing->t, ch, testing->scratch, text, &share);
    if (!failed && text[0] && share > found->share) {
        *found = (struct explanation){.share = share, .tried = found->tried};
        snprintf(found->text, sizeof found->text, "%s", text);
    }
    return failed;
}

static int find_channel(const struct testing *testing, enum asc_channel ch, struct finding *f)
{
    const struct stage_summary *stage = &testing->summary->stage[ch];
    const bool written = stage->missing_local < stage->bad_local;
    struct declared_otherwise declared;
    struct explanation found = {0};
    int few = written && stage->bad_local - stage->missing_local < CAUSE_ELEMENTS;
    memset(f, 0, sizeof *f);
    f->channel = ch;
    f->first = stage->first_local;
    f->output_right = output_right(testing->summary, ch);
    f->follows = deals_otherwise(testing, ch);
    int failed = take_causes(testing, declarations_first(testing->summary, ch), f);
    if (f->cause == CAUSE_NONE && written && !f->output_right && ch <= asc_s)
        failed |= take_address(testing, ch, ch == asc_s ? lengths_words : addresses_words, &found, f);
    if (f->cause == CAUSE_NONE && !f->output_right && ch <= asc_v && is_laid_out(testing->t))
        failed |= take_address(testing, ch, strides_words, &found, f);
    if (f->cause == CAUSE_NONE && (!f->output_right || (written && ch == asc_m)) && !deals_otherwise(testing, ch)) {
        failed |= judgement_explain(testing->j, testing->t, ch, testing->by, testing->known, &found);
        if (f->output_right && found.cause != CAUSE_m_guard_kept) /* of rows that nothing is made of */
            memset(&found, 0, sizeof found);
        f->cause = found.cause;
    }
    if (f->cause == CAUSE_NONE && written && ch == asc_s && !f->output_right && (!found.n || found.rule[0].region.n))
        take_mask(testing, &found, f);
    /* Contiguous rows at another pitch are a rule, but those of several heads that lie side by side. */
    if (f->cause == CAUSE_NONE && !f->output_right && ch <= asc_v && !is_laid_out(testing->t) &&
        !(found.n == 1 && found.share >= FINDING_WHOLE &&
          !(found.rule[0].rows.flat && testing->t->problem.layout == ASC_BLHD)))
        failed |= take_address(testing, ch, strides_words, &found, f);
    if (f->cause == CAUSE_NONE && written && !f->output_right && ch >= asc_o && !stored_otherwise(testing->t, ch))
        failed |= take_another(testing, ch, &found);
    /* What a rule says of all that is wrong is no declaration: one was asked for first where it is believed. */
    if (f->cause == CAUSE_NONE && !(found.n && found.share >= FINDING_WHOLE))
        failed |= take_causes(testing, !declarations_first(testing->summary, ch), f);
    char misplaced[MISPLACED_BYTES] = "";
    if (f->cause == CAUSE_NONE && f->output_right && ch < asc_o && !testing->declared[ch].fields[0])
        failed |= misplaced_words(testing->j, testing->t, ch, testing->scratch, misplaced);
    if (f->cause == CAUSE_NONE && f->output_right && written && !misplaced[0] && !testing->declared[ch].fields[0])
        failed |= explain_right(testing, ch, &found);
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        few |= cause_channel(cause) == ch && may_be(testing->summary, (enum cause)cause) &&
               cause_fits(&testing->evidence[cause]);
    take_declaration(testing, f, &declared);
    take_lines(testing, &declared, f);
    const bool is_open = f->cause == CAUSE_NONE && !f->declaration[0];
    f->event = is_open ? reports_misrecorded(testing->summary, testing->t, ch, f->text, sizeof f->text) : 0;
    const bool by_inputs = f->event && stage->bad_global;
    if (by_inputs)
        take_first_global(testing->j, f);
    if (first_bad_element(testing->j, testing->t, testing->scratch, by_inputs, f) != 0 || failed)
        return -1;
    if (f->event)
        return 0;
    const struct trace_event *event = is_open ? judgement_event(testing->j, testing->t, ch, false) : NULL;
    if (is_open && !event && !found.n)
        event = judgement_event_of_read(testing->j, testing->t, ch, testing->scratch);
    if (is_open && !event && !found.n && written)
        event = reports_before_inputs(testing->t, ch);
    if (is_open && !event && !found.n)
        event = reports_of_cache(testing->t, ch, f->first.slot, f->first.kv * testing->t->plan.bc + f->row);
    f->event = event && event_is_mistake(event->kind) ? 1 + (int)(event - testing->t->info.events) : 0;
    if (!f->declaration[0] && !f->event && f->cause == found.cause) {
        take_explanation(testing, &found, f);
        f->n_lines = f->n_lines ? f->n_lines : rounded_lines(testing, &found, f);
    }
    if (event && !finding_has_rule(f)) /* one that is no mistake by itself gives way to a rule */
        f->event = 1 + (int)(event - testing->t->info.events);
    f->in_part = f->event && judgement_event_in_part(testing->j, testing->t, ch, &testing->t->info.events[f->event - 1],
                                                     testing->scratch);
    write_text(f, misplaced, testing->t, stage, declared.why, testing->above, few);
    if (ch == asc_s && is_open && !f->event)
        add_mask(testing->j->masks, f);
    return f->declaration[0] && declared.strays ? describe_strays(testing, declared.why, f) : 0;
}

int judgement_find(const struct judgement *j, const struct trace *t, const struct summary *summary,
                   const struct cause_plan *plan, const struct cause_evidence evidence[CAUSE_COUNT],
                   struct judge_scratch *const *scratch, struct pool *pool, struct finding findings[MAX_FINDINGS])
{
    struct declared_otherwise declared[ASC_CHANNELS] = {0};
    struct known_rules known = {0};
    struct testing testing = {j, t, summary, plan, evidence, {pool, scratch}, scratch[0], declared, &known, -1};
    int n = 0;
    if (output_right(summary, asc_lse) && declarations_try(j, t, summary, scratch[0], declared) != 0)
        return -1;
    if (summary->unvisited && skipping_find(j, t, summary, &findings[n++]) != 0)
        return -1;
    const int first = n;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (summary->culprits & 1u << ch) {
            if (find_channel(&testing, ch, &findings[n]) != 0)
                return -1;
            if (!finding_word(&findings[n++], t)[0] && testing.above < 0)
                testing.above = ch;
        }
    /* Q was looked at first: what K or V have shown may be its rule too. */
    const bool again = n > first && findings[first].channel <= asc_v && known.n > 0;
    if (again && !finding_word(&findings[first], t)[0] && !finding_has_rule(&findings[first]))
        return find_channel(&testing, findings[first].channel, &findings[first]) ? -1 : n;
    return n;
}
