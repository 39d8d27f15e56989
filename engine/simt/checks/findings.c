#include "engine/simt/checks/findings.h"

#include "engine/simt/checks/state.h"
#include "engine/simt/launch.h"
#include "engine/simt/report.h"
#include "engine/simt/traps.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX 16384u
#define TOLD_MAX 256u
#define HELD_MAX 64u
#define SITE_LINE 0x80000000u /* programs lie below: they are linked without -pie */

/* Calls that came with a line, by their address. Entries stay for good, so readers need no lock. */
static struct {
    uint32_t pc;      /* 0: free; set last */
    const char *file; /* borrowed: literals */
    int line;
} lines[LINES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A place as the user sees it: the line, and where the kernel's body called what holds it. */
struct place {
    struct simt_frame at, call; /* borrowed */
};
/* What was told in this launch, under lock; its number is 1 + its index. */
static struct told {
    enum event_kind kind;
    struct place here, other;
    uint64_t times;
    uint32_t recorder[RECORDERS];
    uintptr_t body; /* of the kernel; 0: unknown */
} told[TOLD_MAX];
static unsigned n_told, told_before; /* in this launch; in those before it, whose numbers go on */
/* What waits to be told, under lock. */
static struct held {
    struct simt_report report;
    char text[480];
    struct fiber who;
    uint64_t times;
    uint32_t recorder[RECORDERS];
} held[HELD_MAX];
static unsigned n_held;

/* Of this call, or the free entry where it belongs; LINES_MAX: there is neither. */
static unsigned find_line(uint32_t pc, int line)
{
    for (unsigned i = 0, at = pc * 0x9E3779B1u >> 18; i < LINES_MAX; i++, at = (at + 1) % LINES_MAX) {
        const uint32_t have = __atomic_load_n(&lines[at].pc, __ATOMIC_ACQUIRE);
        if (!have || (have == pc && lines[at].line == line))
            return at;
    }
    return LINES_MAX;
}

uint32_t site_of_line(const void *call, const char *file, int line)
{
    const uint32_t pc = (uint32_t)(uintptr_t)call;
    unsigned at = find_line(pc, line);
    if (at < LINES_MAX && lines[at].pc == pc)
        return SITE_LINE | at;
    pthread_mutex_lock(&lock);
    at = find_line(pc, line);
    if (at < LINES_MAX && lines[at].pc != pc) {
        lines[at].file = file;
        lines[at].line = line;
        __atomic_store_n(&lines[at].pc, pc, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return at < LINES_MAX ? SITE_LINE | at : 0;
}

static uintptr_t own_body(void)
{
    return simt_tls.self ? (uintptr_t)simt_tls.self->body : 0;
}

static void resolve(uint32_t site, bool is_running, uintptr_t body, struct simt_stack *out)
{
    struct locate where = {.pc = site, .is_running = is_running && simt_tls.self, .body = body};
    if (site & SITE_LINE) {
        where.pc = lines[site & ~SITE_LINE].pc;
        where.file = lines[site & ~SITE_LINE].file;
        where.line = lines[site & ~SITE_LINE].line;
    }
    out->n = 0;
    if (site)
        locate_stack(&where, out);
}

static struct finding_count *find(struct findings *f, enum event_kind kind, uint32_t site, uint32_t other)
{
    const uint64_t key = ((uint64_t)site << 32 | other) * 0x9E3779B97F4A7C15u + (uint64_t)kind * 0x85EBCA6Bu;
    for (unsigned i = 0; i < FINDINGS_MAX; i++) {
        struct finding_count *at = &f->at[((key >> 40) + i) % FINDINGS_MAX];
        if (!at->kind || (at->site == site && at->other == other && at->kind == (unsigned)kind + 1))
            return at;
    }
    return NULL;
}

static void add_recorder(uint32_t recorders[RECORDERS], uint32_t site)
{
    unsigned i = 0;
    while (i < RECORDERS && recorders[i] && recorders[i] != site)
        i++;
    if (i < RECORDERS)
        recorders[i] = site;
}

/* The line at which all of these stand; a file of NULL: they do not, or there is none. */
static struct simt_frame recorder_of(const uint32_t recorders[RECORDERS], uintptr_t body)
{
    struct simt_frame at = {0};
    for (unsigned i = 0; i < RECORDERS && recorders[i]; i++) {
        struct simt_stack stack;
        resolve(recorders[i], false, body, &stack);
        const struct simt_frame call = locate_call(&stack);
        if (!call.file || (i && !report_same_place(&at, &call)))
            return (struct simt_frame){0};
        at = call;
    }
    return at;
}

bool finding_count(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site)
{
    struct finding_count *at = find(&c->findings, kind, site, other_site);
    const uint32_t recorder = c->recorder;
    c->recorder = 0;
    if (!at)
        return false;
    const bool fresh = !at->kind;
    if (fresh) {
        c->findings.n++;
        *at = (struct finding_count){.site = site, .other = other_site, .kind = (uint16_t)(kind + 1)};
    }
    at->times++;
    add_recorder(at->recorder, recorder);
    return fresh;
}

static struct place place_of(const struct simt_stack *stack)
{
    return (struct place){stack->n ? stack->at[0] : (struct simt_frame){0}, locate_call(stack)};
}

static bool same_place(const struct place *a, const struct place *b)
{
    return report_same_place(&a->at, &b->at) && report_same_place(&a->call, &b->call);
}

/* Number of a pair of places; *fresh: it has not been told. 0: there is no room. */
static unsigned number_of(enum event_kind kind, const struct place *here, const struct place *other, bool *fresh)
{
    *fresh = false;
    for (unsigned i = 0; i < n_told; i++)
        if (told[i].kind == kind && same_place(&told[i].here, here) && same_place(&told[i].other, other))
            return i + 1;
    if (n_told == TOLD_MAX)
        return 0;
    *fresh = true;
    told[n_told] = (struct told){.kind = kind, .here = *here, .other = *other, .body = own_body()};
    return ++n_told;
}

/* fresh: this pair of places has not been told. */
static void number(struct simt_report *r, bool *fresh)
{
    const struct place here = place_of(&r->stack), other = place_of(&r->other_stack);
    r->file = here.at.file;
    r->line = here.at.line;
    r->other_file = other.at.file;
    r->other_line = other.at.line;
    r->number = (int)number_of(r->kind, &here, &other, fresh);
}

/* Under lock. */
static uint16_t hold(const struct checks *c, const struct simt_report *r, unsigned thread)
{
    if (n_held == HELD_MAX)
        return 0;
    struct held *h = &held[n_held];
    const struct worker *block;
    *h = (struct held){.report = *r, .who = *checks_fiber(c, thread, &block)};
    memcpy(h->text, r->text, sizeof h->text);
    h->report.text = h->text;
    h->report.block = c->worker->block;
    return (uint16_t)++n_held;
}

static void tell(struct checks *c, struct simt_report *r, bool holds, uint32_t site, uint32_t other_site,
                 unsigned thread)
{
    const int paused = traps_pause();
    simt_tls.reporting++;
    r->times = 1;
    resolve(site, true, own_body(), &r->stack);
    resolve(other_site, false, own_body(), &r->other_stack);
    struct finding_count *at = find(&c->findings, r->kind, site, other_site);
    bool fresh = false;
    pthread_mutex_lock(&lock);
    const uint16_t waits = holds ? hold(c, r, thread) : 0;
    if (!waits)
        number(r, &fresh);
    pthread_mutex_unlock(&lock);
    if (at) {
        at->number = (uint16_t)r->number;
        at->held = waits;
    }
    const struct worker *block;
    r->number += r->number ? (int)told_before : 0;
    if (fresh)
        report_send(r, checks_fiber(c, thread, &block));
    simt_tls.reporting--;
    traps_resume(paused);
}

#define TELL(holds)                                                                                                    \
    do {                                                                                                               \
        char text[sizeof held->text];                                                                                  \
        struct simt_report r = {.kind = kind, .text = text};                                                           \
        va_list args;                                                                                                  \
        va_start(args, format);                                                                                        \
        vsnprintf(text, sizeof text, format, args);                                                                    \
        va_end(args);                                                                                                  \
        tell(c, &r, holds, site, other_site, thread);                                                                  \
    } while (0)

void finding_tell(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site, unsigned thread,
                  const char *format, ...)
{
    TELL(false);
}

void finding_hold(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site, unsigned thread,
                  const char *format, ...)
{
    TELL(true);
}

bool finding_is_held(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site)
{
    const struct finding_count *at = find(&c->findings, kind, site, other_site);
    return at && at->held;
}

void findings_begin_launch(void)
{
    told_before += n_told;
    n_told = n_held = 0;
}

void findings_clear(struct findings *f)
{
    if (f->n)
        memset(f, 0, sizeof *f);
}

void findings_add(const struct findings *f)
{
    for (unsigned i = 0; f->n && i < FINDINGS_MAX; i++) {
        const struct finding_count *at = &f->at[i];
        if (!at->number && !at->held)
            continue;
        uint64_t *const times = at->number ? &told[at->number - 1].times : &held[at->held - 1].times;
        uint32_t *const recorders = at->number ? told[at->number - 1].recorder : held[at->held - 1].recorder;
        *times += at->times;
        for (unsigned k = 0; k < RECORDERS; k++)
            add_recorder(recorders, at->recorder[k]);
    }
}

void findings_end_launch(void)
{
    for (unsigned i = 0; i < n_held; i++) {
        struct held *h = &held[i];
        bool fresh;
        number(&h->report, &fresh);
        struct told *const t = h->report.number ? &told[h->report.number - 1] : NULL;
        h->report.number += t ? (int)told_before : 0;
        if (fresh)
            report_send(&h->report, &h->who);
        for (unsigned k = 0; k < RECORDERS && t; k++)
            add_recorder(t->recorder, h->recorder[k]);
        if (t)
            t->times += h->times;
    }
    for (unsigned i = 0; i < n_told; i++) {
        struct simt_report r = {.kind = told[i].kind,
                                .text = "",
                                .file = told[i].here.at.file,
                                .line = told[i].here.at.line,
                                .other_file = told[i].other.at.file,
                                .other_line = told[i].other.at.line,
                                .number = (int)(told_before + i) + 1,
                                .times = told[i].times < INT32_MAX ? (int)told[i].times : INT32_MAX};
        r.recorder = recorder_of(told[i].recorder, told[i].body);
        if (r.times > 1 || r.recorder.file)
            report_send(&r, NULL);
    }
}
