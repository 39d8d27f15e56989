#include "engine/session/tile_values.h"

#include "engine/base/clock.h"
#include "engine/session/work.h"
#include "engine/verdict/case.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct tile_values {
    void (*wake)(void *ctx);
    void *ctx;
    struct judge_scratch *scratch; /* owned */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t begun, answered;
    bool quit;
    enum { IDLE, WORKING, ANSWERED } state;
    const struct trace *t;     /* borrowed while not idle */
    const struct judgement *j; /* as t */
    struct tile_values_answer answer;
    double since, told; /* monotonic seconds: when it began, when the share was told last (the thread's own) */
    atomic_int give_up, tiles;
};

bool tile_values_same(const struct tile_values_ask *a, const struct tile_values_ask *b)
{
    return a->kind == b->kind && a->place.slot == b->place.slot && a->place.kv == b->place.kv &&
           a->place.channel == b->place.channel && a->row == b->row && a->col == b->col;
}

static int ask(void *ctx)
{
    enum { TOLD_PER_SECOND = 10 };
    struct tile_values *s = ctx;
    atomic_fetch_add(&s->tiles, 1);
    const double now = clock_seconds();
    if (now - s->told > 1.0 / TOLD_PER_SECOND) {
        s->told = now;
        s->wake(s->ctx);
    }
    return atomic_load(&s->give_up);
}

static int make_row(const struct trace *t, const struct tile_values_ask *a, double *want[ASC_CHANNELS])
{
    static const enum asc_channel of[] = {asc_m, asc_alpha, asc_l};
    struct slot_case c;
    if (slot_case_make(t, a->place.slot, &c) != 0)
        return -1;
    int failed = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        want[of[i]] = malloc((size_t)t->layout.kv_tiles * sizeof(double));
        failed |= !want[of[i]];
    }
    const int row = a->row < c.c.in_q.rows ? a->row : c.c.in_q.rows - 1;
    failed = failed || row_state_want(&c.c, row, want[asc_m], want[asc_alpha], want[asc_l]) != 0;
    slot_case_free(&c);
    return failed ? -1 : 0;
}

static int make(struct tile_values *s)
{
    struct tile_values_answer *to = &s->answer;
    const struct tile_values_ask *a = &to->ask;
    switch (a->kind) {
    case VALUES_DETAIL:
        return judgement_detail(s->j, s->t, a->place, s->scratch, &to->detail);
    case VALUES_ROW:
        return make_row(s->t, a, to->row_want);
    case VALUES_OPERANDS:
        return judgement_operands(s->j, s->t, a->place, a->row, a->col, s->scratch, &to->operands);
    case VALUES_PIN:
        return pin_fill(&to->pin, s->t, s->j, s->scratch);
    case VALUES_PICTURE:
        return picture_of_slot(s->j, s->t, a->place, (enum picture_scope)a->col, a->row != 0, s->scratch, &to->picture);
    default:
        return states_of_slot(s->j, s->t, a->place.slot, s->scratch, &to->states);
    }
}

static void *tile_values_thread(void *ctx)
{
    struct tile_values *s = ctx;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->quit && s->state != WORKING)
            pthread_cond_wait(&s->begun, &s->lock);
        if (s->quit)
            break;
        pthread_mutex_unlock(&s->lock);
        const bool failed = make(s) != 0;
        pthread_mutex_lock(&s->lock);
        s->answer.failed = failed;
        s->state = ANSWERED;
        pthread_cond_broadcast(&s->answered);
        s->wake(s->ctx);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int tile_values_new(void (*wake)(void *ctx), void *ctx, struct tile_values **out)
{
    struct tile_values *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return -1;
    s->wake = wake;
    s->ctx = ctx;
    s->scratch = judge_scratch_new();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->begun, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!s->scratch || pthread_create(&s->thread, NULL, tile_values_thread, s) != 0) {
        judge_scratch_free(s->scratch);
        free(s);
        return -1;
    }
    judge_scratch_watch(s->scratch, ask, s);
    *out = s;
    return 0;
}

void tile_values_free(struct tile_values *s)
{
    if (!s)
        return;
    tile_values_give_up(s);
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_broadcast(&s->begun);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    tile_values_answer_free(&s->answer);
    judge_scratch_free(s->scratch);
    pthread_cond_destroy(&s->begun);
    pthread_cond_destroy(&s->answered);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void tile_values_answer_free(struct tile_values_answer *a)
{
    tile_detail_free(&a->detail);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        free(a->row_want[ch]);
    derivation_free(&a->operands);
    pin_forget(&a->pin);
    row_states_free(&a->states);
    picture_free(&a->picture);
    *a = (struct tile_values_answer){.failed = 1};
}

void tile_values_begin(struct tile_values *s, const struct trace *t, const struct judgement *j,
                       const struct tile_values_ask *a)
{
    pthread_mutex_lock(&s->lock);
    s->t = t;
    s->j = j;
    s->answer = (struct tile_values_answer){.ask = *a};
    if (a->kind == VALUES_PIN) {
        const int32_t *at = trace_slot_place(t, a->place.slot);
        s->answer.pin.at = (struct cursor){
            .batch = at[0], .head = at[1], .q_tile = at[2], .channel = a->place.channel, .row = a->row, .col = a->col};
    }
    atomic_store(&s->give_up, 0);
    atomic_store(&s->tiles, 0);
    s->since = s->told = clock_seconds();
    s->state = WORKING;
    pthread_cond_signal(&s->begun);
    pthread_mutex_unlock(&s->lock);
}

const struct tile_values_ask *tile_values_under_way(const struct tile_values *s)
{
    return s && s->t ? &s->answer.ask : NULL;
}

double tile_values_share(const struct tile_values *s)
{
    const double share = (double)atomic_load(&s->tiles) / s->t->layout.kv_tiles;
    return share < 1 ? share : 1;
}

double tile_values_seconds(const struct tile_values *s)
{
    return clock_seconds() - s->since;
}

void tile_values_give_up(struct tile_values *s)
{
    atomic_store(&s->give_up, 1);
}

bool tile_values_take(struct tile_values *s, double seconds, struct tile_values_answer *out)
{
    if (!tile_values_under_way(s))
        return false;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const long long nanoseconds = until.tv_nsec + (long long)(1e9 * (seconds > 0 ? seconds : 0));
    until.tv_sec += (time_t)(nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_mutex_lock(&s->lock);
    while (s->state == WORKING) {
        if (seconds < 0)
            pthread_cond_wait(&s->answered, &s->lock);
        else if (pthread_cond_timedwait(&s->answered, &s->lock, &until) == ETIMEDOUT)
            break;
    }
    const bool there = s->state == ANSWERED;
    if (there) {
        *out = s->answer;
        s->answer = (struct tile_values_answer){.failed = 1};
        s->state = IDLE;
        s->t = NULL;
        s->j = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return there;
}
