#include "engine/base/clock.h"
#include "engine/build/process.h"
#include "engine/child/child.h"
#include "engine/child/guardian.h"
#include "engine/child/stamps.h"
#include "engine/trace/event.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define WHERE_S 1.5        /* for a kernel that hangs to say where */
#define EVENTS_MAX 1000u   /* a kernel with a trap on every line has fewer */
#define CANCEL_GRACE_S 0.2 /* a block of the mission shape takes milliseconds */
#define CRASH_WAIT_S 2.0   /* between the end of the socket and that of the process */

enum outcome {
    OUTCOME_NONE,
    OUTCOME_COMPLETE,
    OUTCOME_FAILED,
    OUTCOME_GONE,
    OUTCOME_HUNG,
    OUTCOME_CANCELLED,
    OUTCOME_BROKEN
};

struct run {
    struct child *c;
    struct trace *t;
    const struct runner_progress *progress;
    int id;
    enum outcome outcome;
    double done, total; /* blocks; 0: nothing was said of them */
    double began_at;
    double advanced_at;                         /* when one came to its end, or the run began */
    char text[512];                             /* the child's own sentence with its result */
    enum event_kind stopped;                    /* and what it says ended the launch */
    size_t fatal;                               /* 1 + index of the fatal event; 0: none */
    bool stood;                                 /* it has said where its threads stand */
    int counted[EVENTS_MAX];                    /* the child's numbers of the events; 0: not counted */
    int before[EVENTS_MAX];                     /* how often they were in earlier launches */
    struct err broke;                           /* OUTCOME_BROKEN */
    char handle[2 * GUARDIAN_HANDLE_BYTES + 1]; /* of the guardian's room, in hex; "": none */
};

static bool ends_in(const char *path, const char *tail)
{
    const size_t n = strlen(path), n_tail = strlen(tail);
    return n_tail && n >= n_tail && strcmp(path + n - n_tail, tail) == 0 &&
           (n == n_tail || path[n - n_tail - 1] == '/');
}

/* A file of the debugger's line tables as the user names it: they hold absolute names, or some that begin with "./" in
   the folder that attnscope is run in. A patched copy may stand there under its own: clang 14 does not apply
   -ffile-prefix-map to __builtin_FILE(). */
static void name_file(const struct trace *t, const char *file, char *out, size_t size)
{
    const char *user = t->info.source_name;
    while (strncmp(user, "./", 2) == 0)
        user += 2;
    while (strncmp(file, "./", 2) == 0)
        file += 2;
    if (ends_in(file, user) || ends_in(user, file) || ends_in(t->info.compiled_path, file)) {
        snprintf(out, size, "%s", t->info.source_name);
        return;
    }
    snprintf(out, size, "%s", runner_short_path(file));
}

/* The same of a path within a sentence. */
static void name_files(const struct trace *t, const char *said, char *out, size_t size)
{
    const char *from = t->info.compiled_path, *at = from[0] ? strstr(said, from) : NULL;
    size_t used = 0;
    for (; at && used < size; said = at + strlen(from), at = strstr(said, from))
        used += (size_t)snprintf(out + used, size - used, "%.*s%s", (int)(at - said), said, t->info.source_name);
    if (used < size)
        snprintf(out + used, size - used, "%s", said);
}

/* Lines of "line TAB function TAB file", the last of which may have been cut. */
static void take_stack(const struct trace *t, const char *lines, struct trace_stack *stack)
{
    stack->n = 0;
    for (const char *end; stack->n < TRACE_FRAMES && (end = strchr(lines, '\n')); lines = end + 1) {
        struct trace_frame *frame = &stack->at[stack->n];
        char *rest, file[600];
        const long line = strtol(lines, &rest, 10);
        const char *tab = *rest == '\t' ? memchr(rest + 1, '\t', (size_t)(end - rest - 1)) : NULL;
        if (line <= 0 || line > INT32_MAX || !tab)
            break;
        snprintf(frame->function, sizeof frame->function, "%.*s", (int)(tab - rest - 1), rest + 1);
        snprintf(file, sizeof file, "%.*s", (int)(end - tab - 1), tab + 1);
        name_file(t, file, frame->file, sizeof frame->file);
        frame->line = (int)line;
        stack->n++;
    }
    if (stack->n < 2)
        stack->n = 0;
}

