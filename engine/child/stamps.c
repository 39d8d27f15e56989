#include "engine/child/stamps.h"

#include <stdio.h>

static void look_at(const struct trace *t, int slot, enum asc_channel ch, int kv, struct last_stamp *last)
{
    uint64_t clock = trace_last_stamp(t, ch, slot, kv < 0 ? 0 : kv);
    if (clock == 0)
        return;
    if (ch == asc_o || ch == asc_lse)
        last->finished = true;
    if (clock > last->clock) {
        last->clock = clock;
        last->channel = ch;
        last->kv = kv;
    }
}

static struct last_stamp of_slot(const struct trace *t, int slot)
{
    struct last_stamp last = {.kv = -1};
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        if (t->layout.channel[ch].dtype < 0)
            continue;
        if (!channel_per_kv((enum asc_channel)ch)) {
            look_at(t, slot, (enum asc_channel)ch, -1, &last);
            continue;
        }
        for (int kv = 0; kv < t->layout.channel[ch].n_kv; kv++)
            look_at(t, slot, (enum asc_channel)ch, kv, &last);
    }
    return last;
}

int runner_last_stamps(const struct trace *t, struct last_stamp *last)
{
    int n = 0;
    for (int slot = 0; slot < t->layout.n_slots; slot++) {
        last[slot] = of_slot(t, slot);
        n += last[slot].clock != 0;
    }
    return n;
}

int runner_farthest(const struct trace *t, struct last_stamp *last)
{
    int farthest = -1;
    *last = (struct last_stamp){.kv = -1};
    for (int slot = 0; slot < t->layout.n_slots; slot++) {
        struct last_stamp of = of_slot(t, slot);
        if (of.clock == 0)
            continue;
        int better = of.finished != last->finished ? !of.finished : of.clock > last->clock;
        if (farthest < 0 || better) {
            *last = of;
            farthest = slot;
        }
    }
    return farthest;
}

void runner_describe_progress(const struct trace *t, char *text, size_t size)
{
    struct last_stamp last;
    const int slot = runner_farthest(t, &last);
    if (slot < 0) {
        snprintf(text, size, "no probe fired");
        return;
    }
    const int32_t *place = trace_slot_place(t, slot);
    char kv[32] = "", line[288] = "";
    if (last.kv >= 0)
        snprintf(kv, sizeof kv, ", kv tile %d", last.kv);
    const struct trace_site *site = trace_site(t, last.channel);
    if (site)
        snprintf(line, sizeof line, " (%s:%d)", site->file, site->line);
    snprintf(text, size, "last probe: %s at batch %d, head %d, q tile %d%s%s",
             plan_channel_label(&t->plan, last.channel), (int)place[0], (int)place[1], (int)place[2], kv, line);
}

static struct last_stamp of_warp(const struct trace *t, int slot, int warp)
{
    struct last_stamp last = {.kv = -1};
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        for (int kv = 0; t->layout.channel[ch].dtype >= 0 && kv < t->layout.channel[ch].n_kv; kv++) {
            const uint64_t clock = trace_stamps(t, (enum asc_channel)ch, slot, kv)[warp];
            if (clock > last.clock)
                last = (struct last_stamp){.clock = clock,
                                           .channel = (enum asc_channel)ch,
                                           .kv = channel_per_kv((enum asc_channel)ch) ? kv : -1};
        }
    return last;
}

static bool as_far(const struct last_stamp *a, const struct last_stamp *b)
{
    return !a->clock == !b->clock && (!a->clock || (a->channel == b->channel && a->kv == b->kv));
}

void runner_last_of_warps(const struct trace *t, void (*tell)(void *ctx, const struct warps_stand *warps), void *ctx)
{
    for (int slot = 0, told = 0; slot < t->layout.n_slots && told < STANDS_SLOTS; slot++) {
        const struct last_stamp all = of_slot(t, slot);
        if (!all.clock || all.finished)
            continue;
        struct warps_stand warps = {.slot = slot, .last = of_warp(t, slot, 0)};
        for (int warp = 1; warp < t->layout.warps; warp++) {
            const struct last_stamp last = of_warp(t, slot, warp);
            if (!as_far(&last, &warps.last)) {
                tell(ctx, &warps);
                warps.first = warp;
                warps.last = last;
            }
            warps.last_warp = warp;
        }
        tell(ctx, &warps);
        told++;
    }
}

void runner_warps_words(const struct trace *t, const struct warps_stand *warps, char *text, size_t size)
{
    const int32_t *place = trace_slot_place(t, warps->slot);
    char which[40], kv[32] = "";
    if (warps->first == warps->last_warp)
        snprintf(which, sizeof which, "warp %d", warps->first);
    else
        snprintf(which, sizeof which, "warps %d to %d", warps->first, warps->last_warp);
    if (warps->last.kv >= 0)
        snprintf(kv, sizeof kv, " at kv tile %d", warps->last.kv);
    snprintf(text, size, "batch %d, head %d, q tile %d, %s: %s%s%s", (int)place[0], (int)place[1], (int)place[2], which,
             warps->last.clock ? "last probe " : "no probe yet",
             warps->last.clock ? plan_channel_label(&t->plan, warps->last.channel) : "", kv);
}
