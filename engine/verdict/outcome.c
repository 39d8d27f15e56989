#include "engine/verdict/outcome.h"

/* The most telling class among the bad elements of a tile. */
static enum outcome worst_class(const struct verdict *v)
{
    static const enum element_class telling[] = {CLASS_NAN, CLASS_INF, CLASS_MISSING, CLASS_EXTRA};
    for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
        if (v->count[telling[i]] > 0)
            return (enum outcome)telling[i];
    return (enum outcome)CLASS_OFF;
}

static enum outcome find(const struct judgement *j, struct place place)
{
    const struct tile_verdicts *v = judgement_tile(j, place);
    if (v->local.judged && judgement_tile_bad(j, place, 0))
        return worst_class(&v->local);
    if (v->local.masked)
        return OUTCOME_MASKED;
    if (v->global.judged && judgement_tile_bad(j, place, 1))
        return v->local.visited ? OUTCOME_UPSTREAM : worst_class(&v->global);
    const struct verdict *judged = v->local.judged ? &v->local : &v->global;
    if (!judged->judged)
        return OUTCOME_UNJUDGED;
    if (verdict_ok(judged))
        return (enum outcome)CLASS_OK;
    /* Not bad, yet not every element is fine: the kernel left the tile out, or the run ended early. */
    return judgement_tile_unvisited(j, place) ? (enum outcome)CLASS_MISSING : OUTCOME_UNWRITTEN;
}

/* Where a tile's byte is: those of a channel lie side by side. 0: not noted, else 1 + enum outcome. */
static uint8_t *byte_of(const struct judgement *j, struct place place)
{
    const size_t row = (size_t)place.slot * ASC_CHANNELS + (size_t)place.channel;
    return &j->outcomes[row * (size_t)j->kv_tiles + (channel_per_kv(place.channel) ? (size_t)place.kv : 0)];
}

enum outcome judgement_outcome(const struct judgement *j, struct place place)
{
    const uint8_t noted = *byte_of(j, place);
    return noted ? (enum outcome)(noted - 1) : find(j, place);
}

void judgement_note_outcomes(struct judgement *j, int slot)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int kv = 0; kv < (channel_per_kv(ch) ? j->kv_tiles : 1); kv++) {
            const struct place place = {slot, kv, (enum asc_channel)ch};
            *byte_of(j, place) = (uint8_t)(1 + find(j, place));
        }
}
