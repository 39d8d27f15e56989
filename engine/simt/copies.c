#include "engine/simt/copies.h"

#include "engine/simt/checks/checks.h"
#include "engine/simt/fiber.h"
#include "engine/simt/launch.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"
#include "engine/trace/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 64u
#define CALLERS 3

/* Where a copy was issued. */
struct issue {
    const void *call;             /* behind the call of simt_copy_async() */
    const void *callers[CALLERS]; /* behind those of the functions around it that were not inlined; NULL: no more */
};

struct copy {
    unsigned char *to;
    const unsigned char *from;
    struct issue issue;
    const char *file; /* borrowed: a literal */
    int line;
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

/* The kernel is compiled with frame pointers: each frame begins with its caller's, the return address above it. */
static inline __attribute__((always_inline)) struct issue issued_at(const struct worker *w)
{
    const uintptr_t low = (uintptr_t)w->stacks + (size_t)(simt_tls.self - w->fiber) * FIBER_BYTES + FIBER_GUARD_BYTES;
    const void *const *frame = __builtin_frame_address(0), *const *outer = frame[0];
    struct issue issue = {.call = __builtin_return_address(0)};
    for (int i = 0; i < CALLERS && outer > frame && (uintptr_t)outer - low < FIBER_STACK_BYTES - 2 * sizeof *outer;
         i++) {
        issue.callers[i] = outer[1];
        frame = outer;
        outer = frame[0];
    }
    return issue;
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
                report_raise(EVENT_SYSTEM, true, file, line, NULL, "out of memory for another cp.async");
                traps_end();
            }
            c->copy = more;
            c->capacity = capacity;
        }
    }
    if (bytes != 4 && bytes != 8 && bytes != 16) {
        report_raise(EVENT_ADDRESS, true, file, line, NULL, "cp.async of %zu bytes: only 4, 8 and 16 are allowed",
                     bytes);
        traps_end();
    }
    if (((uintptr_t)to | (uintptr_t)from) & (bytes - 1)) {
        report_raise(EVENT_MISALIGNED, true, file, line, NULL, "misaligned address: cp.async of %zu bytes %s %p", bytes,
                     (uintptr_t)to & (bytes - 1) ? "to" : "from",
                     (uintptr_t)to & (bytes - 1) ? (const void *)to : from);
        traps_end();
    }
    if (zeros > bytes)
        zeros = bytes;
    const struct issue issue = issued_at(w);
    const uint32_t site = w->checks ? checks_copy_issue(w, to, from, bytes, bytes - zeros, issue.call, file, line) : 0;
    c->copy[c->n++] = (struct copy){to, from, issue, file, line, c->group, site, (uint8_t)bytes, (uint8_t)zeros, 0};
    if (simt_early())
        make(&c->copy[c->n - 1]);
    w->copying = true;
}

