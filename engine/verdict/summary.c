/* What the verdicts add up to: a mark per stage, the first bad tile, the culprits. */
#include "engine/verdict/judgement.h"

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

int judgement_summarize(const struct judgement *j, const struct trace *t, struct summary *out)
{
    int failed = 0;
    memset(out, 0, sizeof *out);
    out->fed_channels = t->fed ? t->fed_channels : 0;
    struct place last_unvisited = {.slot = -1};
    out->first.slot = out->first_unvisited.slot = -1;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        out->stage[ch].first_local.slot = out->stage[ch].exact.first_unequal.slot = out->stage[ch].first_unusual.slot =
            -1;
    for (int i = 0; i < ASC_OWN_CHANNELS; i++)
        out->own[i].first_nan.slot = -1;

    struct place *places = calloc((size_t)j->kv_tiles * ASC_ALL_CHANNELS, sizeof *places);
    const size_t states = (size_t)(trace_splits(t) > j->kv_tiles ? trace_splits(t) : j->kv_tiles);
    int *begun = calloc(states, sizeof *begun); /* by states: the kv tile visited first, -1: none yet */
    failed = !places || !begun;
    for (int slot = 0; slot < j->n_slots && !failed; slot++) {
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
    if (failed)
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
