/* Whether the probes change what a kernel computes: its o and lse with them and without them, bit for bit. */
#ifndef STUDY_PROBE_EFFECT_H
#define STUDY_PROBE_EFFECT_H

#include "engine/run/record.h"
#include "engine/study/difference.h"

enum probe_effect_verdict {
    PROBES_CHANGE_NOTHING, /* the same bits */
    PROBES_CHANGE_OUTPUT,  /* other bits, and two runs without probes have the same */
    PROBES_NO_MATTER,      /* other bits, and two runs without probes differ from each other as well */
    PROBES_CHANGE_STATUS   /* one run came to its end, the other did not */
};

struct probe_effect {
    enum probe_effect_verdict verdict;
    enum run_status status[2];    /* of the run with probes, and without */
    char status_text[512];        /* why the run without probes ended early */
    struct difference difference; /* of o and lse, where both runs are complete */
};

/* Runs what `with` is a run of (this scenario's, with probes) once more without them; where a bit differs, a third
   time, again without. Where neither run came to its end, ERR_RUN: there is nothing to compare. */
int probe_effect_find(const struct runner_paths *paths, const struct scenario *scenario, const struct trace *with,
                      const struct runner_progress *progress, struct probe_effect *out, struct err *err);

/* "3 of 4096 elements have other bits, ..., 1 beyond rounding" for a channel that differs; "" for one that does not. */
#define PROBE_EFFECT_WORDS 256
void probe_effect_channel(const struct probe_effect *effect, enum asc_channel ch, char out[PROBE_EFFECT_WORDS]);
/* Elements that differ by more than rounding. */
uint64_t probe_effect_beyond(const struct probe_effect *effect, enum asc_channel ch);
/* One sentence. */
const char *probe_effect_sentence(enum probe_effect_verdict verdict);

#endif
