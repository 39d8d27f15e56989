#include "engine/study/laboratory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct laboratory {
    const struct trace *t; /* borrowed */
    void (*wake)(void *ctx);
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below but the thread's own */
    pthread_cond_t asked, idle;
    int quit, working;
    unsigned wanted;
    int slot; /* whose comparison is wanted; -1: none */
    struct whatif_choice tried[WHATIF_MAX];
    int n_tried, restart; /* restart: what-if begins anew */

    /* Made, and not collected yet. */
    struct comparison *made; /* owned */
    struct formats *formats; /* owned; also in the state, once it is complete */
    int formats_made, changed;
    struct whatif whatif; /* its amax is not for reading */
    int whatif_begun;
    int made_slot, surveyed, predicted;
    int pieces[2], done[2]; /* of formats and what-if */
    int stopped, failed;

    /* The thread's own. */
    struct formats *scanned;   /* owned until made */
    struct whatif *predicting; /* owned */
    struct survey_row *survey; /* owned, [n_slots]; those below `surveyed` are the owner's to read, too */

    /* The owner's. */
    struct laboratory_state state;
    struct comparison *comparison; /* owned */
    struct whatif shown;
};

enum task { TASK_NONE, TASK_COMPARISON, TASK_FORMATS, TASK_WHATIF, TASK_SURVEY };

/* What is next; the lock is held. */
static enum task next_task(const struct laboratory *l)
{
    if (l->failed)
        return TASK_NONE;
    if (l->wanted & LABORATORY_COMPARISON && l->slot >= 0 && l->slot != l->made_slot)
        return TASK_COMPARISON;
    if (l->stopped)
        return TASK_NONE;
    if (l->wanted & LABORATORY_FORMATS && !l->formats_made)
        return TASK_FORMATS;
    if (l->wanted & LABORATORY_WHATIF && (!l->whatif_begun || l->done[1] < l->pieces[1]))
        return TASK_WHATIF;
    if (l->wanted & LABORATORY_SURVEY && l->surveyed < l->t->layout.n_slots)
        return TASK_SURVEY;
    return TASK_NONE;
}

/* Each does one piece without the lock and returns with it. */
static int compare(struct laboratory *l, int slot)
{
    struct comparison *made = calloc(1, sizeof *made);
    const bool failed = !made || comparison_make(l->t, slot, made) != 0;
    pthread_mutex_lock(&l->lock);
    if (failed) {
        free(made);
        return -1;
    }
    if (l->made) {
        comparison_free(l->made);
        free(l->made);
    }
    l->made = made;
    l->made_slot = slot;
    return 0;
}

static int scan_formats(struct laboratory *l)
{
    int pieces = l->pieces[0];
    int failed = !l->scanned && formats_begin(l->t, &l->scanned, &pieces) != 0;
    if (!failed && l->done[0] < pieces)
        failed = formats_piece(l->t, l->scanned, l->done[0]) != 0;
    pthread_mutex_lock(&l->lock);
    l->pieces[0] = pieces;
    l->done[0]++;
    if (!failed && l->done[0] >= pieces) {
        l->formats = l->scanned;
        l->formats_made = 1;
    }
    return failed ? -1 : 0;
}

/* tried, n_tried: as they were when the lock was held. */
static int predict(struct laboratory *l, const struct whatif_choice *tried, int n_tried, int restart)
{
    int pieces = l->pieces[1], done = restart ? 0 : l->done[1], failed = 0;
    if (restart) {
        whatif_free(l->predicting);
        failed = whatif_begin(l->t, WHATIF_SLOTS, &l->predicting, &pieces) != 0;
        for (int i = 0; !failed && i < n_tried; i++)
            whatif_add(l->predicting, &tried[i]);
    } else if (done < pieces) {
        failed = whatif_piece(l->t, l->predicting, done++) != 0;
    }
    pthread_mutex_lock(&l->lock);
    if (failed)
        return -1;
    l->pieces[1] = pieces;
    l->done[1] = l->predicted = done;
    l->whatif_begun = 1;
    l->whatif = *l->predicting;
    return 0;
}

static int survey(struct laboratory *l, int slot)
{
    struct comparison c;
    const bool failed = comparison_make(l->t, slot, &c) != 0;
    if (!failed)
        survey_row_of(&c, &l->survey[slot]);
    comparison_free(&c);
    pthread_mutex_lock(&l->lock);
    l->surveyed += !failed;
    return failed ? -1 : 0;
}

/* The lock is held, before and behind. */
static int do_task(struct laboratory *l, enum task task)
{
    const int slot = task == TASK_COMPARISON ? l->slot : l->surveyed;
    struct whatif_choice tried[WHATIF_MAX];
    const int n_tried = l->n_tried, restart = l->restart || !l->whatif_begun;
    memcpy(tried, l->tried, sizeof tried);
    if (task == TASK_WHATIF)
        l->restart = 0;
    pthread_mutex_unlock(&l->lock);
    switch (task) {
    case TASK_COMPARISON:
        return compare(l, slot);
    case TASK_FORMATS:
        return scan_formats(l);
    case TASK_WHATIF:
        return predict(l, tried, n_tried, restart);
    default:
        return survey(l, slot);
    }
}