/* Adds words to the first line: a listing may follow. */
__attribute__((format(printf, 3, 4))) static void add_words(char *text, size_t size, const char *format, ...)
{
    char *words = NULL, *rest = strdup(text + strcspn(text, "\n"));
    va_list args;
    va_start(args, format);
    if (!rest || vasprintf(&words, format, args) < 0)
        words = NULL;
    va_end(args);
    if (words) {
        const size_t first = strcspn(text, "\n");
        snprintf(text + first, size - first, "%s%s", words, rest);
    }
    free(words);
    free(rest);
}

static void place_text(const json_t *json, const char *key, char *out, size_t size)
{
    const json_t *place = json_object_get(json, key);
    snprintf(out, size, "%s (%lld,%lld,%lld)", key, (long long)json_integer_value(json_array_get(place, 0)),
             (long long)json_integer_value(json_array_get(place, 1)),
             (long long)json_integer_value(json_array_get(place, 2)));
}

/* Room for one more event; NULL: there is none. One beyond so many is a note less; without memory it may be the one
   that counts, and the run is not followed any more. */
static struct trace_event *add_event(struct run *run)
{
    struct trace_info *info = &run->t->info;
    if (info->n_events >= EVENTS_MAX)
        return NULL;
    struct trace_event *events = realloc(info->events, (info->n_events + 1) * sizeof *events);
    if (!events) {
        err_no_memory(&run->broke, "", "an event");
        run->outcome = OUTCOME_BROKEN;
        return NULL;
    }
    info->events = events;
    trace_event_init(&events[info->n_events]);
    return &events[info->n_events++];
}

static int sum_of(int a, int b)
{
    return a < INT32_MAX - b ? a + b : INT32_MAX;
}

/* Whether it is the last word on an event that has been told. */
static bool take_last(const struct run *run, int number, const json_t *json)
{
    size_t i = 0;
    while (i < run->t->info.n_events && !(number && run->counted[i] == number))
        i++;
    if (i == run->t->info.n_events)
        return false;
    struct trace_event *event = &run->t->info.events[i];
    const int line = (int)wire_integer(json, "recorder_line", 1, INT32_MAX, 0);
    event->times = sum_of(run->before[i], (int)wire_integer(json, "times", 1, INT32_MAX, 1));
    if (line > 0) {
        event->recorder_line = line;
        name_file(run->t, wire_text(json, "recorder_file"), event->recorder_file, sizeof event->recorder_file);
    }
    return true;
}

/* The last event is one that an earlier launch has reported, at the same lines: it is that one, more often. */
static void join_earlier(struct run *run, int number)
{
    struct trace_info *info = &run->t->info;
    const struct trace_event *last = &info->events[info->n_events - 1];
    for (size_t i = 0; i + 1 < info->n_events; i++) {
        struct trace_event *e = &info->events[i];
        if (!run->counted[i] || e->kind != last->kind || e->line != last->line || e->other_line != last->other_line ||
            strcmp(e->file, last->file) != 0 || strcmp(e->other_file, last->other_file) != 0 ||
            memcmp(&e->stack, &last->stack, sizeof e->stack) != 0 ||
            memcmp(&e->other_stack, &last->other_stack, sizeof e->other_stack) != 0)
            continue;
        run->before[i] = e->times;
        e->times = sum_of(e->times, last->times);
        run->counted[i] = number;
        info->n_events--;
        return;
    }
}

