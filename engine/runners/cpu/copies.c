#include "engine/runners/cpu/copies.h"

#include "engine/runners/cpu/checks/checks.h"
#include "engine/runners/cpu/report.h"
#include "engine/runners/cpu/traps.h"
#include "engine/runners/cpu/worker.h"

#include <stdlib.h>
#include <string.h>

struct copy {
    unsigned char *to;
    const unsigned char *from;
    unsigned group;
    uint32_t site;        /* for the checks */
    uint8_t bytes, zeros; /* of bytes, how many at the end become zero */
    uint8_t made;
};

static void make(struct copy *copy)
{
    const size_t bytes = (size_t)copy->bytes - copy->zeros;
    if (copy->made)
        return;
    copy->made = 1;
    memcpy(copy->to, copy->from, bytes);
    memset(copy->to + bytes, 0, copy->zeros);
}

/* A GPU may make a copy any time between its issue and the wait for its group. Here that is the last moment: what is
   read without a wait is what was there before; or, in a shuffled order, the first. */
void simt_copy_async(void *to, const void *from, size_t bytes, size_t zeros, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct copies *c = &w->copies[simt_tls.self - w->fiber];
    if (c->n == c->capacity) {
        if (c->first) {
            memmove(c->copy, c->copy + c->first, (c->n - c->first) * sizeof *c->copy);
            c->n -= c->first;
            c->first = 0;
        } else {
            const unsigned capacity = c->capacity ? 2 * c->capacity : 32;
            struct copy *more = realloc(c->copy, capacity * sizeof *more);
            if (!more) {
                report_raise("launch", 1, file, line, NULL, "no memory for another cp.async");
                traps_end();
            }
            c->copy = more;
            c->capacity = capacity;
        }
    }
    if (bytes != 4 && bytes != 8 && bytes != 16) {
        report_raise("address", 1, file, line, NULL, "cp.async of %zu bytes: 4, 8 and 16 are possible", bytes);
        traps_end();
    }
    if (((uintptr_t)to | (uintptr_t)from) & (bytes - 1)) {
        report_raise("misaligned", 1, file, line, NULL, "misaligned address: cp.async of %zu bytes %s %p", bytes,
                     (uintptr_t)to & (bytes - 1) ? "to" : "from",
                     (uintptr_t)to & (bytes - 1) ? (const void *)to : from);
        traps_end();
    }
    if (zeros > bytes)
        zeros = bytes;
    const void *call = __builtin_return_address(0);
    const uint32_t site = w->checks ? checks_copy_issue(w, to, from, bytes, bytes - zeros, call, file, line) : 0;
    c->copy[c->n++] = (struct copy){to, from, c->group, site, (uint8_t)bytes, (uint8_t)zeros, 0};
    if (simt_early())
        make(&c->copy[c->n - 1]);
    w->copying = 1;
}

void simt_copy_commit(void)
{
    struct worker *w = simt_tls.worker;
    w->copies[simt_tls.self - w->fiber].group++;
    w->copying = 1;
}

void simt_copy_wait(size_t groups_left)
{
    struct worker *w = simt_tls.worker;
    struct copies *c = &w->copies[simt_tls.self - w->fiber];
    while (c->first < c->n && c->copy[c->first].group + groups_left < c->group) {
        struct copy *copy = &c->copy[c->first++];
        make(copy);
        if (w->checks)
            checks_copy_done(w, copy->to, copy->bytes, copy->site);
    }
    if (c->first == c->n)
        c->first = c->n = 0;
}

void copies_left(struct worker *w)
{
    const struct copies *c = &w->copies[simt_tls.self - w->fiber];
    for (unsigned i = c->first; i < c->n; i++)
        checks_copy_left(w, c->copy[i].to, c->copy[i].bytes, c->copy[i].site);
}

void copies_begin_block(struct worker *w)
{
    if (!w->copying)
        return;
    for (unsigned i = 0; i < SIMT_THREADS_MAX; i++)
        w->copies[i].first = w->copies[i].n = w->copies[i].group = 0;
    w->copying = 0;
}

void copies_free(struct worker *w)
{
    for (unsigned i = 0; i < SIMT_THREADS_MAX; i++)
        free(w->copies[i].copy);
}
