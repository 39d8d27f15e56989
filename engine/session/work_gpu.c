/* Who judges the captured stages where there is a judge on a GPU: it, of all slots, while the CPU judges the first and
   a few at random; then the CPU those that are not right in every element, and the worst of those that are. Where the
   two come to something else about any slot, nothing that the GPU said counts. */
#include "engine/session/work_parts.h"

#include "engine/run/gpu_stages.h"
#include "engine/verdict/status.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CONFIRMED = 9 }; /* the first, and eight at random */

struct by_gpu {
    struct work *w;
    struct gpu_stages stages;
    int confirmed[CONFIRMED];
    int n_confirmed, worst; /* worst: of the slots that are right, -1: there is none */
    atomic_int next, adopted;
};

/* Other ones in each run. */
static void choose(struct by_gpu *g, int n_slots)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t random = (uint64_t)now.tv_nsec;
    for (int i = 0; i < CONFIRMED && i < n_slots; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        g->confirmed[g->n_confirmed++] = i == 0 ? 0 : (int)((random >> 11) % (uint64_t)n_slots);
    }
}

static const struct tile_verdicts *said(const struct by_gpu *g, int slot)
{
    return g->stages.tiles + (size_t)slot * (size_t)g->w->judgement->kv_tiles * ASC_CHANNELS;
}

static void judge(struct by_gpu *g, int slot, int worker)
{
    struct work *w = g->w;
    if (judgement_slot(w->judgement, w->trace, slot, w->scratch[worker]) != 0)
        atomic_store(&w->judge_failed, 1);
    work_walked(w, worker);
}

static int confirm_step(void *ctx, int worker)
{
    struct by_gpu *g = ctx;
    const int i = atomic_fetch_add(&g->next, 1);
    if (i >= g->n_confirmed || work_stopped(g->w) || atomic_load(&g->w->judge_failed))
        return 0;
    if (work_take_slot(g->w, g->confirmed[i]))
        judge(g, g->confirmed[i], worker);
    return 1;
}

/* What the GPU does not call right, and the worst of what it does. */
static int rest_step(void *ctx, int worker)
{
    struct by_gpu *g = ctx;
    const int slot = atomic_fetch_add(&g->next, 1);
    if (slot >= g->w->judgement->n_slots || work_stopped(g->w) || atomic_load(&g->w->judge_failed))
        return 0;
    if ((!g->stages.good[slot] || slot == g->worst) && work_take_slot(g->w, slot))
        judge(g, slot, worker);
    return 1;
}

static int adopt_step(void *ctx, int worker)
{
    struct by_gpu *g = ctx;
    struct work *w = g->w;
    const int slot = atomic_fetch_add(&g->next, 1);
    const uint32_t *seen = g->stages.seen ? g->stages.seen + (size_t)slot * (size_t)w->judgement->kv_tiles : NULL;
    if (slot >= w->judgement->n_slots || atomic_load(&w->judge_failed))
        return 0;
    if (g->stages.good[slot] && work_take_slot(w, slot)) {
        if (judgement_adopt(w->judgement, w->trace, slot, said(g, slot), seen, w->scratch[worker]) != 0)
            atomic_store(&w->judge_failed, 1);
        atomic_fetch_add(&g->adopted, 1);
    }
    return 1;
}

static void all_slots(struct by_gpu *g, int (*step)(void *ctx, int worker))
{
    atomic_store(&g->next, 0);
    pool_start(g->w->pool, step, g);
    pool_wait(g->w->pool);
}

static double worst_of(const struct tile_verdicts *v, int kv_tiles)
{
    double worst = 0;
    for (int i = 0; i < kv_tiles * ASC_CHANNELS; i++)
        worst = fmax(worst, fmax((double)v[i].local.worst_ratio, (double)v[i].global.worst_ratio));
    return worst;
}

static void find_worst(struct by_gpu *g)
{
    const int kv_tiles = g->w->judgement->kv_tiles;
    double worst = -1;
    g->worst = -1;
    for (int slot = 0; slot < g->w->judgement->n_slots; slot++) {
        const double of = g->stages.good[slot] ? worst_of(said(g, slot), kv_tiles) : -1;
        if (of > worst) {
            worst = of;
            g->worst = slot;
        }
    }
}

