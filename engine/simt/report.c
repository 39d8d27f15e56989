#include "engine/simt/report.h"

#include "engine/simt/launch.h"
#include "engine/simt/traps.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SEEN_MAX 256

struct seen {
    enum event_kind kind;
    struct simt_frame at, call; /* borrowed: literals and debug information */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seen seen[SEEN_MAX]; /* under lock */
static unsigned n_seen;
static char error_text[4096]; /* "" : none */

void report_begin_launch(void)
{
    pthread_mutex_lock(&lock);
    n_seen = 0;
    error_text[0] = '\0';
    pthread_mutex_unlock(&lock);
}

const char *report_error(void)
{
    return error_text[0] ? error_text : NULL;
}

static void set_error(const char *text)
{
    if (!error_text[0])
        snprintf(error_text, sizeof error_text, "%s", text);
}

void report_set_error(const char *text)
{
    pthread_mutex_lock(&lock);
    set_error(text);
    pthread_mutex_unlock(&lock);
}

bool report_same_place(const struct simt_frame *a, const struct simt_frame *b)
{
    return a->line == b->line && (a->file == b->file || (a->file && b->file && !strcmp(a->file, b->file)));
}

static bool is_new(enum event_kind kind, const struct simt_stack *stack)
{
    const struct simt_frame at = stack->n ? stack->at[0] : (struct simt_frame){0}, call = locate_call(stack);
    for (unsigned i = 0; i < n_seen; i++)
        if (seen[i].kind == kind && report_same_place(&seen[i].at, &at) && report_same_place(&seen[i].call, &call))
            return false;
    if (n_seen == SEEN_MAX)
        return false;
    seen[n_seen++] = (struct seen){kind, at, call};
    return true;
}

static void print(const struct simt_report *r)
{
    fprintf(stderr, "%s:%d: %s: block (%u,%u,%u) thread (%u,%u,%u): %s\n", r->file ? r->file : "?", r->line,
            event_name(r->kind), r->block.x, r->block.y, r->block.z, r->thread.x, r->thread.y, r->thread.z, r->text);
}

/* Under lock. */
static void send(struct simt_report *r, const struct fiber *who)
{
    const struct simt_options *options = launch_options();
    if (simt_tls.worker)
        r->block = simt_tls.worker->block;
    r->batch = who ? who->batch : -1;
    r->head = who ? who->head : -1;
    r->q_tile = who ? who->q_tile : -1;
    r->kv_tile = who ? who->kv_tile : -1;
    if (who)
        r->thread = who->index;
    if (options->report)
        options->report(options->ctx, r);
    else
        print(r);
}

void report_send(struct simt_report *report, const struct fiber *who)
{
    pthread_mutex_lock(&lock);
    send(report, who);
    pthread_mutex_unlock(&lock);
}

static void find_stack(const char *file, int line, const struct fiber *who, struct simt_stack *stack)
{
    const struct fiber *self = simt_tls.self;
    const bool is_running = self && (!who || who == self);
    const struct locate where = {.pc = simt_tls.fault       ? simt_tls.fault
                                       : is_running || !who ? 0
                                                            : (uintptr_t)who->pc,
                                 .exact = simt_tls.fault != 0,
                                 .is_running = is_running,
                                 .file = file,
                                 .line = line,
                                 .body = who    ? (uintptr_t)who->body
                                         : self ? (uintptr_t)self->body
                                                : 0};
    stack->n = 0;
    if (simt_tls.locating) /* a wild jump can break the unwinder too: then the report has no line */
        return;
    simt_tls.locating = true;
    locate_stack(&where, stack);
    simt_tls.locating = false;
}

void report_raise(enum event_kind kind, bool fatal, const char *file, int line, const struct fiber *who,
                  const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    const int paused = traps_pause();
    struct simt_report r = {.kind = kind, .text = text, .fatal = fatal, .times = 1};
    find_stack(file, line, who, &r.stack);
    simt_tls.reporting++;
    pthread_mutex_lock(&lock);
    if (is_new(kind, &r.stack) || (fatal && !error_text[0])) {
        r.file = r.stack.n ? r.stack.at[0].file : file;
        r.line = r.stack.n ? r.stack.at[0].line : line;
        if (fatal)
            set_error(text);
        send(&r, who ? who : simt_tls.self);
    }
    pthread_mutex_unlock(&lock);
    simt_tls.reporting--;
    traps_resume(paused);
}
