/* The answer to "profile": what each kernel takes and, where that is asked for, how long it runs and what the hardware
   counts meanwhile. */
#include "engine/base/wire.h"
#include "engine/child/debuggee/debuggee.h"
#include "engine/gpu/activity.h"
#include "engine/gpu/launches.h"
#include "engine/gpu/range_profiler.h"
#include "engine/gpu/run.h"
#include "engine/gpu/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMED_LAUNCHES 9 /* the median is taken; odd */

struct profiled {
    const struct asc_kernel *kernel;
    const struct run *run;
};

/* The launches of this replay alone are kept, so that they are those of the counters. */
static int launch_again(void *ctx, char *text, size_t size)
{
    const struct profiled *p = ctx;
    return run_once(p->kernel, p->run, NULL, text, size);
}

/* Each kernel's median over the repetitions, where every one of them shows in the records. */
static void take_times(const struct activity *activity)
{
    const size_t n = launches_count();
    if (activity->n != n * TIMED_LAUNCHES)
        return;
    for (size_t i = 0; i < n; i++) {
        double seconds[TIMED_LAUNCHES];
        for (size_t k = 0; k < TIMED_LAUNCHES; k++)
            seconds[k] = activity->seconds[k * n + i];
        launches_at(i)->facts.seconds = timing_summary(seconds, TIMED_LAUNCHES).median_s;
    }
}

/* -1: the kernel failed. That there are no records is no failure. */
static int time_kernels(const struct cupti *cupti, const struct profiled *p, char *text, size_t size)
{
    static struct activity activity;
    int failed = 0;
    if (activity_begin(cupti) != CUPTI_OK)
        return 0;
    const size_t n = launches_count();
    for (int i = 0; i < TIMED_LAUNCHES && !failed; i++)
        failed = run_once(p->kernel, p->run, NULL, text, size);
    if (activity_end(cupti, &activity) == CUPTI_OK && !failed) {
        launches_keep(n);
        take_times(&activity);
    }
    return failed;
}

/* A debuggee that has counted is a slower one: it is not used for anything else afterwards. */
static int measure(const struct profiled *p, const char *toolkit, char *text, size_t size, char *not_measured,
                   size_t not_measured_size)
{
    struct cupti cupti;
    struct err err = {0};
    if (cupti_load(toolkit, &cupti, &err) != 0) {
        snprintf(not_measured, not_measured_size, "%.200s", err.message);
        return 0;
    }
    const size_t n = launches_count();
    const int failed = time_kernels(&cupti, p, text, size);
    launches_keep(n);
    if (failed)
        return -1;
    const struct replayed replayed = {launch_again, (void *)(uintptr_t)p};
    range_profiler_measure(&cupti, &replayed, not_measured, not_measured_size);
    launches_keep(n);
    return 0;
}

json_t *debuggee_profile(const struct asc_kernel *kernel, const struct launch_request *request, const json_t *asked,
                         char *why, size_t size)
{
    struct run run = {0};
    struct err err = {0};
    char text[512] = "", not_measured[256] = "";
    launches_reset();
    if (run_prepare(&run, kernel, request, &err) != 0 || run_bind(&run, &err) != 0) {
        snprintf(why, size, "%.80s%s%.400s", err.where, *err.where ? ": " : "", err.message);
        run_finish(&run, request);
        return NULL;
    }
    const struct profiled profiled = {kernel, &run};
    int failed = run_once(kernel, &run, NULL, text, sizeof text);
    if (!failed) {
        launches_find_occupancy();
        if (launches_count() == 1)
            launches_at(0)->facts.seconds = timing_of_one(kernel, &run); /* until the device's own is known */
        if (wire_integer(asked, "counters", 0, 1, 0))
            failed =
                measure(&profiled, wire_text(asked, "toolkit"), text, sizeof text, not_measured, sizeof not_measured);
    }
    json_t *answer = json_pack("{s:o, s:o}", "text", debuggee_words(failed ? text : ""), "launches",
                               launches_describe(not_measured));
    run_finish(&run, request);
    if (!answer)
        snprintf(why, size, "out of memory for the answer");
    return answer;
}
