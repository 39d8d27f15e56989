/* The verdicts on tiles, and what each comes to. */
#include "engine/verdict/status.h"

#include "engine/verdict/case.h"
#include "engine/verdict/own.h"
#include <stdlib.h>

struct tile_verdicts *judgement_tiles(const struct judgement *j, int slot)
{
    return j->tiles + (size_t)slot * (size_t)j->kv_tiles * ASC_CHANNELS;
}

bool judgement_slot_done(const struct judgement *j, int slot)
{
    return slot >= 0 && slot < j->n_slots && atomic_load_explicit(&j->slot_done[slot], memory_order_acquire);
}

bool judgement_any(const struct judgement *j)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (j->summary.stage[ch].elements || j->summary.stage[ch].judged_global)
            return true;
    return j->summary.unvisited > 0; /* of tiles that were left out there is nothing to judge, but that */
}

const struct tile_verdicts *judgement_tile(const struct judgement *j, struct place place)
{
    static const struct tile_verdicts none;
    int kv = channel_per_kv(place.channel) ? place.kv : 0;
    if (channel_is_own(place.channel)) /* nothing is known of what it should be */
        return &none;
    return &judgement_tiles(j, place.slot)[kv * ASC_CHANNELS + (int)place.channel];
}

int judgement_sequence(const struct trace *t, int slot, struct place *places)
{
    const int kv_tiles = t->layout.kv_tiles;
    int n = 0;
    int *order = calloc((size_t)kv_tiles * 2, sizeof *order);
    int visited = order ? visiting_order(t, slot, order) : -1;
    if (visited < 0) {
        free(order);
        return -1;
    }
    int *seen = order + kv_tiles;
    for (int i = 0; i < visited; i++)
        seen[order[i]] = 1;
    for (int kv = 0; kv < kv_tiles; kv++)
        if (!seen[kv])
            order[visited++] = kv;
    /* channels.def is in stage order: per-slot channels before the first per-kv one open the tile, the others close it.
     */
    int ch = 0;
    for (; ch < ASC_CHANNELS && !channel_per_kv(ch); ch++)
        places[n++] = (struct place){slot, 0, ch};
    for (int i = 0; i < visited; i++) {
        for (int c = ch; c < ASC_CHANNELS; c++)
            if (channel_per_kv(c))
                places[n++] = (struct place){slot, order[i], c};
        for (int c = ASC_CHANNELS; c < ASC_ALL_CHANNELS; c++)
            if (trace_has(t, c))
                places[n++] = (struct place){slot, order[i], c};
    }
    for (; ch < ASC_CHANNELS; ch++)
        if (!channel_per_kv(ch))
            places[n++] = (struct place){slot, 0, ch};
    free(order);
    return n;
}

/* Those that were judged. */
static uint64_t elements(const struct verdict *v)
{
    uint64_t n = 0;
    for (int i = 0; i < CLASS_COUNT; i++)
        n += v->count[i];
    return n;
}

static bool missing_at(const struct judgement *j, struct place place)
{
    const struct verdict *v = &judgement_tile(j, place)->local;
    return !v->visited && v->count[CLASS_MISSING] > 0;
}

/* Whether the kernel came to no kv tile of a slot that has some. */
static bool slot_left_out(const struct judgement *j, int slot)
{
    int missing = 0;
    for (int i = 0; i < j->kv_tiles * ASC_CHANNELS; i++) {
        const struct place place = {slot, i / ASC_CHANNELS, (enum asc_channel)(i % ASC_CHANNELS)};
        if (!channel_per_kv(place.channel))
            continue;
        if (judgement_tile(j, place)->local.visited)
            return false;
        missing |= missing_at(j, place);
    }
    return missing;
}

/* Whether the kernel never came to this tile: nothing of it is there. */
static bool never_came(const struct judgement *j, struct place place, const struct verdict *v)
{
    if (channel_per_kv(place.channel))
        return !v->visited;
    return v->count[CLASS_MISSING] > 0 && v->count[CLASS_MISSING] == elements(v) && slot_left_out(j, place.slot);
}

/* Elements never written because the run ended early, or because the kernel never came to this tile: not the stage's
   fault. */
