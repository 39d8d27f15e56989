#include "engine/run/ahead.h"

#include <pthread.h>
#include <stdlib.h>

struct build_ahead {
    const struct runner_paths *paths; /* borrowed */
    struct scenario scenario;
    enum probes probes;
    const struct build *last; /* borrowed */
    atomic_int cancel;
    pthread_t thread;
};

static void *build(void *ctx)
{
    struct build_ahead *a = ctx;
    const struct runner_progress quiet = {.cancel = &a->cancel};
    struct err err = {0};
    record_build(a->paths, &a->scenario, a->probes, a->last, &quiet, &err);
    return NULL;
}

struct build_ahead *build_ahead_start(const struct runner_paths *paths, const struct scenario *scenario,
                                      enum probes probes, const struct build *last)
{
    struct build_ahead *a = malloc(sizeof *a);
    if (!a)
        return NULL;
    a->paths = paths;
    a->scenario = *scenario;
    a->probes = probes;
    a->last = last;
    atomic_init(&a->cancel, 0);
    if (pthread_create(&a->thread, NULL, build, a) == 0)
        return a;
    free(a);
    return NULL;
}

void build_ahead_end(struct build_ahead *a, bool wanted)
{
    if (!a)
        return;
    if (!wanted)
        atomic_store(&a->cancel, 1);
    pthread_join(a->thread, NULL);
    free(a);
}
