/* Device memory that host code takes for itself (cudaMalloc): between guard zones and never written, as the run's own
   arrays are. */
#include "engine/simt/allocated.h"

#include "engine/base/dtype.h"
#include "engine/simt/guarded.h"
#include "engine/simt/launch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 256u /* what vector loads and CUDA's own code rely on (CUDA C++ Programming Guide, device memory) */

struct allocation {
    struct simt_region region;
    struct guarded memory;
    char name[64];
    bool told; /* that it was written outside: once */
    struct allocation *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned last_serial;
static struct allocation *all; /* changes between launches alone */

static char overrun[sizeof((struct allocation *)0)->name]; /* of the first that was written outside; "": none */

static void note_overrun(struct allocation *a)
{
    if (a->told || guarded_intact(&a->memory, a->region.begin, a->region.bytes))
        return;
    a->told = true;
    if (!overrun[0])
        memcpy(overrun, a->name, sizeof overrun);
}

bool allocated_overrun(char *name, size_t size)
{
    for (struct allocation *a = all; a; a = a->next)
        note_overrun(a);
    snprintf(name, size, "%s", overrun);
    overrun[0] = '\0';
    return name[0];
}

static void *allocate(size_t bytes, bool host)
{
    struct allocation *a = calloc(1, sizeof *a);
    void *at = a ? guarded_new(&a->memory, bytes, ALIGN) : NULL;
    if (!at) {
        if (a)
            guarded_free(&a->memory);
        free(a);
        return NULL;
    }
    snprintf(a->name, sizeof a->name, host ? "a CPU tensor of %zu bytes" : "an allocation of %zu bytes", bytes);
    a->region = (struct simt_region){.name = a->name,
                                     .begin = at,
                                     .bytes = bytes,
                                     .dtype = -1,
                                     .unwritten = !host,
                                     .host = host,
                                     .serial = ++last_serial,
                                     .guard_bytes = a->memory.guard};
    if (!host && !launch_rehearsed())
        array_fill(at, bytes, ARRAY_POISON_16);
    pthread_mutex_lock(&lock);
    a->next = all;
    all = a;
    pthread_mutex_unlock(&lock);
    return at;
}

void *simt_allocate(size_t bytes)
{
    return allocate(bytes, false);
}

void *simt_allocate_host(size_t bytes)
{
    return allocate(bytes, true);
}

void allocated_reach_host(bool reached)
{
    for (struct allocation *a = all; a; a = a->next)
        if (a->region.host)
            guarded_reach(&a->memory, reached);
}

bool simt_release(void *memory)
{
    struct allocation *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct allocation **at = &all; *at && !found; at = found ? at : &(*at)->next)
        if ((*at)->region.begin == memory) {
            found = *at;
            *at = found->next;
        }
    pthread_mutex_unlock(&lock);
    if (!found)
        return false;
    note_overrun(found);
    guarded_free(&found->memory);
    free(found);
    return true;
}

const struct simt_region *allocated_after(const struct simt_region *region)
{
    const struct allocation *a = region ? ((const struct allocation *)(const void *)region)->next : all;
    return a ? &a->region : NULL;
}
