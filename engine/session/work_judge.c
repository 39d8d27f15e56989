#include "engine/session/work_parts.h"

#include "engine/base/file_map.h"
#include "engine/verdict/masks.h"
#include "engine/verdict/onset.h"
#include "engine/verdict/states.h"
#include <stdlib.h>

static int next_slot(struct work *w)
{
    int slot = atomic_load(&w->preferred);
    if (work_take_slot(w, slot))
        return slot;
    while ((slot = atomic_fetch_add(&w->next, 1)) < w->judgement->n_slots)
        if (work_take_slot(w, slot))
            return slot;
    return -1;
}

static int judge_step(void *ctx, int worker)
{
    struct work *w = ctx;
    if (work_stopped(w) || atomic_load(&w->judge_failed))
        return 0;
    int slot = next_slot(w);
    if (slot < 0)
        return 0;
    if (judgement_slot(w->judgement, w->trace, slot, w->scratch[worker]) != 0)
        atomic_store(&w->judge_failed, 1);
    work_walked(w, worker);
    return 1;
}

/* Evidence for the causes, one slot a step; each worker adds up its own. */
static int collect_step(void *ctx, int worker)
{
    struct work *w = ctx;
    const int slot = atomic_fetch_add(&w->next, 1);
    if (slot >= w->judgement->n_slots || work_stopped(w) || atomic_load(&w->judge_failed))
        return 0;
    if (judgement_collect(w->judgement, w->trace, &w->plan, slot, w->scratch[worker], w->evidence[worker]) != 0)
        atomic_store(&w->judge_failed, 1);
    work_walked(w, worker);
    return 1;
}

/* The roots of one slot a step, in slots where any number is none. */
static int onset_step(void *ctx, int worker)
{
    struct work *w = ctx;
    struct onset *found = NULL;
    const int slot = atomic_fetch_add(&w->next, 1);
    if (slot >= w->judgement->n_slots || work_stopped(w) || atomic_load(&w->judge_failed))
        return 0;
    if (run_onset_wanted(w->judgement, slot)) {
        found = malloc(sizeof *found);
        if (!found || onset_of_slot(w->trace, slot, w->scratch[worker], found) != 0)
            atomic_store(&w->judge_failed, 1);
    }
    pthread_mutex_lock(&w->lock);
    if (found && !atomic_load(&w->judge_failed))
        run_onset_add(w->onset, w->trace, slot, found);
    pthread_mutex_unlock(&w->lock);
    free(found);
    work_walked(w, worker);
    return 1;
}

/* Of an ordinary run; causes and onset are no question of an isolated one. */
static void find_onset(struct work *w)
{
    int wanted = 0;
    for (int slot = 0; slot < w->judgement->n_slots && !wanted; slot++)
        wanted = run_onset_wanted(w->judgement, slot);
    if (!wanted || w->run)
        return;
    if (run_onset_new(w->trace, &w->onset) != 0) {
        atomic_store(&w->judge_failed, 1);
        return;
    }
    work_pass(w, w->trace, PHASE_JUDGING, STEP_ONSET);
    pool_start(w->pool, onset_step, w);
    pool_wait(w->pool);
}

/* Of all slots: whoever shows the run need not look at every tile anew. */
static void mail_summary(struct work *w, const struct summary *summary)
{
    pthread_mutex_lock(&w->lock);
    w->mail.summary = *summary;
    w->mail.summed = true;
    pthread_mutex_unlock(&w->lock);
    work_signal(w);
}

static int find(struct work *w, struct err *err)
{
    struct summary summary;
    struct finding *findings = calloc(MAX_FINDINGS, sizeof *findings);
    const int workers = pool_threads(w->pool);
    if (judgement_summarize(w->judgement, w->trace, w->pool, &summary) != 0)
        atomic_store(&w->judge_failed, 1);
    else
        mail_summary(w, &summary);
    find_onset(w);
    const unsigned culprits = w->run ? 0 : summary.culprits; /* causes are for the ordinary run */
    if (judgement_plan(w->judgement, w->trace, culprits, w->scratch[0], &w->plan) != 0 ||
        masks_find(w->judgement->masks, w->trace) != 0)
        atomic_store(&w->judge_failed, 1);
    w->evidence = calloc((size_t)workers, sizeof *w->evidence);
    if (w->evidence && culprits) {
        work_pass(w, w->trace, PHASE_JUDGING, STEP_CAUSES);
        pool_start(w->pool, collect_step, w);
        pool_wait(w->pool);
        for (int i = 1; i < workers; i++)
            cause_add_evidence(w->evidence[0], w->evidence[i]);
    }
    struct state_break state_break = {.slot = -1};
    if (!w->run && !work_stopped(w) && states_find_break(w->judgement, w->trace, w->scratch[0], &state_break) != 0)
        atomic_store(&w->judge_failed, 1);
    int complete = findings && w->evidence && !atomic_load(&w->judge_failed) && !work_stopped(w);
    const int n = complete ? judgement_find(w->judgement, w->trace, &summary, &w->plan, w->evidence[0], w->scratch,
                                            w->pool, findings)
                           : 0;
    complete &= n >= 0;
    free(w->evidence);
    w->evidence = NULL;
    if (!complete) {
        free(findings);
        run_onset_free(w->onset);
        w->onset = NULL;
        return work_stopped(w) ? err_set(err, ERR_CANCELLED, "", "cancelled while searching for causes")
                               : err_no_memory(err, "", "the search for causes");
    }
    if (file_map_check(w->trace->bytes, err) != 0) {
        free(findings);
        run_onset_free(w->onset);
        w->onset = NULL;
        return -1;
    }
    onset_tell(w->judgement, w->trace, w->onset, findings, n);
    pthread_mutex_lock(&w->lock);
    w->mail.state_break = state_break;
    w->mail.findings = findings;
    w->mail.n_findings = n;
    run_onset_free(w->mail.onset);
    w->mail.onset = w->onset;
    w->onset = NULL;
    w->mail.complete = 1;
    pthread_mutex_unlock(&w->lock);
    work_signal(w);
    return 0;
}

int work_judge_trace(struct work *w, struct err *err)
{
    free(w->taken);
    w->taken = calloc((size_t)w->trace->layout.n_slots, sizeof *w->taken);
    if (!w->taken || judgement_new(w->trace, &w->judgement) != 0 ||
        judgement_fingerprint(w->judgement, w->trace, w->scratch, w->pool) != 0) {
        judgement_free(w->judgement);
        w->judgement = NULL;
        trace_free(w->trace);
        w->trace = NULL;
        return err_no_memory(err, "", "the verdicts");
    }
    atomic_store(&w->judge_failed, 0);
    work_pass(w, w->trace, PHASE_JUDGING, STEP_JUDGING);
    pthread_mutex_lock(&w->lock);
    w->mail.trace = w->trace;
    w->mail.judgement = w->judgement;
    pthread_mutex_unlock(&w->lock);
    work_signal(w);

    if (work_judge_on_gpu(w, err) != 0)
        return -1;
    pool_start(w->pool, judge_step, w);
    pool_wait(w->pool);
    if (work_stopped(w))
        return err_set(err, ERR_CANCELLED, "", "cancelled while judging");
    if (atomic_load(&w->judge_failed))
        return err_no_memory(err, "", "judging");
    return find(w, err);
}
