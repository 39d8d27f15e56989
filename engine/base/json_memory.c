#include "engine/base/json_memory.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than the metadata of a trace and the JSON of a report take; none of it is touched before it is needed. */
enum { RESERVE_BYTES = 1 << 20 };

static alignas(max_align_t) unsigned char reserve[RESERVE_BYTES];
static int end_status;
static size_t used, blocks; /* of the reserve; it is whole again when no block is left */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool in_reserve(const void *p)
{
    return (uintptr_t)p >= (uintptr_t)reserve && (uintptr_t)p < (uintptr_t)reserve + RESERVE_BYTES;
}

/* Nothing above could go on: jansson has no way to say that it failed which leaves its values whole. */
_Noreturn void end_without_memory(void)
{
    static const char words[] = "attnscope: out of memory\n";
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0)
        _exit(end_status);
    exit(end_status);
}

static void *take(size_t bytes)
{
    void *p = malloc(bytes);
    if (p)
        return p;
    const size_t room = (bytes / alignof(max_align_t) + 1) * alignof(max_align_t);
    pthread_mutex_lock(&lock);
    if (room <= RESERVE_BYTES - used) {
        p = reserve + used;
        used += room;
        blocks++;
    }
    pthread_mutex_unlock(&lock);
    if (!p)
        end_without_memory();
    return p;
}

static void give(void *p)
{
    if (!in_reserve(p)) {
        free(p);
        return;
    }
    pthread_mutex_lock(&lock);
    if (--blocks == 0)
        used = 0;
    pthread_mutex_unlock(&lock);
}

void json_memory_begin(int status)
{
    end_status = status;
    json_set_alloc_funcs(take, give);
}

char *json_memory_dumps(const json_t *json, size_t flags)
{
    char *text = json_dumps(json, flags);
    if (!in_reserve(text))
        return text;
    char *copy = strdup(text);
    give(text);
    return copy;
}
