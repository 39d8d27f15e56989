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
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
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
    snprintf(text, size, "last probe: %s at batch %d, head %d, q tile %d%s%s", channel_label(last.channel),
             (int)place[0], (int)place[1], (int)place[2], kv, line);
}
