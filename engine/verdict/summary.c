/* What the verdicts add up to: a mark per stage, the first bad tile, the culprits. */
#include "engine/verdict/judgement.h"

#include "engine/base/pool.h"
#include "engine/oracle/schedule.h"
#include "engine/scenario/scenario.h"
#include "engine/verdict/case.h"
#include "engine/verdict/own.h"
#include <stdlib.h>
#include <string.h>

bool judgement_left_out(const struct judgement *j, const struct trace *t, struct place *at, struct left_out *out)
{
    for (; at->slot < j->n_slots; at->slot++, at->kv = 0) {
        for (; at->kv < j->kv_tiles; at->kv++) {
            int found = 0;
            for (int ch = 0; ch < ASC_CHANNELS && !found; ch++) {
                out->place = (struct place){at->slot, at->kv, (enum asc_channel)ch};
                found = channel_per_kv(out->place.channel) && judgement_tile_unvisited(j, out->place);
            }
            if (!found)
                continue;
            struct slot_case c;
            out->first_row = out->last_row = -1;
            if (slot_case_make(t, at->slot, &c) == 0) {
                for (int r = 0; r < c.c.in_q.rows; r++)
                    if (schedule_hidden(&c.c, r, at->kv) < schedule_visible(&c.c, r, at->kv)) {
                        out->first_row = out->first_row < 0 ? r : out->first_row;
                        out->last_row = r;
                    }
                slot_case_free(&c);
            }
            at->kv++;
            return true;
        }
    }
    return false;
}

static enum stage_status mark_of(int recorded, uint64_t judged, uint64_t bad, uint64_t unwritten)
{
    if (!recorded)
        return STAGE_UNRECORDED;
    if (bad)
        return STAGE_BAD;
    if (!judged)
        return STAGE_UNKNOWN;
    return unwritten ? STAGE_PARTIAL : STAGE_OK;
}

static bool same_tile(struct place a, struct place b)
{
    return a.slot == b.slot && a.kv == b.kv;
}

static void add_exact(struct exact_tiles *exact, struct place place, const struct verdict *v)
{
    if (!v->visited || v->masked || !v->judged)
        return;
    exact->judged++;
    if (!v->exact)
        return;
    exact->n++;
    exact->off += v->count[CLASS_OFF];
    exact->unequal += v->unequal;
    exact->unequal_tiles += v->unequal > 0;
    if (v->unequal && exact->first_unequal.slot < 0)
        exact->first_unequal = place;
}

static void add_bound(struct stage_summary *stage, struct place place, const struct verdict *v)
{
    if (!v->visited || !v->judged)
        return;
    stage->likely += v->likely;
    stage->worst_case += !v->likely;
    if (!v->unusual || verdict_bad(v))
        return;
    if (!stage->unusual++)
        stage->first_unusual = place;
}

/* begins: it is the kv tile that its state visited first. */
static void add_place(const struct judgement *j, struct place place, bool begins, struct summary *out,
                      struct place *last_unvisited)
{
    const struct tile_verdicts *v = judgement_tile(j, place);
    struct stage_summary *stage = &out->stage[place.channel];
    const struct tile_count local = judgement_count(j, place, 0), global = judgement_count(j, place, 1);
    const uint64_t bad = local.bad;
    stage->elements += local.judged;
    stage->unwritten += local.excused;
    stage->bad_local += bad;
    stage->begins_local += begins ? bad : 0;
    stage->missing_local += v->local.count[CLASS_MISSING] - local.excused;
    stage->bad_global += global.bad;
    stage->judged_global += global.judged;
    if (v->local.judged)
        stage->worst = error_larger(stage->worst, verdict_worst(&v->local));
    add_exact(&stage->exact, place, &v->local);
    if (place.channel == asc_o || place.channel == asc_lse)
        add_bound(stage, place, &v->global);
    if (bad && stage->first_local.slot < 0)
        stage->first_local = place;
    if (bad && out->first.slot < 0)
        out->first = place;
    /* A tile counts once, however many of its channels are recorded. */
    if (channel_per_kv(place.channel) && judgement_tile_unvisited(j, place) && !same_tile(*last_unvisited, place)) {
        *last_unvisited = place;
        out->unvisited++;
        if (out->first_unvisited.slot < 0)
            out->first_unvisited = place;
    }
}

static void begin(struct summary *out)
{
    memset(out, 0, sizeof *out);
    out->first.slot = out->first_unvisited.slot = -1;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        out->stage[ch].first_local.slot = out->stage[ch].exact.first_unequal.slot = out->stage[ch].first_unusual.slot =
            -1;
    for (int i = 0; i < ASC_OWN_CHANNELS; i++)
        out->own[i].first_nan.slot = -1;
}

