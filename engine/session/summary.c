/* What the verdicts add up to: a mark per stage, the first bad tile, the culprits. */
#include "engine/session/judgement.h"

#include <stdlib.h>
#include <string.h>

/* Bad elements of one verdict. A run that did not end well is not blamed for what it never came to write. */
static uint64_t bad_elements(const struct judgement *j, const struct verdict *v)
{
    uint64_t bad = verdict_bad(v);
    return j->run_incomplete ? bad - v->count[CLASS_MISSING] : bad;
}

static uint64_t elements(const struct verdict *v)
{
    uint64_t n = 0;
    for (int i = 0; i < CLASS_COUNT; i++)
        n += v->count[i];
    return n;
}

int judgement_tile_bad(const struct judgement *j, struct place place, int global)
{
    const struct tile_verdicts *v = judgement_tile(j, place);
    return bad_elements(j, global ? &v->global : &v->local) > 0;
}

static enum mark mark_of(int recorded, uint64_t judged, uint64_t bad)
{
    if (!recorded)
        return MARK_UNRECORDED;
    if (bad)
        return MARK_BAD;
    return judged ? MARK_OK : MARK_UNKNOWN;
}

static void add_place(const struct judgement *j, struct place place, struct summary *out, uint64_t judged_global[])
{
    const struct tile_verdicts *v = judgement_tile(j, place);
    struct stage_summary *stage = &out->stage[place.channel];
    uint64_t bad = bad_elements(j, &v->local);
    stage->elements += elements(&v->local);
    stage->bad_local += bad;
    stage->bad_global += bad_elements(j, &v->global);
    judged_global[place.channel] += elements(&v->global);
    if (bad && stage->first_local.slot < 0)
        stage->first_local = place;
    if (bad && out->first.slot < 0)
        out->first = place;
}

void judgement_summarise(const struct judgement *j, const struct trace *t, struct summary *out)
{
    uint64_t judged_global[ASC_CHANNELS] = {0};
    memset(out, 0, sizeof *out);
    out->first.slot = -1;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        out->stage[ch].first_local.slot = -1;

    struct place *places = calloc((size_t)j->kv_tiles * ASC_CHANNELS, sizeof *places);
    if (!places)
        return;
    for (int slot = 0; slot < j->n_slots; slot++) {
        if (!judgement_slot_done(j, slot))
            continue;
        int n = judgement_sequence(t, slot, places);
        for (int i = 0; i < n; i++)
            add_place(j, places[i], out, judged_global);
    }
    free(places);

    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        struct stage_summary *stage = &out->stage[ch];
        int recorded = t->layout.channel[ch].dtype >= 0;
        stage->local = mark_of(recorded, stage->elements, stage->bad_local);
        stage->global = mark_of(recorded, judged_global[ch], stage->bad_global);
        if (stage->bad_local)
            out->culprits |= 1u << ch;
        else if (stage->bad_global && !out->culprits)
            out->suspicious |= 1u << ch;
    }
}