static void take_event(struct run *run, const json_t *json)
{
    struct trace_info *info = &run->t->info;
    const enum event_kind kind = event_from_name(wire_text(json, "kind"));
    const int number = (int)wire_integer(json, "number", 1, INT32_MAX, 0);
    if (take_last(run, number, json))
        return;
    if (kind == EVENT_NONE) {
        err_set(&run->broke, ERR_RUN, "", "it sent an event of an unknown kind");
        run->outcome = OUTCOME_BROKEN;
        return;
    }
    struct trace_event *event = add_event(run);
    if (!event)
        return;
    run->counted[info->n_events - 1] = number;
    event->times = (int)wire_integer(json, "times", 1, INT32_MAX, 1);
    event->batch = (int)wire_integer(json, "batch", 0, INT32_MAX, -1);
    event->head = (int)wire_integer(json, "head", 0, INT32_MAX, -1);
    event->q_tile = (int)wire_integer(json, "q_tile", 0, INT32_MAX, -1);
    event->kv_tile = (int)wire_integer(json, "kv_tile", 0, INT32_MAX, -1);
    name_file(run->t, wire_text(json, "other_file"), event->other_file, sizeof event->other_file);
    event->other_line = (int)wire_integer(json, "other_line", 1, INT32_MAX, 0);
    event->kind = kind;
    name_files(run->t, wire_text(json, "text"), event->text, sizeof event->text);
    take_stack(run->t, wire_text(json, "stack"), &event->stack);
    take_stack(run->t, wire_text(json, "other_stack"), &event->other_stack);
    name_file(run->t, wire_text(json, "file"), event->file, sizeof event->file);
    event->line = (int)wire_integer(json, "line", 1, INT32_MAX, 0);
    const bool in_block =
        event->kind != EVENT_LAUNCH && event->kind != EVENT_SHARED_MEMORY && event->kind != EVENT_SYSTEM;
    if (in_block && !strstr(event->text, "block (") && json_object_get(json, "block")) {
        char block[80], thread[80];
        place_text(json, "block", block, sizeof block);
        place_text(json, "thread", thread, sizeof thread);
        add_words(event->text, sizeof event->text, " in %s, %s", block, thread);
    }
    if (wire_integer(json, "fatal", 0, 1, 0) && !run->fatal)
        run->fatal = info->n_events;
    else if (number)
        join_earlier(run, number);
}

/* What a result says of the kernels that were launched. */
static int take_launches(struct run *run, const json_t *json)
{
    struct trace_launches *launches = &run->t->info.launches;
    const char *wrong = launches_read(json_object_get(json, "launches"), launches);
    for (size_t i = 0; i < launches->n; i++)
        launches->at[i].probes = run->t->fed ? PROBES_FEED : PROBES_RECORD;
    if (wrong == launches_no_memory)
        return err_no_memory(&run->broke, "", "its launches");
    return wrong ? err_set(&run->broke, ERR_RUN, "", "%s of its launches", wrong) : 0;
}

static void take_result(struct run *run, const json_t *json)
{
    if (wire_integer(json, "id", 1, INT32_MAX, 0) != run->id)
        return;
    run->t->info.seconds = fmin(fmax(wire_number(json, "seconds", 0), 0), clock_seconds() - run->began_at);
    run->t->info.workers = (int)wire_integer(json, "workers", 0, INT32_MAX, 0);
    snprintf(run->text, sizeof run->text, "%s", wire_text(json, "text"));
    run->stopped = event_from_name(wire_text(json, "stopped"));
    static const enum outcome outcomes[] = {
        [LAUNCH_FAILED] = OUTCOME_FAILED, [LAUNCH_COMPLETE] = OUTCOME_COMPLETE, [LAUNCH_CANCELLED] = OUTCOME_CANCELLED};
    run->outcome = outcomes[wire_word(json, "status", launch_end_names, LAUNCH_FAILED)];
    if (take_launches(run, json) != 0)
        run->outcome = OUTCOME_BROKEN;
}

static void take_progress(struct run *run, double done, double total)
{
    if (done != run->done) /* a second launch begins anew */
        run->advanced_at = clock_seconds();
    run->done = done;
    run->total = total;
    runner_report(run->progress, STEP_RUNNING, done, total);
}

static void take_message(struct run *run, const struct wire_message *message)
{
    if (message->kind == WIRE_EVENT)
        take_event(run, message->json);
    else if (message->kind == WIRE_RESULT)
        take_result(run, message->json);
    else if (message->kind == WIRE_STOOD)
        run->stood = true;
    else if (message->kind == WIRE_PROGRESS)
        take_progress(run, wire_number(message->json, "done", 0), wire_number(message->json, "total", 0));
}

/* Takes over all that has arrived. */
static void take_messages(struct run *run)
{
    while (run->outcome == OUTCOME_NONE) {
        struct wire_message message;
        enum wire_got got;
        if (wire_read(&run->c->wire, 0, &got, &message, &run->broke)) {
            run->outcome = OUTCOME_BROKEN;
        } else if (got == WIRE_END) {
            run->outcome = OUTCOME_GONE;
        } else if (got == WIRE_MESSAGE) {
            take_message(run, &message);
            json_decref(message.json);
        } else {
            return;
        }
    }
}

