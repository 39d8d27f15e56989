#include "engine/oracle/steps.h"

#include "engine/oracle/schedule.h"
#include "engine/trace/layout.h"
#include <stdlib.h>

static int any_visit_seen(const struct oracle_case *c)
{
    for (int i = 0; i < c->kv_tiles * ASC_CHANNELS; i++)
        if (channel_per_kv((enum asc_channel)(i % ASC_CHANNELS)) && c->captured[i].data)
            return 1;
    return 0;
}

static void add(struct case_step *steps, int *n, int kv, int split)
{
    const int last = *n - 1, same = last >= 0 && steps[last].split == split;
    steps[*n] = (struct case_step){kv, split, same ? last : -1, -1};
    if (same)
        steps[last].behind = *n;
    ++*n;
}

int steps_list(const struct oracle_case *c, struct case_step *out)
{
    const int shown = any_visit_seen(c);
    int n = 0;
    int *seen = calloc((size_t)c->kv_tiles + 1, sizeof *seen);
    if (!seen)
        return -1;
    for (int split = 0; split < schedule_splits(c); split++) {
        for (int i = 0; shown && i < c->n_visited; i++) {
            const int kv = schedule_visit(c, split, i, seen);
            if (kv >= 0)
                add(out, &n, kv, split);
        }
        for (int kv = 0; !shown && kv < c->kv_tiles; kv++)
            if (schedule_split(c, kv) == split && !schedule_masked(c, kv))
                add(out, &n, kv, split);
    }
    free(seen);
    return n;
}
