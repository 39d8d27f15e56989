#include "engine/verdict/onset.h"

#include "engine/verdict/case.h"
#include "engine/verdict/reports.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool counts_unreal(const struct verdict *v)
{
    return v->count[CLASS_NAN] > 0 || v->count[CLASS_INF] > 0;
}

bool run_onset_wanted(const struct judgement *j, int slot)
{
    for (int kv = 0; kv < j->kv_tiles; kv++)
        for (int ch = 0; ch < ASC_CHANNELS; ch++) {
            const struct tile_verdicts *v = judgement_tile(j, (struct place){slot, kv, (enum asc_channel)ch});
            if (counts_unreal(&v->local) || counts_unreal(&v->global))
                return true;
        }
    return false;
}

int run_onset_new(const struct trace *t, struct run_onset **out)
{
    struct run_onset *o = calloc(1, sizeof *o);
    *out = o;
    if (!o)
        return -1;
    o->heads = t->problem.batch * t->problem.heads;
    o->of_heads = calloc((size_t)o->heads * ASC_CHANNELS, sizeof *o->of_heads);
    o->first = calloc(RUN_ROOTS_KEPT, sizeof *o->first);
    if (o->of_heads && o->first)
        return 0;
    run_onset_free(o);
    *out = NULL;
    return -1;
}

void run_onset_free(struct run_onset *o)
{
    if (!o)
        return;
    free(o->of_heads);
    free(o->first);
    free(o);
}

static int comes_before(const struct run_root *a, const struct run_root *b)
{
    return a->slot != b->slot ? a->slot < b->slot : a->index < b->index;
}

/* Slots come in any order: what is kept does not depend on it. */
static void insert(struct run_onset *o, const struct run_root *root)
{
    int at = o->n;
    while (at > 0 && comes_before(root, &o->first[at - 1]))
        at--;
    if (at >= RUN_ROOTS_KEPT)
        return;
    o->n += o->n < RUN_ROOTS_KEPT;
    memmove(&o->first[at + 1], &o->first[at], (size_t)(o->n - at - 1) * sizeof *o->first);
    o->first[at] = *root;
}

void run_onset_add(struct run_onset *o, const struct trace *t, int slot, const struct onset *found)
{
    const int32_t *place = trace_slot_place(t, slot);
    uint64_t *head = o->of_heads + (ptrdiff_t)(place[0] * t->problem.heads + place[1]) * ASC_CHANNELS;
    int kept[ASC_CHANNELS] = {0};
    o->roots += found->roots;
    o->outputs += found->outputs;
    for (int r = 0; r < ORIGIN_COUNT; r++)
        o->of_origin[r] += found->of_origin[r];
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        o->of_stage[ch] += found->of_stage[ch];
        head[ch] += found->of_stage[ch];
    }
    for (int i = 0; i < found->n; i++)
        if (kept[found->first[i].channel]++ < RUN_ROOTS_PER_STAGE)
            insert(o, &(struct run_root){slot, i, found->first[i]});
}

int onset_of_slot(const struct trace *t, int slot, struct judge_scratch *scratch, struct onset *out)
{
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    const int failed = onset_case(&c.c, scratch, out);
    slot_case_free(&c);
    return failed;
}

const struct run_root *run_onset_first(const struct run_onset *o)
{
    for (int i = 0; o && i < o->n; i++)
        if (o->first[i].root.origin != ORIGIN_MASKED)
            return &o->first[i];
    return NULL;
}

int run_onset_at(const struct run_onset *o, struct place place, int row)
{
    int at = -1;
    for (int i = 0; o && i < o->n; i++) {
        const struct run_root *r = &o->first[i];
        const bool same = r->slot == place.slot && r->root.channel == place.channel &&
                          (!channel_per_kv(place.channel) || r->root.kv == place.kv);
        if (same && r->root.row == row)
            return i;
        if (same && at < 0)
            at = i;
    }
    return at;
}

const char *onset_value_word(double value)
{
    return isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf";
}

void onset_place_words(const struct trace *t, const struct run_root *r, char out[ONSET_WORDS_BYTES])
{
    const int32_t *at = trace_slot_place(t, r->slot);
    char batch[16] = "", kv[16] = "";
    if (t->problem.batch > 1)
        snprintf(batch, sizeof batch, "b%d ", (int)at[0]);
    if (channel_per_kv(r->root.channel))
        snprintf(kv, sizeof kv, " k%d", r->root.kv);
    snprintf(out, ONSET_WORDS_BYTES, "%s %sh%d q%d%s [%d, %d]", channel_label(r->root.channel), batch, (int)at[1],
             (int)at[2], kv, r->root.row, r->root.col);
}