/* It did not end in time: where its threads stand, as far as it answers; and what became of it. */
static enum outcome ask_where(struct run *run)
{
    const double until = clock_seconds() + WHERE_S;
    run->stood = wire_send(&run->c->wire, WIRE_WHERE, json_object(), -1, NULL) != 0;
    while (!run->stood && run->outcome == OUTCOME_NONE && clock_seconds() < until) {
        if (child_wait(run->c, 20))
            break;
        take_messages(run);
    }
    return run->outcome == OUTCOME_NONE ? OUTCOME_HUNG : run->outcome;
}

/* A run whose blocks come to their end is slow, or the machine is: it ends by itself. */
static void wait_for_outcome(struct run *run, double limit_s)
{
    double cancel_until = 0;
    while (run->outcome == OUTCOME_NONE) {
        child_pass_log(run->c, run->progress, false);
        take_messages(run);
        if (run->outcome != OUTCOME_NONE)
            break;
        double now = clock_seconds();
        if (cancel_until == 0 && process_cancelled(run->progress)) {
            wire_send(&run->c->wire, WIRE_CANCEL, json_object(), -1, NULL);
            cancel_until = now + CANCEL_GRACE_S;
        }
        if (cancel_until > 0 && now > cancel_until)
            run->outcome = OUTCOME_CANCELLED;
        else if (now > run->advanced_at + limit_s)
            run->outcome = ask_where(run);
        else if (child_wait(run->c, cancel_until > 0 ? 5 : 50)) {
            err_errno(&run->broke, "", "waiting for the debuggee");
            run->outcome = OUTCOME_BROKEN;
        }
    }
}

static const struct trace_event *fatal_event(const struct run *run)
{
    const struct trace_info *info = &run->t->info;
    return run->fatal && info->events ? &info->events[run->fatal - 1] : NULL;
}

/* Whether it was the system that failed, or the executor that lacks something, and nothing follows for the kernel. */
static bool refused(const struct run *run)
{
    const struct trace_event *fatal = fatal_event(run);
    if (fatal && fatal->kind == EVENT_GPU_ONLY)
        return true;
    if (run->outcome == OUTCOME_BROKEN)
        return run->broke.code == ERR_SYSTEM;
    return run->outcome == OUTCOME_FAILED && (fatal ? fatal->kind : run->stopped) == EVENT_SYSTEM;
}

/* What happened, in one clause; where: the file and line it happened at, if known. */
static void describe(struct run *run, int status, double limit_s, char *what, size_t size, char *where, size_t n_where)
{
    const struct trace_event *fatal = fatal_event(run);
    const struct trace_frame *call = fatal && fatal->stack.n ? &fatal->stack.at[fatal->stack.n - 1] : NULL;
    char end[128];
    where[0] = '\0';
    if (fatal && fatal->line > 0 && (run->outcome == OUTCOME_FAILED || run->outcome == OUTCOME_GONE))
        snprintf(where, n_where, "%s:%d", fatal->file, fatal->line);
    switch (run->outcome) {
    case OUTCOME_HUNG:
        snprintf(what, size, "the kernel did not finish within %g s%s (scenario.limit)", limit_s,
                 run->done > 0 ? " of the last block that did" : "");
        if (run->total > 0)
            snprintf(what + strlen(what), size - strlen(what), "; %.0f of %.0f blocks had finished", run->done,
                     run->total);
        break;
    case OUTCOME_CANCELLED:
        snprintf(what, size, "cancelled");
        break;
    case OUTCOME_BROKEN:
        snprintf(what, size, "%s: %.300s",
                 refused(run) ? "the run could not be followed" : "the debuggee broke the protocol",
                 run->broke.message);
        break;
    case OUTCOME_FAILED:
        snprintf(what, size, "%s", fatal ? fatal->text : run->text[0] ? run->text : "the launch failed");
        break;
    default:
        child_describe_end(status, end, sizeof end);
        if (fatal)
            snprintf(what, size, "%s%.400s", refused(run) ? "" : "the kernel crashed: ", fatal->text);
        else
            snprintf(what, size, "the kernel crashed: its process %s", end);
        break;
    }
    if (call && where[0])
        add_words(what, size, "; called at %s:%d", call->file, call->line);
}

