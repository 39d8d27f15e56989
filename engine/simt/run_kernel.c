#include "engine/base/clock.h"
#include "engine/child/debuggee/debuggee.h"
#include "engine/child/debuggee/say.h"
#include "engine/simt/allocated.h"
#include "engine/simt/arrays.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/report.h"
#include "engine/simt/simt.h"
#include "engine/trace/event.h"
#include "engine/trace/live.h"
#include "engine/trace/trace.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_S 0.05 /* at most 20 messages a second */

/* What the executor's callbacks see; set up before a launch, alive through it. */
struct listener {
    int socket;
    double last_progress;
    atomic_bool fatal; /* a fatal report was made */
};

static atomic_bool cancelled;

static int usable_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? n : 1;
}

enum backend debuggee_backend(void)
{
    return BACKEND_CPU;
}

bool debuggee_checked(void)
{
    return checks_wanted();
}

int debuggee_prepare(char *device, size_t size, char *why, size_t why_size)
{
    snprintf(device, size, "%s", "");
    snprintf(why, why_size, "%s", "");
    return 0;
}

int debuggee_rehearse(bool begin)
{
    return (int)simt_rehearse(begin);
}

void *debuggee_array_new(size_t bytes, const void *from)
{
    void *array = calloc(1, bytes); /* pages that nobody reads take no memory */
    if (array && from)
        memcpy(array, from, bytes);
    return array;
}

void debuggee_array_free(void *array)
{
    free(array);
}

void debuggee_where(void)
{
    simt_where();
}

void debuggee_arm(void)
{
    atomic_store(&cancelled, false);
}

void debuggee_cancel(void)
{
    atomic_store(&cancelled, true);
    simt_cancel();
}

/* What was called, where there is more than the kernel's body. */
static void say_stack(struct say *s, const char *key, const struct simt_stack *stack)
{
    char lines[2048], name[64];
    size_t used = 0;
    for (int i = 0; stack->n > 1 && i < stack->n && used < sizeof lines; i++) {
        locate_name(stack->at[i].function, name, sizeof name);
        used += (size_t)snprintf(lines + used, sizeof lines - used, "%d\t%s\t%s\n", stack->at[i].line, name,
                                 stack->at[i].file);
    }
    if (used)
        say_text(s, key, lines);
}

static void say_place(struct say *s, const struct simt_report *report)
{
    const struct {
        const char *key;
        int32_t value;
    } places[] = {
        {"batch", report->batch}, {"head", report->head}, {"q_tile", report->q_tile}, {"kv_tile", report->kv_tile}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i].value >= 0)
            say_integer(s, places[i].key, places[i].value);
    if (report->other_line) {
        say_integer(s, "other_line", report->other_line);
        say_text(s, "other_file", report->other_file);
    }
    if (report->recorder.file) {
        say_integer(s, "recorder_line", report->recorder.line);
        say_text(s, "recorder_file", report->recorder.file);
    }
    say_stack(s, "stack", &report->stack);
    say_stack(s, "other_stack", &report->other_stack);
}

/* From worker threads and signal handlers. */
static void on_report(void *ctx, const struct simt_report *report)
{
    struct listener *listener = ctx;
    struct say s;
    if (report->fatal)
        atomic_store(&listener->fatal, true);
    say_begin(&s, WIRE_EVENT);
    say_text(&s, "kind", event_name(report->kind));
    say_integer(&s, "line", report->line);
    say_triple(&s, "block", (const uint32_t[3]){report->block.x, report->block.y, report->block.z});
    say_triple(&s, "thread", (const uint32_t[3]){report->thread.x, report->thread.y, report->thread.z});
    say_integer(&s, "fatal", report->fatal);
    say_place(&s, report);
    if (report->number)
        say_integer(&s, "number", report->number);
    say_integer(&s, "times", report->times);
    say_text(&s, "file", report->file);
    say_text(&s, "text", report->text);
    say_end(&s, listener->socket);
}

static void on_progress(void *ctx, uint64_t blocks_done, uint64_t blocks)
{
    struct listener *listener = ctx;
    const double now = clock_seconds();
    if (blocks_done < blocks && now - listener->last_progress < PROGRESS_S)
        return;
    listener->last_progress = now;
    struct say s;
    say_begin(&s, WIRE_PROGRESS);
    say_integer(&s, "done", (int64_t)blocks_done);
    say_integer(&s, "total", (int64_t)blocks);
    say_end(&s, listener->socket);
}

/* Which of those that can run is next. */
static uint32_t lane_order(const char *asked)
{
    const char *lanes = asked[0] ? asked : getenv("ATTNSCOPE_LANES");
    if (lanes && strcmp(lanes, "descending") == 0)
        return SIMT_DESCENDING;
    if (lanes && strcmp(lanes, "lockstep") == 0)
        return SIMT_LOCKSTEP;
    if (lanes && strncmp(lanes, "shuffled:", 9) == 0)
        return SIMT_SHUFFLED + (uint32_t)strtoul(lanes + 9, NULL, 10) % (UINT32_MAX / 2);
    return SIMT_ASCENDING;
}

