#include "engine/runners/cpu/checks/findings.h"

#include "engine/runners/cpu/checks/state.h"
#include "engine/runners/cpu/launch.h"
#include "engine/runners/cpu/report.h"
#include "engine/runners/cpu/traps.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX 4096u
#define TOLD_MAX 256u
#define LINE_SEARCH_BYTES 64u
#define SITE_LINE 0x80000000u /* programs lie below: they are linked without -pie */

/* Places that were handed over as lines. Entries stay for good, so readers need no lock. */
static struct {
    const char *file; /* borrowed: literals */
    int line;
} lines[LINES_MAX];
static unsigned n_lines;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What was told in this launch, under lock; its number is 1 + its index. */
static struct told {
    enum event_kind kind;
    const char *file, *other_file; /* borrowed */
    int line, other_line;
    uint64_t times;
} told[TOLD_MAX];
static unsigned n_told;

static unsigned find_line(const char *file, int line)
{
    const unsigned n = __atomic_load_n(&n_lines, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < n; i++)
        if (lines[i].line == line && lines[i].file == file)
            return i;
    return LINES_MAX;
}

uint32_t site_of_line(const char *file, int line)
{
    unsigned at = find_line(file, line);
    if (at < LINES_MAX)
        return SITE_LINE | at;
    pthread_mutex_lock(&lock);
    at = find_line(file, line);
    if (at == LINES_MAX && n_lines < LINES_MAX) {
        at = n_lines;
        lines[at].file = file;
        lines[at].line = line;
        __atomic_store_n(&n_lines, at + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return at < LINES_MAX ? SITE_LINE | at : 0;
}

static void resolve(uint32_t site, const char **file, int *line)
{
    *file = NULL;
    *line = 0;
    if (site & SITE_LINE) {
        *file = lines[site & ~SITE_LINE].file;
        *line = lines[site & ~SITE_LINE].line;
    } else if (site) {
        /* Of the call, not of what follows it; code that a compiler has merged has the line of what stands before. */
        for (uint32_t back = 1; back <= LINE_SEARCH_BYTES && !*line; back++)
            locate_user_line(site - back, file, line);
    }
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

int finding_count(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site)
{
    struct finding_count *at = find(&c->findings, kind, site, other_site);
    if (!at)
        return 0;
    at->times++;
    if (at->kind)
        return 0;
    c->findings.n++;
    *at = (struct finding_count){.site = site, .other = other_site, .kind = (uint16_t)(kind + 1), .times = 1};
    return 1;
}

static int same_file(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Number of a pair of lines; *fresh: it has not been told. 0: there is no room. */
static unsigned number_of(enum event_kind kind, const struct simt_report *r, int *fresh)
{
    *fresh = 0;
    for (unsigned i = 0; i < n_told; i++)
        if (told[i].kind == kind && told[i].line == r->line && told[i].other_line == r->other_line &&
            same_file(told[i].file, r->file) && same_file(told[i].other_file, r->other_file))
            return i + 1;
    if (n_told == TOLD_MAX)
        return 0;
    *fresh = 1;
    told[n_told] = (struct told){kind, r->file, r->other_file, r->line, r->other_line, 0};
    return ++n_told;
}

void finding_tell(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site, unsigned thread,
                  const char *format, ...)
{
    char text[480];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const int paused = traps_pause();
    simt_tls.reporting++;
    struct simt_report r = {.kind = event_name(kind), .text = text, .times = 1};
    resolve(site, &r.file, &r.line);
    resolve(other_site, &r.other_file, &r.other_line);
    int fresh;
    pthread_mutex_lock(&lock);
    const unsigned number = number_of(kind, &r, &fresh);
    pthread_mutex_unlock(&lock);
    struct finding_count *at = find(&c->findings, kind, site, other_site);
    if (at)
        at->number = (uint16_t)number;
    r.number = (int)number;
    if (fresh)
        report_send(&r, &c->worker->fiber[thread]);
    simt_tls.reporting--;
    traps_resume(paused);
}

void findings_begin_launch(void)
{
    n_told = 0;
}

void findings_clear(struct findings *f)
{
    if (f->n)
        memset(f, 0, sizeof *f);
}

void findings_add(const struct findings *f)
{
    for (unsigned i = 0; f->n && i < FINDINGS_MAX; i++)
        if (f->at[i].number)
            told[f->at[i].number - 1].times += f->at[i].times;
}

void findings_end_launch(void)
{
    for (unsigned i = 0; i < n_told; i++) {
        struct simt_report r = {.kind = event_name(told[i].kind),
                                .text = "",
                                .file = told[i].file,
                                .line = told[i].line,
                                .other_file = told[i].other_file,
                                .other_line = told[i].other_line,
                                .number = (int)i + 1,
                                .times = told[i].times < INT32_MAX ? (int)told[i].times : INT32_MAX};
        if (r.times > 1)
            report_send(&r, NULL);
    }
}
