#include "engine/simt/guarded.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* On either side, never touched: takes addresses, no memory. A wrong 32-bit index of 4-byte elements still lands here.
 */
#define GUARD_BYTES ((size_t)1 << 34)
/* Where addresses are limited (ulimit -v) less has to do. */
#define GUARD_LEAST ((size_t)1 << 20)
#define CANARY 0xA5

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static size_t guard_bytes(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? GUARD_LEAST : GUARD_BYTES;
}

static void *reserve(size_t bytes)
{
    return mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void *guarded_new(struct guarded *g, size_t bytes, size_t align)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = round_up(bytes, page);
    size_t guard = guard_bytes();
    unsigned char *base = reserve(room + 2 * guard);
    if (base == MAP_FAILED && guard > GUARD_LEAST) {
        guard = GUARD_LEAST;
        base = reserve(room + 2 * guard);
    }
    *g = (struct guarded){0};
    if (base == MAP_FAILED)
        return NULL;
    *g = (struct guarded){base, room + 2 * guard, guard};
    if (mprotect(base + guard, room, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    unsigned char *at = base + guard + room - round_up(bytes, align);
    memset(base + guard, CANARY, (size_t)(at - base) - guard);
    memset(at + bytes, CANARY, (size_t)(base + guard + room - at) - bytes);
    return at;
}

static bool canary_intact(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++)
        if (*from != CANARY)
            return false;
    return true;
}

bool guarded_intact(const struct guarded *g, const void *at, size_t bytes)
{
    const unsigned char *begin = at;
    return canary_intact(g->mapping + g->guard, begin) &&
           canary_intact(begin + bytes, g->mapping + g->bytes - g->guard);
}

void guarded_reach(const struct guarded *g, bool reached)
{
    mprotect(g->mapping + g->guard, g->bytes - 2 * g->guard, reached ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void guarded_free(struct guarded *g)
{
    if (g->mapping)
        munmap(g->mapping, g->bytes);
    *g = (struct guarded){0};
}

void array_fill(void *array, size_t bytes, uint16_t pattern)
{
    for (size_t at = 0; at + sizeof pattern <= bytes; at += sizeof pattern)
        memcpy((unsigned char *)array + at, &pattern, sizeof pattern);
}