static uint64_t excused(const struct judgement *j, struct place place, const struct verdict *v)
{
    return j->run_incomplete || never_came(j, place, v) ? v->count[CLASS_MISSING] : 0;
}

struct tile_count judgement_count(const struct judgement *j, struct place place, bool global)
{
    const struct tile_verdicts *tile = judgement_tile(j, place);
    const struct verdict *v = global ? &tile->global : &tile->local;
    const uint64_t excused_here = excused(j, place, v);
    return (struct tile_count){elements(v) - excused_here, verdict_bad(v) - excused_here, excused_here};
}

bool judgement_tile_bad(const struct judgement *j, struct place place, bool global)
{
    return judgement_count(j, place, global).bad > 0;
}

bool judgement_tile_unvisited(const struct judgement *j, struct place place)
{
    const struct verdict *v = &judgement_tile(j, place)->local;
    return !j->run_incomplete && v->count[CLASS_MISSING] > 0 && never_came(j, place, v);
}

/* The most telling class among the bad elements of a tile. */
static enum tile_status worst_class(const struct verdict *v)
{
    static const enum tile_status telling[] = {CLASS_NAN, CLASS_INF, CLASS_MISSING, CLASS_EXTRA};
    for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
        if (v->count[telling[i]] > 0)
            return telling[i];
    return CLASS_OFF;
}

static enum tile_status find(const struct judgement *j, struct place place)
{
    const struct tile_verdicts *v = judgement_tile(j, place);
    if (v->local.judged && judgement_tile_bad(j, place, 0))
        return worst_class(&v->local);
    if (v->local.masked)
        return STATUS_MASKED;
    if (v->global.judged && judgement_tile_bad(j, place, 1))
        return v->local.visited ? STATUS_UPSTREAM : worst_class(&v->global);
    const struct verdict *judged = v->local.judged ? &v->local : &v->global;
    if (!judged->judged)
        return STATUS_UNJUDGED;
    if (verdict_ok(judged))
        return CLASS_OK;
    /* Not bad, yet not every element is fine: the kernel left the tile out, or the run ended early. */
    return judgement_tile_unvisited(j, place) ? CLASS_MISSING : STATUS_UNWRITTEN;
}

/* Where a tile's byte is: those of a channel lie side by side. 0: not noted, else 1 + enum tile_status. */
static uint8_t *byte_of(const struct judgement *j, struct place place)
{
    const size_t row = (size_t)place.slot * ASC_ALL_CHANNELS + (size_t)place.channel;
    return &j->statuses[row * (size_t)j->kv_tiles + (channel_per_kv(place.channel) ? (size_t)place.kv : 0)];
}

enum tile_status judgement_status(const struct judgement *j, struct place place)
{
    const uint8_t noted = *byte_of(j, place);
    return noted ? (enum tile_status)(noted - 1) : find(j, place);
}

void judgement_note_statuses(struct judgement *j, const struct trace *t, int slot)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int kv = 0; kv < (channel_per_kv(ch) ? j->kv_tiles : 1); kv++) {
            const struct place place = {slot, kv, (enum asc_channel)ch};
            *byte_of(j, place) = (uint8_t)(1 + find(j, place));
        }
    for (int i = 0; j->own && i < ASC_OWN_CHANNELS; i++)
        for (int kv = 0; kv < j->kv_tiles; kv++) {
            const struct place place = {slot, kv, (enum asc_channel)(ASC_CHANNELS + i)};
            struct own_count tile = {.first_nan.slot = -1}, *all = &j->own[slot * ASC_OWN_CHANNELS + i];
            own_count_tile(t, place, &tile);
            *byte_of(j, place) = (uint8_t)(1 + (tile.nan ? CLASS_NAN : !tile.written ? STATUS_UNRECORDED : STATUS_OWN));
            if (tile.nan && tile.nan_stamp < all->nan_stamp)
                all->first_nan.slot = -1; /* the kernel came to this one before */
            if (tile.nan && all->first_nan.slot < 0)
                all->nan_stamp = tile.nan_stamp;
            own_count_add(all, &tile);
        }
}
