/* A pass over the slots of a trace: which of them is taken, how far it is, and that it ends where it is stopped. */
#include "engine/session/work_parts.h"

#include "engine/base/clock.h"

bool work_take_slot(struct work *w, int slot)
{
    return slot >= 0 && slot < w->judgement->n_slots && !atomic_exchange(&w->taken[slot], 1);
}

void work_pass(struct work *w, const struct trace *t, enum phase phase, enum runner_step step)
{
    w->walks = t;
    atomic_store(&w->next, 0);
    atomic_store(&w->slots_walked, 0);
    for (int i = 0; i < pool_threads(w->pool); i++)
        atomic_store(&w->asks[i].tiles, 0);
    work_enter(w, phase, step);
}

static void tell(struct work *w)
{
    const int kv_tiles = w->walks->layout.kv_tiles;
    const double total = (double)w->walks->layout.n_slots * kv_tiles;
    double done = (double)atomic_load(&w->slots_walked) * kv_tiles;
    for (int i = 0; i < pool_threads(w->pool); i++) {
        const int tiles = atomic_load(&w->asks[i].tiles);
        done += tiles < kv_tiles ? tiles : kv_tiles - 1; /* some are come to twice */
    }
    pthread_mutex_lock(&w->lock);
    w->mail.done = done < total ? done : total; /* rules are searched for in tiles that were walked through before */
    w->mail.total = total;
    pthread_mutex_unlock(&w->lock);
    work_signal(w);
}

void work_walked(struct work *w, int worker)
{
    atomic_store(&w->asks[worker].tiles, 0);
    atomic_fetch_add(&w->slots_walked, 1);
    tell(w);
}

int work_ask(void *ctx)
{
    enum { EVERY_MS = 50 };
    struct work_ask *ask = ctx;
    struct work *w = ask->work;
    atomic_fetch_add(&ask->tiles, 1);
    const long long now = (long long)(1000 * clock_seconds());
    long long told = atomic_load(&w->told_ms);
    if (w->walks && now - told >= EVERY_MS && atomic_compare_exchange_strong(&w->told_ms, &told, now))
        tell(w);
    return work_stopped(w);
}
