#include "engine/session/change.h"

#include "engine/study/isolation.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where no count changed, what the largest error has to grow or shrink by to be worth a word. */
#define WORST_FACTOR 2.0

static bool same_lengths(const int32_t *a, const int32_t *b, int n)
{
    return a && b ? memcmp(a, b, (size_t)n * sizeof *a) == 0 : a == b;
}

static bool same_problem(const struct asc_problem *a, const struct asc_problem *b)
{
    return a->batch == b->batch && a->heads == b->heads && a->kv_heads == b->kv_heads && a->q_len == b->q_len &&
           a->kv_len == b->kv_len && a->head_dim == b->head_dim && a->head_dim_v == b->head_dim_v &&
           a->v_in_k == b->v_in_k && a->rope == b->rope && a->rope_dim == b->rope_dim &&
           a->rope_offset == b->rope_offset && a->rope_base == b->rope_base && a->dtype == b->dtype &&
           a->causal == b->causal && a->window_left == b->window_left && a->window_right == b->window_right &&
           a->page_size == b->page_size && same_lengths(a->q_lens, b->q_lens, a->batch) &&
           same_lengths(a->kv_lens, b->kv_lens, a->batch);
}

/* The same elements were judged in both: all there are, or those of the same q tiles. */
static bool same_elements(const struct trace *a, const struct trace *b)
{
    if (!same_problem(&a->problem, &b->problem))
        return false;
    if (a->layout.n_slots == trace_places(a) && b->layout.n_slots == trace_places(b))
        return true;
    return a->layout.n_slots == b->layout.n_slots && a->plan.br == b->plan.br &&
           memcmp(a->slots, b->slots, (size_t)a->layout.n_slots * 3 * sizeof *a->slots) == 0;
}

static bool has_verdict(enum stage_status mark)
{
    return mark == STAGE_OK || mark == STAGE_BAD;
}

static enum change_kind kind_of(enum stage_status mark_before, enum stage_status mark_now, uint64_t before,
                                uint64_t now)
{
    if (!has_verdict(mark_before) || !has_verdict(mark_now) || before == now)
        return CHANGE_NONE;
    return now < before ? CHANGE_BETTER : CHANGE_WORSE;
}

static struct place first_bad(const struct summary *s)
{
    return s->first;
}

/* Tiles of one place need not have the same slot in both. */
static bool same_place(const struct trace *ta, struct place a, const struct trace *tb, struct place b)
{
    if (a.slot < 0 || b.slot < 0)
        return a.slot < 0 && b.slot < 0;
    return a.channel == b.channel && a.kv == b.kv &&
           memcmp(trace_slot_place(ta, a.slot), trace_slot_place(tb, b.slot), 3 * sizeof(int32_t)) == 0;
}

void change_find(const struct run *before, const struct run *now, struct change *out)
{
    *out = (struct change){.first_before.slot = -1, .first_now.slot = -1};
    if (!before || !now)
        return;
    if (before->scenario && now->scenario)
        scenario_difference(before->scenario, now->scenario, out->set, sizeof out->set);
    if (!before->judgement->complete || !now->judgement->complete)
        return;
    const struct summary *a = &before->judgement->summary, *b = &now->judgement->summary;
    out->since = before->number;
    out->ended[0] = trace_complete(before->trace);
    out->ended[1] = trace_complete(now->trace);
    out->state = same_elements(before->trace, now->trace) ? CHANGE_COMPARED : CHANGE_OTHER;
    if (out->state == CHANGE_OTHER || !out->ended[0] || !out->ended[1])
        return; /* what a run that was cut short got wrong is no measure */
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct stage_summary *sa = &a->stage[ch], *sb = &b->stage[ch];
        struct stage_change *c = &out->stage[ch];
        *c = (struct stage_change){.local = kind_of(sa->local, sb->local, sa->bad_local, sb->bad_local),
                                   .global = kind_of(sa->global, sb->global, sa->bad_global, sb->bad_global),
                                   .before = sa->bad_local,
                                   .now = sb->bad_local,
                                   .before_global = sa->bad_global,
                                   .now_global = sb->bad_global,
                                   .worst_before = before->worst[ch],
                                   .worst_now = now->worst[ch]};
        const enum change_kind kind = c->local != CHANGE_NONE ? c->local : c->global;
        out->better |= kind == CHANGE_BETTER ? 1u << ch : 0;
        out->worse |= kind == CHANGE_WORSE ? 1u << ch : 0;
    }
    for (int i = 0; i < plan_values(&now->trace->plan); i++) {
        const char *name = now->trace->plan.value[i].name;
        const int ch = plan_channel_from_name(&before->trace->plan, name);
        if (ch >= ASC_CHANNELS)
            out->own[i] = (struct own_change){name, a->own[ch - ASC_CHANNELS], b->own[i]};
    }
    out->first_before = first_bad(a);
    out->first_now = first_bad(b);
    /* With other tile sizes the same number is another place. */
    out->first_moved = before->trace->plan.br == now->trace->plan.br && before->trace->plan.bc == now->trace->plan.bc &&
                       !same_place(before->trace, out->first_before, now->trace, out->first_now);
}