/* A slot that both have judged, and not alike; -1: there is none. */
static int disagreement(const struct by_gpu *g)
{
    const struct judgement *j = g->w->judgement;
    for (int slot = 0; slot < j->n_slots; slot++)
        if (g->stages.good[slot] && judgement_slot_done(j, slot) &&
            !gpu_stages_agree(said(g, slot), judgement_tiles(j, slot), j->kv_tiles))
            return slot;
    return -1;
}

static void log_line(struct work *w, const char *words)
{
    char line[256];
    snprintf(line, sizeof line, "what was recorded is judged by %s", words);
    pthread_mutex_lock(&w->lock);
    log_add(&w->mail.log, line);
    pthread_mutex_unlock(&w->lock);
}

/* Who judges, as the report says it: set before the judgement is complete, and read after. */
static void say(struct by_gpu *g, const char *device, int wrong)
{
    struct judgement *j = g->w->judgement;
    const int adopted = atomic_load(&g->adopted);
    if (wrong >= 0) {
        const int32_t *place = trace_slot_place(g->w->trace, wrong);
        snprintf(j->judge, sizeof j->judge,
                 "the CPU: the judge on %.64s is wrong about b%d h%d q%d, and nothing that it said counts", device,
                 place[0], place[1], place[2]);
    } else {
        snprintf(
            j->judge, sizeof j->judge,
            "the CPU, and of %d q tiles of %d by %.64s alone, where the CPU came to the same about the others that "
            "it called right",
            adopted, j->n_slots, device);
        j->by_gpu = adopted;
    }
    log_line(g->w, j->judge);
}

/* The GPU's word about all slots, while the pool judges those that confirm it. */
static int ask(struct by_gpu *g, struct err *err)
{
    struct work *w = g->w;
    const struct runner_progress progress = {.cancel = &w->cancel};
    struct gpu_asking *asking = NULL;
    choose(g, w->judgement->n_slots);
    int failed = gpu_stages_ask(w->trace, w->judgement->fingerprint, w->pool, &asking, err);
    atomic_store(&g->next, 0);
    pool_start(w->pool, confirm_step, g);
    if (!failed)
        failed = gpu_stages_run(asking, NULL, w->recorder.judge, &progress, err);
    pool_wait(w->pool);
    if (!failed)
        failed = gpu_stages_take(asking, w->pool, &g->stages, err);
    gpu_asking_free(asking);
    return failed;
}

static int use(struct by_gpu *g, const char *device, struct err *err)
{
    struct work *w = g->w;
    struct err failure = {0};
    const int failed = ask(g, &failure);
    if (work_stopped(w))
        return err_set(err, ERR_CANCELLED, "", "cancelled while judging");
    if (failed) {
        snprintf(w->judgement->judge, sizeof w->judgement->judge, "the CPU, since the judge on %.64s failed: %.90s",
                 device, failure.message);
        log_line(w, w->judgement->judge);
        return 0;
    }
    find_worst(g);
    all_slots(g, rest_step);
    const int wrong = disagreement(g);
    if (wrong < 0)
        all_slots(g, adopt_step);
    say(g, device, wrong);
    return 0;
}

int work_judge_on_gpu(struct work *w, struct err *err)
{
    struct by_gpu g = {.w = w, .worst = -1};
    struct judgement *j = w->judgement;
    struct err missing = {0};
    const char *unknown = NULL;
    if (!w->scenario || w->scenario->capture.judge == SCENARIO_JUDGE_CPU || !w->recorder.judge || w->run)
        return 0;
    if (gpu_stages_unknown(w->trace, j->fingerprint, &unknown) != 0)
        return 0; /* the CPU runs out of memory as well, and says so */
    const char *device = unknown ? "" : gpu_process_device(w->recorder.judge, NULL, &missing);
    if (unknown)
        snprintf(j->judge, sizeof j->judge, "the CPU, since the judge on a GPU does not know this: %.120s", unknown);
    else if (!device)
        snprintf(j->judge, sizeof j->judge, "the CPU, since there is no judge on the GPU: %.120s", missing.message);
    if (unknown || !device) {
        log_line(w, j->judge);
        return 0;
    }
    const int failed = use(&g, device, err);
    gpu_stages_free(&g.stages);
    return failed;
}