static void *work(void *ctx)
{
    struct laboratory *l = ctx;
    pthread_mutex_lock(&l->lock);
    while (!l->quit) {
        const enum task task = next_task(l);
        if (task == TASK_NONE) {
            l->working = 0;
            pthread_cond_broadcast(&l->idle);
            pthread_cond_wait(&l->asked, &l->lock);
            continue;
        }
        l->working = 1;
        if (do_task(l, task) != 0)
            l->failed = 1;
        l->changed = 1;
        pthread_mutex_unlock(&l->lock);
        l->wake(l->ctx);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int laboratory_new(const struct trace *t, void (*wake)(void *ctx), void *ctx, struct laboratory **out)
{
    struct laboratory *l = calloc(1, sizeof *l);
    *out = NULL;
    if (!l)
        return -1;
    *l = (struct laboratory){.t = t, .wake = wake, .ctx = ctx, .slot = -1, .made_slot = -1};
    l->survey = calloc((size_t)t->layout.n_slots + 1, sizeof *l->survey);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->asked, NULL);
    pthread_cond_init(&l->idle, NULL);
    if (!l->survey || pthread_create(&l->thread, NULL, work, l) != 0) {
        free(l->survey);
        free(l);
        return -1;
    }
    *out = l;
    return 0;
}

void laboratory_free(struct laboratory *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->quit = 1;
    pthread_cond_signal(&l->asked);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    comparison_free(l->made);
    free(l->made);
    comparison_free(l->comparison);
    free(l->comparison);
    formats_free(l->scanned);
    whatif_free(l->predicting);
    free(l->survey);
    pthread_cond_destroy(&l->asked);
    pthread_cond_destroy(&l->idle);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void laboratory_ask(struct laboratory *l, unsigned wanted, int slot)
{
    pthread_mutex_lock(&l->lock);
    l->wanted |= wanted;
    l->slot = slot;
    if (next_task(l) != TASK_NONE) {
        l->working = 1;
        pthread_cond_signal(&l->asked);
    }
    pthread_mutex_unlock(&l->lock);
}

int laboratory_try(struct laboratory *l, const struct whatif_choice *choice)
{
    pthread_mutex_lock(&l->lock);
    const bool failed = l->n_tried == WHATIF_MAX || (l->whatif_begun && l->whatif.n == WHATIF_MAX);
    if (!failed) {
        l->tried[l->n_tried++] = *choice;
        l->restart = 1;
        l->whatif_begun = 0;
        l->wanted |= LABORATORY_WHATIF;
        l->working = 1;
        pthread_cond_signal(&l->asked);
    }
    pthread_mutex_unlock(&l->lock);
    return failed ? -1 : 0;
}

void laboratory_stop(struct laboratory *l, bool stopped)
{
    pthread_mutex_lock(&l->lock);
    l->stopped = stopped;
    l->changed = 1;
    if (next_task(l) != TASK_NONE) {
        l->working = 1;
        pthread_cond_signal(&l->asked);
    }
    pthread_mutex_unlock(&l->lock);
}

bool laboratory_busy(struct laboratory *l)
{
    pthread_mutex_lock(&l->lock);
    const int busy = l->working;
    pthread_mutex_unlock(&l->lock);
    return busy;
}

void laboratory_finish(struct laboratory *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->working)
        pthread_cond_wait(&l->idle, &l->lock);
    pthread_mutex_unlock(&l->lock);
    laboratory_collect(l);
}

/* Pieces of the scan that is under way; the lock is held. */
static void count_pieces(const struct laboratory *l, struct laboratory_state *s)
{
    s->done = s->total = 0;
    switch (next_task(l)) {
    case TASK_FORMATS:
        s->done = l->done[0];
        s->total = l->pieces[0] ? l->pieces[0] : 1;
        break;
    case TASK_WHATIF:
        s->done = l->done[1];
        s->total = l->pieces[1] ? l->pieces[1] : 1;
        break;
    case TASK_SURVEY:
        s->done = l->surveyed;
        s->total = l->t->layout.n_slots;
        break;
    default:
        break;
    }
}

bool laboratory_collect(struct laboratory *l)
{
    struct laboratory_state *s = &l->state;
    struct comparison *old = NULL;
    pthread_mutex_lock(&l->lock);
    const int changed = l->changed;
    l->changed = 0;
    if (l->made) {
        old = l->comparison;
        l->comparison = l->made;
        l->made = NULL;
    }
    l->shown = l->whatif;
    s->formats = l->formats_made ? l->formats : NULL;
    s->comparison = l->comparison;
    s->survey = l->survey;
    s->surveyed = l->surveyed;
    s->slots = l->t->layout.n_slots;
    s->whatif = l->whatif.n ? &l->shown : NULL;
    s->predicted = l->predicted;
    s->stopped = l->stopped;
    s->failed = l->failed;
    count_pieces(l, s);
    pthread_mutex_unlock(&l->lock);
    comparison_free(old);
    free(old);
    return changed;
}

const struct laboratory_state *laboratory_state(const struct laboratory *l)
{
    return &l->state;
}

const struct trace *laboratory_trace(const struct laboratory *l)
{
    return l->t;
}
