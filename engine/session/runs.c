#include "engine/session/runs.h"

#include "engine/verdict/reports.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop(struct runs *r, int i)
{
    judgement_free(r->at[i].judgement);
    trace_free(r->at[i].trace);
    scenario_free(r->at[i].scenario);
    free(r->at[i].scenario);
    free(r->at[i].saved);
    err_forget(&r->at[i].err);
    r->n--;
    memmove(&r->at[i], &r->at[i + 1], (size_t)(r->n - i) * sizeof r->at[0]);
}

void runs_free(struct runs *r)
{
    while (r->n > 0)
        drop(r, r->n - 1);
    *r = (struct runs){0};
}

struct run *runs_add(struct runs *r, struct trace *t, struct judgement *j, const char *title)
{
    if (r->n == RUNS_MAX)
        runs_make_room(r, UINT64_MAX);
    struct run *run = &r->at[r->n++];
    *run = (struct run){.number = ++r->made, .at = time(NULL), .trace = t, .judgement = j};
    snprintf(run->title, sizeof run->title, "%s", title);
    r->before = r->shown;
    r->shown = run->number;
    return run;
}

uint64_t run_bytes(const struct run *run)
{
    const struct judgement *j = run->judgement;
    return run->trace->n_bytes +
           (uint64_t)j->n_slots * (uint64_t)j->kv_tiles * ASC_CHANNELS * sizeof(struct tile_verdicts);
}

int runs_make_room(struct runs *r, uint64_t bytes)
{
    int dropped = 0;
    uint64_t all = 0;
    for (int i = 0; i < r->n; i++)
        all += run_bytes(&r->at[i]);
    for (int i = 0; i < r->n - 1 && (r->n >= RUNS_MAX || all > bytes);) {
        if (r->at[i].number == r->shown) {
            i++;
            continue;
        }
        all -= run_bytes(&r->at[i]);
        drop(r, i);
        dropped++;
    }
    return dropped;
}

int runs_index(const struct runs *r, int number)
{
    for (int i = 0; i < r->n; i++)
        if (r->at[i].number == number)
            return i;
    return -1;
}

static const struct run *at_number(const struct runs *r, int number)
{
    const int i = runs_index(r, number);
    return i < 0 ? NULL : &r->at[i];
}

const struct run *runs_shown(const struct runs *r)
{
    return at_number(r, r->shown);
}

const struct run *runs_newest(const struct runs *r)
{
    return r->n ? &r->at[r->n - 1] : NULL;
}

const struct run *runs_before(const struct runs *r, const struct run *run)
{
    const struct run *before = run;
    while (before > r->at)
        if ((--before)->trace->info.status != RUN_CANCELLED)
            return before;
    return NULL;
}

const struct run *runs_other(const struct runs *r)
{
    const struct run *other = at_number(r, r->before);
    if (other && other->number != r->shown)
        return other;
    for (int i = r->n - 1; i >= 0; i--)
        if (r->at[i].number != r->shown)
            return &r->at[i];
    return NULL;
}

void run_measure(struct run *run)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        run->worst[ch] = run->judgement->summary.stage[ch].worst;
}

void run_words(const struct run *run, char *out, size_t bytes)
{
    snprintf(out, bytes, run->name[0] ? "run %d (%s)" : "run %d", run->number, run->name);
}

const char *run_verdict_word(enum run_verdict verdict)
{
    static const char *const words[] = {
#define RUN_VERDICT(id, word) word,
#include "engine/session/run_verdicts.def"
#undef RUN_VERDICT
    };
    return words[verdict];
}

enum run_verdict run_verdict(const struct trace *t, const struct judgement *j)
{
    if (t->info.status == RUN_CRASHED)
        return RUN_IS_CRASHED;
    if (t->info.status == RUN_HUNG)
        return RUN_IS_HUNG;
    if (t->info.status == RUN_CANCELLED)
        return RUN_IS_CANCELLED;
    if (t->info.status == RUN_REFUSED || !j || !j->complete || j->no_summary || !judgement_any(j))
        return RUN_IS_UNJUDGED;
    if (j->summary.culprits || t->info.capture.off || reports_count(t))
        return RUN_IS_FAIL;
    return j->summary.suspicious ? RUN_IS_SUSPECT : RUN_IS_CLEAN;
}