void onset_chain_words(const struct onset_root *r, char out[ONSET_WORDS_BYTES])
{
    char kv[32] = "", which[48] = "it propagates";
    if (r->members > 1)
        snprintf(which, sizeof which, "with %d other%s of its row it propagates", r->members - 1,
                 r->members > 2 ? "s" : "");
    if (r->reached > 0) {
        snprintf(out, ONSET_WORDS_BYTES, "%s to %llu element%s of O in %d row%s", which, (unsigned long long)r->reached,
                 r->reached == 1 ? "" : "s", r->reached_rows, r->reached_rows == 1 ? "" : "s");
        return;
    }
    if (channel_per_kv(r->last))
        snprintf(kv, sizeof kv, " at kv tile %d", r->last_kv);
    snprintf(out, ONSET_WORDS_BYTES, "%s to %s%s and does not reach O", which, channel_label(r->last), kv);
}

/* What says more of such an element than its origin. Uninitialized memory has a reason of its own. */
static const struct trace_event *event_of(const struct judgement *j, const struct trace *t, enum nan_origin origin,
                                          enum asc_channel ch)
{
    const struct trace_event *e = NULL;
    if (origin == ORIGIN_UNKNOWN || origin == ORIGIN_UNWRITTEN)
        e = judgement_event(j, t, ch, origin == ORIGIN_UNKNOWN);
    const enum event_kind kind = e ? e->kind : EVENT_NONE;
    return origin == ORIGIN_UNKNOWN || kind == EVENT_NEVER_WAITED || kind == EVENT_UNINITIALIZED ? e : NULL;
}

/* The sentence of an unknown origin speaks of operands that are known, and finite. */
static const char *sentence_of(const struct onset_root *r)
{
    bool finite = r->known || r->n_products;
    for (int i = 0; i < OPERAND_COUNT; i++)
        finite = finite && (!(r->known & 1u << i) || isfinite(r->operand[i]));
    for (int i = 0; i < r->n_products; i++)
        finite = finite && isfinite(r->product[i].a) && isfinite(r->product[i].b);
    /* What the kernel read in the place of an input nobody knows. */
    if (r->origin == ORIGIN_UNKNOWN && r->channel <= asc_v)
        return "unknown: its input is finite, and nothing known gives this";
    if (r->origin == ORIGIN_UNUSED && r->channel > asc_v) /* what was not recorded of a stage before it */
        return "it is made of memory that holds no row of any sequence";
    return r->origin == ORIGIN_UNKNOWN && !finite ? "unknown: nothing known gives this of its operands"
                                                  : origin_sentence(r->origin);
}

enum { REASON_MOST = 130 };

void onset_reason_words(const struct judgement *j, const struct trace *t, const struct onset_root *r,
                        char out[ONSET_WORDS_BYTES])
{
    const struct finding *f = NULL;
    for (int i = 0; r->origin == ORIGIN_UNKNOWN && i < j->n_findings; i++)
        if (j->findings[i].channel == r->channel && !j->findings[i].loop)
            f = &j->findings[i];
    const enum cause cause = f ? f->cause : CAUSE_NONE;
    const struct trace_event *event = f && f->event         ? &t->info.events[f->event - 1]
                                      : cause == CAUSE_NONE ? event_of(j, t, r->origin, r->channel)
                                                            : NULL;
    if (event)
        event_reason(event, out, ONSET_WORDS_BYTES);
    if (event && strlen(out) > REASON_MOST) /* an example may go */
        out[strcspn(out, ":")] = '\0';
    if (!event)
        snprintf(out, ONSET_WORDS_BYTES, "%s", cause ? cause_sentence(cause) : sentence_of(r));
}

void onset_words(const struct judgement *j, const struct trace *t, const struct run_root *r,
                 char out[ONSET_WORDS_BYTES])
{
    char place[ONSET_WORDS_BYTES], chain[ONSET_WORDS_BYTES], reason[ONSET_WORDS_BYTES];
    onset_place_words(t, r, place);
    onset_chain_words(&r->root, chain);
    onset_reason_words(j, t, &r->root, reason);
    snprintf(out, ONSET_WORDS_BYTES,
             r->root.origin == ORIGIN_BEYOND
                 ? "%s begins at keys beyond the last one, and is first met at %.64s: %.*s; %.120s"
                 : "%s begins at %.64s: %.*s; %.120s",
             onset_value_word(r->root.value), place, REASON_MOST, reason, chain);
}