static void launch(const struct asc_kernel *kernel, const struct asc_problem *problem, const struct listener *listener,
                   struct launch_result *result)
{
    const double begin = clock_seconds();
    const char *failure = kernel->launch(problem, NULL);
    result->seconds = clock_seconds() - begin;
    if (!failure && atomic_load(&listener->fatal))
        failure = simt_error() ? simt_error() : "a launch failed";
    if (atomic_load(&cancelled)) {
        result->end = LAUNCH_CANCELLED;
    } else if (failure) {
        snprintf(result->text, sizeof result->text, "%s", failure);
    } else {
        result->end = LAUNCH_COMPLETE;
    }
}

/* The traces of a launch as they are mapped here. */
struct mappings {
    void *live, *fed; /* fed NULL: nothing is fed */
    size_t live_bytes, fed_bytes;
};

static int map_traces(const struct launch_request *request, struct asc_problem *problem, struct asc_plan *plan,
                      struct asc_device *device, struct mappings *m, struct err *err)
{
    *m = (struct mappings){0};
    int failed = trace_attach(request->fd, problem, plan, device, &m->live, &m->live_bytes, err);
    if (!failed && request->feed_fd >= 0)
        failed = live_feed(request->feed_fd, m->live, request->fed_channels, device, &m->fed, &m->fed_bytes, err);
    close(request->fd);
    if (request->feed_fd >= 0)
        close(request->feed_fd);
    return failed;
}

static void unmap_traces(const struct mappings *m)
{
    if (m->live)
        munmap(m->live, m->live_bytes);
    if (m->fed)
        munmap(m->fed, m->fed_bytes);
}

static void finish_arrays(struct arrays *arrays, int socket)
{
    const char *name;
    char allocation[64];
    arrays_publish(arrays);
    if (allocated_overrun(allocation, sizeof allocation))
        array_list_say_overrun(allocation, socket);
    if (arrays_overrun(arrays, &name))
        array_list_say_overrun(name, socket);
    arrays_free(arrays);
}

/* No thread of the kernel has run. */
static void say_refused(struct launch_result *result, const struct err *err)
{
    snprintf(result->text, sizeof result->text, "%.80s%s%.400s", err->where, err->where[0] ? ": " : "", err->message);
    result->stopped = err->code == ERR_SYSTEM ? EVENT_SYSTEM : EVENT_NONE;
}

void debuggee_launch(const struct asc_kernel *kernel, int socket, const struct launch_request *request,
                     struct launch_result *result)
{
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_device device;
    struct mappings mappings;
    struct err err = {0};
    *result = (struct launch_result){.workers = request->workers > 0 ? request->workers : usable_cores()};
    if (map_traces(request, &problem, &plan, &device, &mappings, &err) ||
        debuggee_deal(kernel, &problem, &plan, mappings.live, &err)) {
        say_refused(result, &err);
        unmap_traces(&mappings);
        return;
    }
    recorders_take_values(plan.value);
    struct arrays arrays;
    if (arrays_make(&arrays, kernel, &plan, &problem, &err) != 0) {
        say_refused(result, &err);
        unmap_traces(&mappings);
        return;
    }
    struct listener listener = {.socket = socket};
    const struct simt_options options = {.workers = result->workers,
                                         .fp_traps = true,
                                         .lane_order = lane_order(request->lanes),
                                         .report = on_report,
                                         .progress = on_progress,
                                         .ctx = &listener,
                                         .planned_threads = plan.threads,
                                         .tensor_core = request->tensor_core,
                                         .regions = arrays.region,
                                         .n_regions = ARRAYS};
    simt_configure(&options);
    if (asc_bind(&device))
        snprintf(result->text, sizeof result->text, "the probes could not be bound to the trace");
    else if (atomic_load(&cancelled))
        result->end = LAUNCH_CANCELLED;
    else
        launch(kernel, &problem, &listener, result);
    simt_configure(&(struct simt_options){.workers = result->workers});
    if (result->end == LAUNCH_COMPLETE)
        arrays_say_cache(&arrays, kernel, socket);
    finish_arrays(&arrays, socket);
    unmap_traces(&mappings);
}

/* What only a GPU can tell. */
static json_t *decline(const char *what, const struct launch_request *request, char *why, size_t size)
{
    close(request->fd);
    snprintf(why, size, "%s needs a GPU", what);
    return NULL;
}

json_t *debuggee_profile(const struct asc_kernel *kernel, const struct launch_request *request, const json_t *asked,
                         char *why, size_t size)
{
    (void)kernel;
    (void)asked;
    return decline("profile", request, why, size);
}

json_t *debuggee_bench(const struct asc_kernel *kernel, const struct launch_request *request, const json_t *asked,
                       char *why, size_t size)
{
    (void)kernel;
    (void)asked;
    return decline("bench", request, why, size);
}