/* What slots first .. last - 1 add. -1: no memory. */
static int add_slots(const struct judgement *j, const struct trace *t, int first, int last, struct summary *out)
{
    struct place last_unvisited = {.slot = -1};
    struct place *places = calloc((size_t)j->kv_tiles * ASC_ALL_CHANNELS, sizeof *places);
    const size_t states = (size_t)(trace_splits(t) > j->kv_tiles ? trace_splits(t) : j->kv_tiles);
    int *begun = calloc(states, sizeof *begun); /* by states: the kv tile visited first, -1: none yet */
    int failed = !places || !begun;
    for (int slot = first; slot < last && !failed; slot++) {
        if (!judgement_slot_done(j, slot))
            continue;
        const int n = judgement_sequence(t, slot, places);
        failed = n < 0;
        for (int i = 0; j->own && i < ASC_OWN_CHANNELS; i++)
            own_count_add(&out->own[i], &j->own[slot * ASC_OWN_CHANNELS + i]);
        memset(begun, -1, states * sizeof *begun);
        for (int i = 0; i < n; i++) {
            if (channel_is_own(places[i].channel))
                continue;
            const int state = trace_state(t, slot, places[i].kv);
            const bool per_kv = channel_per_kv(places[i].channel);
            if (per_kv && begun[state] < 0)
                begun[state] = places[i].kv;
            add_place(j, places[i], per_kv && begun[state] == places[i].kv, out, &last_unvisited);
        }
    }
    free(places);
    free(begun);
    return failed ? -1 : 0;
}

static void take_first(struct place *to, struct place from)
{
    if (to->slot < 0)
        *to = from;
}

/* from: of slots behind those of `to`. */
static void join(struct summary *to, const struct summary *from)
{
    for (int i = 0; i < ASC_OWN_CHANNELS; i++)
        own_count_add(&to->own[i], &from->own[i]);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        struct stage_summary *a = &to->stage[ch];
        const struct stage_summary *b = &from->stage[ch];
        a->elements += b->elements;
        a->judged_global += b->judged_global;
        a->unwritten += b->unwritten;
        a->bad_local += b->bad_local;
        a->bad_global += b->bad_global;
        a->missing_local += b->missing_local;
        a->begins_local += b->begins_local;
        a->worst = error_larger(a->worst, b->worst);
        a->exact.judged += b->exact.judged;
        a->exact.n += b->exact.n;
        a->exact.off += b->exact.off;
        a->exact.unequal += b->exact.unequal;
        a->exact.unequal_tiles += b->exact.unequal_tiles;
        a->likely += b->likely;
        a->worst_case += b->worst_case;
        a->unusual += b->unusual;
        take_first(&a->first_local, b->first_local);
        take_first(&a->exact.first_unequal, b->exact.first_unequal);
        take_first(&a->first_unusual, b->first_unusual);
    }
    take_first(&to->first, from->first);
    take_first(&to->first_unvisited, from->first_unvisited);
    to->unvisited += from->unvisited;
}

/* Slots in parts that follow each other, each summed up by one thread. */
struct summing {
    const struct judgement *j;
    const struct trace *t;
    struct summary *parts; /* [n] */
    int n;
    atomic_int next, failed;
};

static int sum_step(void *ctx, int worker)
{
    struct summing *s = ctx;
    const int part = atomic_fetch_add(&s->next, 1);
    (void)worker;
    if (part >= s->n || atomic_load(&s->failed))
        return 0;
    begin(&s->parts[part]);
    const int first = (int)((int64_t)part * s->j->n_slots / s->n),
              last = (int)((int64_t)(part + 1) * s->j->n_slots / s->n);
    if (add_slots(s->j, s->t, first, last, &s->parts[part]) != 0)
        atomic_store(&s->failed, 1);
    return 1;
}

static int add_by_pool(const struct judgement *j, const struct trace *t, struct pool *pool, struct summary *out)
{
    enum { EACH = 4 /* parts to a thread: they take unlike times */ };
    struct summing s = {.j = j, .t = t, .n = EACH * pool_threads(pool)};
    s.n = s.n < j->n_slots ? s.n : j->n_slots;
    s.parts = calloc((size_t)s.n + 1, sizeof *s.parts);
    if (!s.parts)
        return -1;
    pool_start(pool, sum_step, &s);
    pool_wait(pool);
    for (int i = 0; i < s.n; i++)
        join(out, &s.parts[i]);
    free(s.parts);
    return atomic_load(&s.failed) ? -1 : 0;
}

int judgement_summarize(const struct judgement *j, const struct trace *t, struct pool *pool, struct summary *out)
{
    begin(out);
    out->fed_channels = t->fed ? t->fed_channels : 0;
    if (pool ? add_by_pool(j, t, pool, out) != 0 : add_slots(j, t, 0, j->n_slots, out) != 0)
        return -1;
    if (out->unvisited) { /* what is wrong in other tiles may be its doing, it is nobody's */
        out->first = out->first_unvisited;
        out->culprits = 1u << CULPRIT_LOOP;
    }

    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        struct stage_summary *stage = &out->stage[ch];
        int recorded = trace_has(t, ch);
        stage->local = mark_of(recorded, stage->elements, stage->bad_local, stage->unwritten);
        stage->global = mark_of(recorded, stage->judged_global, stage->bad_global, stage->unwritten);
        if (stage->bad_local)
            out->culprits |= 1u << ch;
        else if (stage->bad_global && !out->culprits)
            out->suspicious |= 1u << ch;
    }
    return 0;
}
