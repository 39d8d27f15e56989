/* Where the warps of a block stand, for a run that does not end: asked of each worker by a signal, so that what it runs
   just then is told too. */
#include "engine/base/path.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MS = 1500 /* the first look at debug information takes long */, TEXT_BYTES = 1000, GROUPS = 32 };

static sem_t answered;

enum state { RETURNED, RUNS, MEETS, NAMED, COUNTED, CLUSTERED, BARRIER, SPINS, READY, NOT_BEGUN };

/* Lanes of a warp that stand alike. */
struct group {
    const struct fiber *first;
    enum state state;
    unsigned n;
};

static enum state state_of(const struct worker *w, const struct fiber *f)
{
    const struct warp *p = &w->warp[f->warp];
    const uint32_t bit = 1u << f->lane;
    if (!(p->alive & bit))
        return RETURNED;
    if (f == simt_tls.self && !w->parked)
        return RUNS;
    if (p->waiting & bit)
        return MEETS;
    if (p->named & bit)
        return NAMED;
    if (p->at_mbarrier & bit)
        return COUNTED;
    if (p->at_cluster & bit)
        return CLUSTERED;
    if (!(p->ready & bit))
        return BARRIER;
    return f->spinning ? SPINS : f->pc ? READY : NOT_BEGUN;
}

static bool alike(const struct group *g, const struct fiber *f, enum state state)
{
    if (g->state != state)
        return false;
    if (state == RETURNED || state == NOT_BEGUN)
        return true;
    if (state == RUNS || g->first->line != f->line || g->first->file != f->file || (!f->line && g->first->pc != f->pc))
        return false;
    return state == NAMED ? g->first->barrier == f->barrier
                          : state != MEETS || (g->first->mask == f->mask && g->first->op == f->op);
}

static int group_warp(const struct worker *w, unsigned warp, struct group groups[GROUPS])
{
    int n = 0;
    for (unsigned i = warp * 32; i < w->n_threads && i < warp * 32 + 32; i++) {
        const struct fiber *f = &w->fiber[i];
        const enum state state = state_of(w, f);
        int at = 0;
        while (at < n && !alike(&groups[at], f, state))
            at++;
        if (at == n)
            groups[n++] = (struct group){f, state, 0};
        groups[at].n++;
    }
    return n;
}

/* pc: of the instruction that the running thread is at. */
static struct simt_frame place_of(const struct group *g, uintptr_t pc)
{
    const bool runs = g->state == RUNS;
    struct simt_stack stack;
    const struct locate where = {.pc = runs ? pc : (uintptr_t)g->first->pc,
                                 .exact = runs,
                                 .is_running = runs,
                                 .file = runs ? NULL : g->first->file,
                                 .line = runs ? 0 : g->first->line,
                                 .body = (uintptr_t)g->first->body};
    if (g->state == RETURNED || g->state == NOT_BEGUN)
        return (struct simt_frame){0};
    locate_stack(&where, &stack);
    return locate_call(&stack);
}

static void state_words(const struct worker *w, const struct group *g, char *out, size_t bytes)
{
    const char *s = g->n == 1 ? "s" : "";
    const struct fiber *f = g->first;
    switch (g->state) {
    case RETURNED:
        snprintf(out, bytes, "%s returned", g->n == 1 ? "has" : "have");
        break;
    case RUNS:
        snprintf(out, bytes, f->spinning ? "wait%s for a value" : "run%s", s);
        break;
    case MEETS:
        snprintf(out, bytes, "wait%s in %s (mask %08x)", s, warp_op_name(f->op), f->mask);
        break;
    case NAMED:
        snprintf(out, bytes, "wait%s at barrier %u (%u of %u threads have come)", s, f->barrier,
                 w->named[f->barrier].arrived, w->named[f->barrier].expected);
        break;
    case COUNTED: {
        char counts[500];
        mbarrier_describe(&w->mbarriers, f->mbarrier, counts, sizeof counts);
        snprintf(out, bytes, "wait%s for %s", s, counts);
        break;
    }
    case CLUSTERED:
        snprintf(out, bytes, "wait%s for the blocks of the cluster (%u threads have not come)", s, w->cluster->missing);
        break;
    case BARRIER:
        snprintf(out, bytes, "wait%s at __syncthreads (%u of %u threads have come)", s, w->n_at_barrier, w->n_alive);
        break;
    case SPINS:
        snprintf(out, bytes, "wait%s for a value", s);
        break;
    case READY:
        snprintf(out, bytes, "may go on");
        break;
    case NOT_BEGUN:
        snprintf(out, bytes, "%s not begun", g->n == 1 ? "has" : "have");
        break;
    }
}