static enum run_status status_of(const struct run *run)
{
    if (refused(run))
        return RUN_REFUSED;
    if (run->outcome == OUTCOME_CANCELLED)
        return RUN_CANCELLED;
    if (run->outcome == OUTCOME_HUNG)
        return RUN_HUNG;
    const struct trace_event *fatal = fatal_event(run);
    if (fatal && fatal->kind == EVENT_DEADLOCK)
        return RUN_HUNG; /* the executor sees that nothing can go on, before any time limit */
    return RUN_CRASHED;
}

/* Which kind of event that was, also where none was sent. */
static enum event_kind stopped_by(const struct run *run)
{
    const struct trace_event *fatal = fatal_event(run);
    if (refused(run))
        return fatal && fatal->kind == EVENT_GPU_ONLY ? EVENT_GPU_ONLY : EVENT_SYSTEM;
    if (run->outcome == OUTCOME_CANCELLED || run->outcome == OUTCOME_BROKEN)
        return EVENT_NONE;
    if (run->outcome == OUTCOME_HUNG)
        return EVENT_LIMIT;
    if (fatal)
        return fatal->kind;
    if (run->outcome == OUTCOME_FAILED)
        return run->stopped != EVENT_NONE ? run->stopped : EVENT_LAUNCH;
    return EVENT_CRASH;
}

/* What stopped the kernel was an assert of its own: CUDA only says that there was one. */
static void take_assertion(struct run *run)
{
    struct trace_event *event = run->c->assertion.kind != EVENT_NONE ? add_event(run) : NULL;
    if (!event)
        return;
    *event = run->c->assertion;
    name_file(run->t, run->c->assertion.file, event->file, sizeof event->file);
    if (!run->fatal)
        run->fatal = run->t->info.n_events;
}

/* What is in the guardian's memory comes into the trace, however the run ended. */
static int take_values(const struct run *run, struct err *err)
{
    if (run->t->info.memory != MEMORY_GUARD)
        return 0;
    const int failed = guardian_bring(run->c->guardian, run->t, err);
    run->t->values_later = run->t->values_later && failed;
    return failed;
}

static void tell_warps(void *ctx, const struct warps_stand *warps)
{
    struct run *run = ctx;
    struct trace_event *event = add_event(run);
    if (!event)
        return;
    const struct trace_site *site = warps->last.clock ? trace_site(run->t, warps->last.channel) : NULL;
    const int32_t *place = trace_slot_place(run->t, warps->slot);
    event->kind = EVENT_STANDS;
    event->times = 1;
    event->batch = place[0];
    event->head = place[1];
    event->q_tile = place[2];
    event->kv_tile = warps->last.kv;
    if (site) {
        snprintf(event->file, sizeof event->file, "%s", site->file);
        event->line = site->line;
    }
    runner_warps_words(run->t, warps, event->text, sizeof event->text);
}

/* Of a backend that does not know where its threads stand. */
static void tell_last_probes(struct run *run)
{
    for (size_t i = 0; i < run->t->info.n_events; i++)
        if (run->t->info.events[i].kind == EVENT_STANDS)
            return;
    runner_last_of_warps(run->t, tell_warps, run);
}

static int finish_badly(struct run *run, double limit_s, struct err *err)
{
    char what[1536], where[512], progress[512];
    struct trace_info *info = &run->t->info;
    int gone = run->outcome == OUTCOME_GONE;
    child_end_descendants(run->c, run->progress);
    int status = child_end(run->c, gone ? CRASH_WAIT_S : 0);
    child_pass_log(run->c, run->progress, true);
    struct err lost = {0};
    const bool ran = run->stopped != EVENT_LAUNCH && run->stopped != EVENT_SHARED_MEMORY;
    if (take_values(run, &lost) != 0 || (info->memory == MEMORY_DEVICE && ran))
        snprintf(info->memory_why, sizeof info->memory_why, "what was recorded is lost%s%s",
                 lost.message[0] ? ": " : "", lost.message);
    if (gone && status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == WIRE_REFUSED) {
        run->outcome = OUTCOME_BROKEN;
        err_no_memory(&run->broke, "", "the output of the kernel's process");
    }
    take_assertion(run);
    if (run->outcome == OUTCOME_HUNG)
        tell_last_probes(run);
    describe(run, status, limit_s, what, sizeof what, where, sizeof where);
    runner_describe_progress(run->t, progress, sizeof progress);
    info->status = (int32_t)status_of(run);
    snprintf(info->status_text, sizeof info->status_text, "%s", what);
    info->stopped = stopped_by(run);
    const enum err_code code = run->outcome == OUTCOME_CANCELLED ? ERR_CANCELLED : refused(run) ? ERR_SYSTEM : ERR_RUN;
    add_words(what, sizeof what, "; %s", progress);
    return err_set(err, code, where, "%s", what);
}

