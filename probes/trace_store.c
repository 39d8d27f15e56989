#include "probes/trace_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct trace_store {
    pthread_mutex_t lock;
    int references;
    int fd; /* owned, -1: none */
    uint64_t n_bytes;
};

struct trace_store *trace_store_new(void)
{
    struct trace_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->references = 1;
    s->fd = -1;
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
    if (s->fd >= 0)
        close(s->fd);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int trace_store_take(struct trace_store *s, uint64_t n_bytes)
{
    if (!s)
        return -1;
    pthread_mutex_lock(&s->lock);
    int fd = s->fd;
    s->fd = -1;
    if (fd >= 0 && s->n_bytes != n_bytes) {
        close(fd);
        fd = -1;
    }
    pthread_mutex_unlock(&s->lock);
    return fd;
}

void trace_store_give(struct trace_store *s, int fd, uint64_t n_bytes)
{
    pthread_mutex_lock(&s->lock);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = fd;
    s->n_bytes = n_bytes;
    pthread_mutex_unlock(&s->lock);
}
