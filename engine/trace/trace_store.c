#include "engine/trace/trace_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct trace_store {
    pthread_mutex_t lock;
    int references;
    struct trace_memory held; /* owned; fd -1: none */
    struct pool *fillers;     /* borrowed */
};

static void release(struct trace_memory *memory)
{
    if (memory->fd < 0)
        return;
    munmap(memory->mapping, memory->n_bytes);
    close(memory->fd);
    memory->fd = -1;
}

struct pool *trace_store_fillers(const struct trace_store *s)
{
    return s ? s->fillers : NULL;
}

struct trace_store *trace_store_new(struct pool *fillers)
{
    struct trace_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->references = 1;
    s->fillers = fillers;
    s->held.fd = -1;
    return s;
}

struct trace_store *trace_store_hold(struct trace_store *s)
{
    if (!s)
        return NULL;
    pthread_mutex_lock(&s->lock);
    s->references++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

void trace_store_free(struct trace_store *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    const int left = --s->references;
    pthread_mutex_unlock(&s->lock);
    if (left)
        return;
    release(&s->held);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

bool trace_store_take(struct trace_store *s, size_t n_bytes, struct trace_memory *out)
{
    bool found = false;
    if (!s)
        return false;
    pthread_mutex_lock(&s->lock);
    if (s->held.fd >= 0 && s->held.n_bytes == n_bytes) {
        *out = s->held;
        s->held.fd = -1;
        found = true;
    }
    release(&s->held);
    pthread_mutex_unlock(&s->lock);
    return found;
}

void trace_store_give(struct trace_store *s, const struct trace_memory *memory)
{
    pthread_mutex_lock(&s->lock);
    release(&s->held);
    s->held = *memory;
    pthread_mutex_unlock(&s->lock);
}