void onset_path_words(const struct onset_root *r, char out[ONSET_WORDS_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (int ch = 0; ch < ASC_CHANNELS && used < ONSET_WORDS_BYTES; ch++) {
        const struct onset_hop *hop = &r->chain[ch];
        char kv[32] = "";
        if (!hop->elements)
            continue;
        if (channel_per_kv((enum asc_channel)ch))
            snprintf(kv, sizeof kv, hop->last_kv != hop->first_kv ? " k%d-%d" : " k%d", hop->first_kv, hop->last_kv);
        used += (size_t)snprintf(out + used, ONSET_WORDS_BYTES - used, "%s%s%s (%u)", used ? " → " : "",
                                 channel_label((enum asc_channel)ch), kv, hop->elements);
    }
}

void onset_keys_words(const struct onset_root *r, char out[ONSET_WORDS_BYTES])
{
    out[0] = '\0';
    if (r->keys_so_far == 0)
        snprintf(out, ONSET_WORDS_BYTES, "row %d has seen no key%s: the mask hides all of them", r->row,
                 channel_per_kv(r->channel) ? " so far" : " at all");
    else if (r->keys == 0)
        snprintf(out, ONSET_WORDS_BYTES, "row %d sees no key of this tile, %d before it", r->row, r->keys_so_far);
}

int onset_factors(const struct trace *t, const struct run_root *r, enum asc_channel ch, double *out)
{
    const struct onset_root *root = &r->root;
    const bool has_score = root->known & 1u << OPERAND_S && isfinite(root->operand[OPERAND_S]);
    struct slot_case c;
    if (root->channel != asc_s && !(root->channel == asc_p && has_score))
        return 0;
    if (slot_case_make(t, r->slot, &c) != 0)
        return 0;
    for (int d = 0; d < c.c.head_dim; d++)
        out[d] = ch == asc_q ? onset_factor(&c.c, asc_q, 0, root->row, d)
                             : onset_factor(&c.c, asc_k, root->kv, root->col, d);
    const int n = c.c.head_dim;
    slot_case_free(&c);
    return n;
}

/* V's padding is seen by what it makes of U. */
static bool is_padding(const struct finding *f, const struct onset_root *r)
{
    return f->channel == asc_v && r->channel == asc_u && r->origin == ORIGIN_ZERO_TIMES_INF;
}

/* Whether U is none because of what V holds behind the last key. */
static bool is_behind_keys(const struct trace *t, const struct onset_root *r, int batch)
{
    return r->channel == asc_u && r->origin == ORIGIN_ZERO_TIMES_INF && r->n_products == 1 &&
           r->kv * t->plan.bc + r->product[0].index >= asc_kv_len(&t->problem, batch);
}

/* Whether what is no number comes into this channel in another way as well. */
static bool is_of_others(const struct run_onset *o, const struct run_root *root)
{
    bool others = false;
    for (int k = 0; k < o->n; k++) {
        const struct onset_root *it = &o->first[k].root;
        others = others ||
                 (it->channel == root->root.channel && it->origin != root->root.origin && it->origin != ORIGIN_MASKED);
    }
    return others;
}

void onset_tell(const struct judgement *j, const struct trace *t, const struct run_onset *o, struct finding *findings,
                int n)
{
    for (int i = 0; i < n; i++) {
        struct finding *f = &findings[i];
        char reason[ONSET_WORDS_BYTES];
        const struct run_root *root = NULL;
        const struct trace_event *event = NULL;
        for (int k = 0; o && k < o->n && !root && !event; k++) {
            const struct onset_root *it = &o->first[k].root;
            if (it->origin == ORIGIN_MASKED || (it->channel != f->channel && !is_padding(f, it)))
                continue;
            event = event_of(j, t, it->origin, f->channel);
            root = it->origin != ORIGIN_UNKNOWN || event ? &o->first[k] : NULL;
        }
        if (!root || !f->reason || f->cause != CAUSE_NONE || finding_has_rule(f))
            continue;
        size_t bytes = 0;
        char *unknown = finding_reason(f, &bytes);
        snprintf(reason, sizeof reason, "%sas %s", is_of_others(o, root) ? "in part " : "",
                 origin_sentence(root->root.origin));
        if (is_behind_keys(t, &root->root, trace_slot_place(t, f->first.slot)[0]))
            snprintf(reason, sizeof reason, "as rows of V behind the last key are no numbers: 0 times that is NaN");
        if (event)
            event_reason(event, reason, sizeof reason);
        f->event = event ? 1 + (int)(event - t->info.events) : 0;
        const int key = f->first.kv * t->plan.bc + f->row;
        if (is_padding(f, &root->root))
            snprintf(unknown, bytes, "%s NaN or infinite; 0 times that makes U NaN%s%s",
                     key >= asc_kv_len(&t->problem, trace_slot_place(t, f->first.slot)[0]) ? "its padding is" : "it is",
                     f->place[0] ? "; wrong" : "", f->place);
        else
            snprintf(unknown, bytes, "%s begins here, %s%s%s", onset_value_word(root->root.value), reason,
                     f->place[0] ? "; wrong" : "", f->place);
        /* A trap is where it happens, and no reason: that is looked for on. */
        const bool is_told = event ? !event_is_of_numbers(event->kind) : root->root.origin != ORIGIN_UNWRITTEN;
        if (is_padding(f, &root->root) || is_told)
            f->reason = 0;
    }
}
