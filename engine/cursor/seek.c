#include "engine/cursor/seek.h"

#include <stdlib.h>

int seek_begin(struct seek *k)
{
    const int all = k->trace->layout.n_slots;
    k->n_slots = k->first < 0 || k->first >= all ? 0 : k->direction > 0 ? all - k->first : k->first + 1;
    k->hits = calloc((size_t)k->n_slots + 1, sizeof *k->hits);
    atomic_store(&k->next, 0);
    atomic_store(&k->best, k->n_slots);
    atomic_store(&k->done, 0);
    atomic_store(&k->no_memory, false);
    return k->hits ? 0 : -1;
}

/* The kv tile visited before places[at], in the same split; a split's state begins anew. */
static int visited_before(const struct seek *k, const struct place *places, int at)
{
    const struct place here = places[at];
    if (!channel_per_kv(here.channel) || !trace_first_stamp(k->trace, here.channel, here.slot, here.kv))
        return -1;
    while (--at >= 0)
        if (places[at].channel == here.channel && places[at].kv != here.kv)
            return trace_state(k->trace, here.slot, places[at].kv) == trace_state(k->trace, here.slot, here.kv)
                       ? places[at].kv
                       : -1;
    return -1;
}

/* Whether one of the conditions holds there. */
static bool look(const struct seek *k, const struct place *places, int at, struct stop_hit *hit)
{
    for (int i = 0; i < k->n_stops; i++) {
        const struct stop *stop = &k->stops[i];
        if (!stop_is_about(stop, &k->trace->plan, places[at].channel))
            continue;
        const bool steps = stop->kind == STOP_FALLS || stop->kind == STOP_RISES;
        hit->place = places[at];
        hit->stop = i;
        if (stop_holds(stop, k->trace, k->judgement, places[at], steps ? visited_before(k, places, at) : -1, &hit->row,
                       &hit->col))
            return true;
    }
    return false;
}

/* 1: there, -1: memory ran out. */
static int look_through(const struct seek *k, int slot, struct place *places, struct stop_hit *hit)
{
    const int n = judgement_sequence(k->trace, slot, places);
    if (n < 0)
        return -1;
    int at = k->direction > 0 ? 0 : n - 1;
    if (slot == k->from.slot)
        for (int i = 0; i < n; i++)
            if (places[i].kv == k->from.kv && places[i].channel == k->from.channel)
                at = i + k->direction;
    for (; at >= 0 && at < n; at += k->direction)
        if (look(k, places, at, hit))
            return 1;
    return 0;
}

bool seek_step(struct seek *k)
{
    const int i = atomic_fetch_add(&k->next, 1);
    if (i >= k->n_slots || i > atomic_load(&k->best))
        return false;
    const int slot = k->first + i * k->direction;
    struct place *places = malloc((size_t)k->trace->layout.kv_tiles * ASC_ALL_CHANNELS * sizeof *places);
    k->hits[i].place.slot = -1;
    if (!places)
        atomic_store(&k->no_memory, true);
    else if (judgement_slot_done(k->judgement, slot)) {
        struct stop_hit hit;
        const int found = look_through(k, slot, places, &hit);
        if (found < 0)
            atomic_store(&k->no_memory, true);
        if (found > 0) {
            k->hits[i] = hit;
            int best = atomic_load(&k->best);
            while (i < best && !atomic_compare_exchange_weak(&k->best, &best, i))
                ;
        }
    }
    free(places);
    atomic_fetch_add(&k->done, 1);
    return true;
}

struct stop_hit seek_end(struct seek *k)
{
    struct stop_hit hit = {.place = {.slot = -1}};
    const int best = atomic_load(&k->best);
    if (k->hits && best < k->n_slots)
        hit = k->hits[best];
    free(k->hits);
    k->hits = NULL;
    return hit;
}
