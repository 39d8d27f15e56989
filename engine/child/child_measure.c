/* What is asked of a debuggee on a GPU beside runs: what its kernels take, and how long. */
#include "engine/child/child.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* 0, or what is wrong with the answer: the kernel failed in it, or its launches are not what they must be. */
static int take_launches(const struct child *c, const json_t *answer, struct trace_launches *launches, struct err *err)
{
    const size_t before = launches->n;
    const char *text = wire_text(answer, "text"), *wrong = launches_read(json_object_get(answer, "launches"), launches);
    if (*text)
        return err_set(err, ERR_RUN, "", "%s", text);
    if (wrong)
        return err_set(err, ERR_RUN, c->program, "the debuggee broke the protocol: %s of its launches", wrong);
    for (size_t i = before; i < launches->n; i++)
        launches->at[i].probes = PROBES_NONE;
    return 0;
}

int child_profile(struct child *c, struct trace *t, int counters, double limit_s,
                  const struct runner_progress *progress, struct err *err)
{
    char toolkit[600];
    json_t *answer;
    build_gpu_toolkit(toolkit, sizeof toolkit);
    const struct child_request request = {.kind = WIRE_PROFILE,
                                          .expected = WIRE_PROFILED,
                                          .fields =
                                              json_pack("{s:i, s:s}", "counters", counters != 0, "toolkit", toolkit),
                                          .fd = t->fd,
                                          .limit_s = limit_s,
                                          .what = "end while it was measured"};
    if (child_ask(c, &request, progress, &answer, err) != 0)
        return -1;
    const int failed = take_launches(c, answer, &t->info.launches, err);
    json_decref(answer);
    return failed;
}

static struct timing timing_of(const json_t *json)
{
    struct timing t = {wire_number(json, "median", NAN), wire_number(json, "min", NAN),
                       (int)wire_integer(json, "n", 0, 1000, 0)};
    if (!(t.min_s >= 0 && t.median_s >= t.min_s)) /* not measured, or no times at all */
        t = (struct timing){NAN, NAN, 0};
    return t;
}

int child_bench(struct child *c, struct trace *t, const struct bench_request *request, double limit_s,
                const struct runner_progress *progress, struct bench_result *out, struct err *err)
{
    json_t *answer;
    const struct child_request ask = {.kind = WIRE_BENCH,
                                      .expected = WIRE_TIMED,
                                      .fields = json_pack("{s:i, s:f, s:i}", "repeats", request->repeats, "seconds",
                                                          request->limit_s, "record", request->record),
                                      .fd = t->fd,
                                      .limit_s = limit_s,
                                      .what = "end while it was timed"};
    *out = (struct bench_result){.copy_bytes_per_second = NAN};
    if (child_ask(c, &ask, progress, &answer, err) != 0)
        return -1;
    const int failed = take_launches(c, answer, &out->launches, err);
    out->warm = timing_of(json_object_get(answer, "warm"));
    out->cold = timing_of(json_object_get(answer, "cold"));
    out->graph = timing_of(json_object_get(answer, "graph"));
    out->copy_bytes_per_second = wire_number(answer, "copy", NAN);
    snprintf(out->no_graph, sizeof out->no_graph, "%s", wire_text(answer, "no_graph"));
    json_decref(answer);
    if (failed)
        launches_free(&out->launches);
    return failed;
}