/* Decides where the probes write. -1: not where the scenario asks for. */
static int choose_memory(struct run *run, struct err *err)
{
    struct child *c = run->c;
    struct trace_info *info = &run->t->info;
    unsigned char handle[GUARDIAN_HANDLE_BYTES];
    struct err why = {0};
    info->memory = MEMORY_AUTO;
    info->memory_why[0] = '\0';
    if (c->hello.backend != BACKEND_GPU || run->t->layout.total_bytes == run->t->layout.values_offset)
        return 0;
    info->memory = c->memory;
    if (c->memory == MEMORY_PINNED || c->memory == MEMORY_DEVICE)
        return 0;
    if (c->guardian && guardian_take(c->guardian, run->t, handle, &why) == 0) {
        info->memory = MEMORY_GUARD;
        for (size_t i = 0; i < sizeof handle; i++)
            snprintf(run->handle + 2 * i, 3, "%02x", handle[i]);
        return 0;
    }
    if (c->memory == MEMORY_GUARD)
        return err_set(err, ERR_SYSTEM, "capture.memory", "guard cannot be had: %s", why.message);
    info->memory = MEMORY_PINNED;
    snprintf(info->memory_why, sizeof info->memory_why, "%s", why.message);
    return 0;
}

/* Values that are recorded in the trace itself, or may be lost with the process, are filled first. */
static int take_memory(struct run *run, struct err *err)
{
    if (choose_memory(run, err) != 0)
        return -1;
    return run->t->info.memory == MEMORY_GUARD ? 0 : trace_fill_values(run->t, err);
}

static int send_run(struct run *run)
{
    const struct trace *t = run->t;
    const struct wire *wire = &run->c->wire;
    if (t->fed && wire_send(wire, WIRE_FEED, json_pack("{s:I}", "channels", (json_int_t)t->fed_channels), t->fed->fd,
                            &run->broke))
        return -1;
    json_t *fields = json_pack("{s:i, s:i, s:s, s:s, s:s, s:s}", "id", run->id, "workers", t->info.workers,
                               "tensor_core", t->info.tensor_core, "lanes", t->info.lanes, "memory",
                               memory_names[t->info.memory ? t->info.memory : MEMORY_PINNED], "handle", run->handle);
    return wire_send(wire, WIRE_RUN, fields, t->fd, &run->broke);
}

int child_run(struct child *c, struct trace *t, double limit_s, const struct runner_progress *progress, struct err *err)
{
    struct trace_info *info = &t->info;
    struct run run = {.c = c, .t = t, .progress = progress};
    if (!child_alive(c))
        return err_set(err, ERR_RUN, "", "the debuggee has exited");
    snprintf(info->kernel, sizeof info->kernel, "%s", c->hello.kernel);
    info->backend = c->hello.backend;
    info->checked = c->hello.checks;
    free(info->events);
    info->events = NULL;
    info->n_events = 0;
    info->launches.n = 0;
    info->seconds = 0;
    info->status_text[0] = '\0';
    info->stopped = EVENT_NONE;
    runner_report(progress, STEP_RUNNING, 0, 0);
    c->assertion.kind = EVENT_NONE;
    run.id = ++c->last_id;
    if (take_memory(&run, err) != 0)
        return -1;
    run.began_at = run.advanced_at = clock_seconds(); /* a small one may have ended before send_run() returns */
    if (send_run(&run))
        run.outcome = errno == EPIPE || errno == ECONNRESET ? OUTCOME_GONE : OUTCOME_BROKEN;
    wait_for_outcome(&run, limit_s);
    if (run.outcome == OUTCOME_COMPLETE && take_values(&run, &run.broke) != 0)
        run.outcome = OUTCOME_BROKEN;
    if (run.outcome != OUTCOME_COMPLETE)
        return finish_badly(&run, limit_s, err);
    child_pass_log(c, progress, true);
    child_end_descendants(c, progress);
    info->status = RUN_COMPLETE;
    return 0;
}