void simt_copy_commit(void)
{
    struct worker *w = simt_tls.worker;
    w->copies[simt_tls.self - w->fiber].group++;
    w->copying = true;
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

/* The copy under way to a byte; c->n: none. */
static unsigned copy_to(const struct copies *c, const void *at)
{
    unsigned i = c->first;
    while (i < c->n && (uintptr_t)at - (uintptr_t)c->copy[i].to >= c->copy[i].bytes)
        i++;
    return i;
}

bool copies_waited(const struct worker *w, unsigned thread, unsigned copier, const void *at)
{
    const struct copies *own = &w->copies[thread], *c = &w->copies[copier];
    const unsigned i = copy_to(c, at);
    unsigned k = own->first;
    if (i == c->n || (own->group == 0 && own->n == 0))
        return false;
    while (k < own->n && own->copy[k].group != c->copy[i].group)
        k++;
    return k == own->n;
}

/* The array that it reads; NULL: none of the problem. */
static const char *source_of(const struct copy *copy)
{
    const struct simt_options *options = launch_options();
    for (int i = 0; i < options->n_regions; i++)
        if ((uintptr_t)copy->from - (uintptr_t)options->regions[i].begin < options->regions[i].bytes)
            return options->regions[i].name;
    return NULL;
}

const char *copies_source(const struct worker *w, unsigned copier, const void *at)
{
    const struct copies *c = &w->copies[copier];
    const unsigned i = copy_to(c, at);
    return i < c->n ? source_of(&c->copy[i]) : NULL;
}

/* What was told in this launch. A line may copy from several arrays. */
static struct told {
    struct issue issue;
    struct simt_frame at, body; /* borrowed */
    const char *source;         /* borrowed */
} told[TOLD_MAX];               /* under lock; what stands before n_told stays */
static _Atomic unsigned n_told;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void copies_begin_launch(void)
{
    n_told = 0;
}

static bool was_told(const struct copy *copy, const char *from)
{
    const unsigned n = n_told;
    for (unsigned i = 0; i < n; i++)
        if (memcmp(&told[i].issue, &copy->issue, sizeof copy->issue) == 0 && told[i].source == from)
            return true;
    return n == TOLD_MAX;
}

/* Places that look the same to the user are one. */
static bool is_new(const struct copy *copy, const char *from, const struct simt_stack *stack)
{
    const struct simt_frame body = locate_call(stack), at = stack->n ? stack->at[0] : body;
    bool fresh = !was_told(copy, from);
    if (!fresh)
        return false;
    for (unsigned i = 0; i < n_told; i++)
        fresh = fresh && (!report_same_place(&told[i].at, &at) || !report_same_place(&told[i].body, &body) ||
                          told[i].source != from);
    told[n_told] = (struct told){copy->issue, at, body, from};
    n_told++;
    return fresh;
}

static void tell_left(const struct copy *copy, const char *from)
{
    const struct fiber *self = simt_tls.self;
    int n_callers = 0;
    while (n_callers < CALLERS && copy->issue.callers[n_callers])
        n_callers++;
    const struct locate where = {.pc = (uintptr_t)copy->issue.call,
                                 .callers = copy->issue.callers,
                                 .n_callers = n_callers,
                                 .file = copy->file,
                                 .line = copy->line,
                                 .body = (uintptr_t)self->body};
    struct simt_report r = {.kind = EVENT_NEVER_WAITED, .file = copy->file, .line = copy->line, .times = 1};
    char text[160];
    const int paused = traps_pause();
    simt_tls.reporting++;
    locate_stack(&where, &r.stack);
    if (r.stack.n) {
        r.file = r.stack.at[0].file;
        r.line = r.stack.at[0].line;
    }
    snprintf(text, sizeof text, "returns without having waited for its cp.async of %u bytes%s%s", copy->bytes,
             from ? " from " : "", from ? from : "");
    r.text = text;
    pthread_mutex_lock(&lock);
    const bool fresh = is_new(copy, from, &r.stack);
    pthread_mutex_unlock(&lock);
    if (fresh)
        report_send(&r, self);
    simt_tls.reporting--;
    traps_resume(paused);
}

void copies_left(struct worker *w)
{
    const struct copies *c = &w->copies[simt_tls.self - w->fiber];
    for (unsigned i = c->first; i < c->n; i++) {
        const struct copy *copy = &c->copy[i];
        const char *from = source_of(copy);
        if (w->checks)
            checks_copy_left(w, copy->to, copy->bytes, copy->site, from);
        else if (!was_told(copy, from))
            tell_left(copy, from);
    }
}

void copies_begin_block(struct worker *w)
{
    if (!w->copying)
        return;
    for (unsigned i = 0; i < SIMT_THREADS_MAX; i++)
        w->copies[i].first = w->copies[i].n = w->copies[i].group = 0;
    w->copying = false;
}

void copies_free(struct worker *w)
{
    for (unsigned i = 0; i < SIMT_THREADS_MAX; i++)
        free(w->copies[i].copy);
}
