#include "engine/study/probe_effect.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const sentences[] = {
    [PROBES_CHANGE_NOTHING] = "o and lse have the same bits with and without probes",
    [PROBES_CHANGE_OUTPUT] = "the probes change what the kernel computes: without them the bits differ",
    [PROBES_NO_MATTER] = "o or lse differ from run to run without any probes: the kernel is not deterministic",
    [PROBES_CHANGE_STATUS] = "with and without probes the kernel ends differently",
};

const char *probe_effect_sentence(enum probe_effect_verdict verdict)
{
    return sentences[verdict];
}

/* A run of a build without probes: also one that ended early. */
static int run_without(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                       const struct runner_progress *progress, struct trace **out, struct err *err)
{
    struct scenario off = *scenario; /* its lists and texts are borrowed */
    struct err early = {0};
    off.probes = SCENARIO_PROBES_OFF;
    const int failed = record(r, paths, &off, progress, out, &early);
    if (failed && (!*out || early.code == ERR_CANCELLED)) {
        *err = early;
        return -1;
    }
    return 0;
}

static int same_output(const struct trace *a, const struct trace *b, struct difference *d, int *same, struct err *err)
{
    if (difference_check(a, b, "the run with probes", "the run without", err) != 0 ||
        difference_find(a, b, 0, d, err) != 0)
        return -1;
    *same = 1;
    for (int ch = asc_o; ch <= asc_lse; ch++)
        *same = *same && d->channel[ch].same == d->channel[ch].compared;
    return 0;
}

static int compare(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                   const struct trace *with, const struct trace *without, const struct runner_progress *progress,
                   struct probe_effect *out, struct err *err)
{
    struct difference again;
    struct trace *third = NULL;
    int same = 0;
    if (same_output(with, without, &out->difference, &same, err) != 0)
        return -1;
    if (same) {
        out->verdict = PROBES_CHANGE_NOTHING;
        return 0;
    }
    out->verdict = PROBES_CHANGE_OUTPUT;
    int failed = run_without(r, paths, scenario, progress, &third, err);
    if (!failed && !trace_complete(third))
        out->verdict = PROBES_NO_MATTER;
    else if (!failed)
        failed = same_output(without, third, &again, &same, err);
    if (!failed && !same && trace_complete(third))
        out->verdict = PROBES_NO_MATTER;
    trace_free(third);
    return failed;
}

int probe_effect_find(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *with,
                      const struct runner_progress *progress, struct probe_effect *out, struct err *err)
{
    struct recorder r = {0};
    struct trace *without = NULL;
    *out = (struct probe_effect){0};
    int failed = run_without(&r, paths, scenario, progress, &without, err);
    if (!failed) {
        out->status[0] = (enum run_status)with->info.status;
        out->status[1] = (enum run_status)without->info.status;
        snprintf(out->status_text, sizeof out->status_text, "%s", without->info.status_text);
        const int complete = trace_complete(with) + trace_complete(without);
        if (complete == 1)
            out->verdict = PROBES_CHANGE_STATUS;
        else if (complete == 0)
            failed = err_set(err, ERR_RUN, "without probes", "%s", without->info.status_text);
        else
            failed = compare(&r, paths, scenario, with, without, progress, out, err);
    }
    trace_free(without);
    recorder_free(&r);
    return failed;
}

uint64_t probe_effect_beyond(const struct probe_effect *effect, enum asc_channel ch)
{
    const struct channel_difference *d = &effect->difference.channel[ch];
    return d->compared - d->same - d->nan_bits - d->within;
}

void probe_effect_channel(const struct probe_effect *effect, enum asc_channel ch, char out[PROBE_EFFECT_WORDS])
{
    const struct channel_difference *d = &effect->difference.channel[ch];
    char place[96];
    out[0] = '\0';
    if (d->same == d->compared)
        return;
    difference_place_words(&d->first, place, sizeof place);
    snprintf(out, PROBE_EFFECT_WORDS,
             "%" PRIu64 " of %" PRIu64 " elements differ bitwise, %" PRIu64
             " of them out of bounds; first %s: %.9g and %.9g",
             d->compared - d->same, d->compared, probe_effect_beyond(effect, ch), place, d->first.got[0],
             d->first.got[1]);
}