/* "31 lanes at k.cu:140 wait at __syncthreads, lane 7 at :133 waits for a value"; *at: the place of what may still
   come on, else of the first. Whether a lane runs or waits for a value. */
static bool warp_words(const struct worker *w, unsigned warp, uintptr_t pc, char *out, size_t bytes,
                       struct simt_frame *at)
{
    bool goes = false;
    struct group groups[GROUPS];
    const int n = group_warp(w, warp, groups);
    const char *file = NULL;
    size_t used = 0;
    *at = (struct simt_frame){0};
    for (int i = 0; i < n && used < bytes; i++) {
        const struct group *g = &groups[i];
        const struct simt_frame place = place_of(g, pc);
        char lanes[24], where[200] = "", state[520];
        if (g->n == 1)
            snprintf(lanes, sizeof lanes, "lane %u", (unsigned)g->first->lane);
        else
            snprintf(lanes, sizeof lanes, "%s%u lanes", g->n == 32 ? "all " : "", g->n);
        if (place.file && place.line > 0)
            snprintf(where, sizeof where, " at %s:%d",
                     file && strcmp(path_name(file), path_name(place.file)) == 0 ? "" : path_name(place.file),
                     place.line);
        state_words(w, g, state, sizeof state);
        used += (size_t)snprintf(out + used, bytes - used, "%s%s%s %s", used ? ", " : "", lanes, where, state);
        file = place.file ? place.file : file;
        goes = goes || g->state == RUNS || g->state == SPINS;
        if (!at->file || ((g->state == RUNS || g->state == SPINS) && place.file))
            *at = place;
    }
    return goes;
}

static void tell(const struct worker *w, unsigned first, unsigned last, const char *words, const struct simt_frame *at)
{
    char text[TEXT_BYTES + 96], warps[32];
    if (first == last)
        snprintf(warps, sizeof warps, "warp %u", first);
    else
        snprintf(warps, sizeof warps, "warps %u to %u, each", first, last);
    snprintf(text, sizeof text, "block (%u,%u,%u), %s: %s", w->block.x, w->block.y, w->block.z, warps, words);
    struct simt_report r = {.kind = EVENT_STANDS, .text = text, .file = at->file, .line = at->line, .times = 1};
    report_send(&r, &w->fiber[first * 32]);
}

/* Those of which a lane goes on, or the others. Warps that stand alike are one line. */
static void tell_warps(const struct worker *w, uintptr_t pc, bool going)
{
    char before[TEXT_BYTES] = "", words[TEXT_BYTES];
    struct simt_frame place = {0}, at;
    bool told = true, goes = false;
    unsigned first = 0, warps = (w->n_threads + 31) / 32;
    for (unsigned warp = 0; warp < warps; warp++) {
        words[0] = '\0';
        goes = warp_words(w, warp, pc, words, sizeof words, &at);
        if (!told && (goes != going || strcmp(words, before) != 0)) {
            tell(w, first, warp - 1, before, &place);
            told = true;
        }
        if (goes != going)
            continue;
        first = told ? warp : first;
        told = false;
        memcpy(before, words, sizeof before);
        place = at;
    }
    if (!told)
        tell(w, first, warps - 1, before, &place);
}

/* On the worker's own thread. What keeps the others waiting comes first. */
static void tell_block(const struct worker *w, uintptr_t pc)
{
    tell_warps(w, pc, true);
    tell_warps(w, pc, false);
}

static void on_ask(int signal, siginfo_t *info, void *context)
{
    const int saved = errno;
    const struct worker *w = simt_tls.worker;
    (void)signal;
    (void)info;
    if (w && !simt_tls.reporting && !simt_tls.locating) {
        const int paused = traps_pause();
        simt_tls.locating = true;
        tell_block(w, traps_pc(context));
        simt_tls.locating = false;
        traps_resume(paused);
    }
    sem_post(&answered);
    errno = saved;
    /* The run is about to be stopped. A kernel in a system call, which the signal has ended, would go on till then. */
    while (w)
        pause();
}

void stands_begin(void)
{
    struct sigaction action = {.sa_sigaction = on_ask, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sem_init(&answered, 0, 0);
    sigaction(SIGUSR2, &action, NULL);
}

void stands_ask(pthread_t worker)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ANSWER_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (pthread_kill(worker, SIGUSR2) == 0)
        while (sem_timedwait(&answered, &until) != 0 && errno == EINTR)
            ;
}