int change_sense(const struct change *c)
{
    return c->worse || (c->ended[0] && !c->ended[1]) ? 1 : c->better || (!c->ended[0] && c->ended[1]) ? -1 : 0;
}

/* One line in the making; what has no room is cut at its end. */
struct line {
    char *out;
    size_t bytes, used;
    int parts;
};

static void __attribute__((format(printf, 2, 3))) add(struct line *l, const char *format, ...)
{
    va_list args;
    if (l->used + 3 >= l->bytes)
        return;
    if (l->parts++)
        l->used += (size_t)snprintf(l->out + l->used, l->bytes - l->used, ", ");
    va_start(args, format);
    const int n = vsnprintf(l->out + l->used, l->bytes - l->used, format, args);
    va_end(args);
    l->used += n > 0 ? (size_t)n : 0;
    if (l->used >= l->bytes)
        l->used = l->bytes - 1;
}

static void add_stages(struct line *l, const struct change *c)
{
    unsigned heal = 0, hurt = 0;
    char labels[64];
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct stage_change *s = &c->stage[ch];
        if (s->local != CHANGE_NONE)
            add(l, "%s %s (%" PRIu64 " → %" PRIu64 " off)", channel_label(ch),
                s->local == CHANGE_BETTER ? "better" : "worse", s->before, s->now);
        heal |= s->local == CHANGE_NONE && s->global == CHANGE_BETTER ? 1u << ch : 0;
        hurt |= s->local == CHANGE_NONE && s->global == CHANGE_WORSE ? 1u << ch : 0;
    }
    isolation_labels(heal, labels, sizeof labels);
    if (heal)
        add(l, "%s better globally", labels);
    isolation_labels(hurt, labels, sizeof labels);
    if (hurt)
        add(l, "%s worse globally", labels);
}

/* Of the kernel's own values nobody knows which way is better. */
static void add_own(struct line *l, const struct change *c)
{
    for (int i = 0; i < ASC_OWN_CHANNELS && c->own[i].name; i++) {
        const struct own_count *a = &c->own[i].before, *b = &c->own[i].now;
        if (a->nan != b->nan)
            add(l, "%s %" PRIu64 " → %" PRIu64 " NaN", c->own[i].name, a->nan, b->nan);
        else if (a->finite && b->finite &&
                 (a->low < b->low || a->low > b->low || a->high < b->high || a->high > b->high))
            add(l, "%s from %.4g..%.4g to %.4g..%.4g", c->own[i].name, a->low, a->high, b->low, b->high);
    }
}

/* Stages that are as often wrong as before, and much more or less so. */
static void add_worst(struct line *l, const struct change *c)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct stage_change *s = &c->stage[ch];
        const bool numbers = !isnan(s->worst_before) && !isnan(s->worst_now),
                   changed = numbers ? s->worst_now > s->worst_before * WORST_FACTOR ||
                                           s->worst_before > s->worst_now * WORST_FACTOR
                                     : isnan(s->worst_before) != isnan(s->worst_now);
        if (s->local == CHANGE_NONE && s->now > 0 && changed)
            add(l, "%s worst error/bound %.2g → %.2g", channel_label(ch), s->worst_before, s->worst_now);
    }
}

void change_words(const struct change *c, char *out, size_t bytes)
{
    struct line l = {.out = out, .bytes = bytes};
    out[0] = '\0';
    if (c->state == CHANGE_NOTHING)
        return;
    l.used = (size_t)snprintf(out, bytes, "since run %d: ", c->since);
    if (c->ended[0] != c->ended[1])
        add(&l, "%s", c->ended[1] ? "completes now" : "does not complete any more");
    if (c->state == CHANGE_OTHER) {
        add(&l, "of another shape or other q tiles: not compared");
    } else if (!c->ended[1] && !c->ended[0]) {
        add(&l, "neither came to its end");
    } else if (c->ended[0] && c->ended[1]) {
        add_stages(&l, c);
        add_own(&l, c);
        add_worst(&l, c);
        if (!l.parts)
            add(&l, "%s", c->first_moved ? "as many off, in other places" : "as before");
    }
    if (c->set[0])
        add(&l, "with %s", c->set);
}
