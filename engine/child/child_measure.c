/* What is asked of a debuggee on a GPU beside runs: what its kernels take, and how long. */
#include "engine/child/child.h"

#include "engine/base/clock.h"
#include "engine/build/process.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct child_request {
    enum wire_kind kind, expected;
    json_t *fields; /* taken over */
    int fd;
    double limit_s;
    const char *what;
};

/* Looks through what has arrived; 1: *message is the answer. -1: there will be none, *err. */
static int find_answer(struct child *c, const struct child_request *request, int id, struct wire_message *message,
                       struct err *err)
{
    for (;;) {
        enum wire_got got;
        if (wire_read(&c->wire, 0, &got, message, err)) {
            child_end(c, 0);
            return -1;
        }
        if (got == WIRE_NOTHING)
            return 0;
        if (got == WIRE_END) {
            char end[128];
            child_describe_end(child_end(c, 1.0), end, sizeof end);
            return err_set(err, ERR_RUN, "", "the debuggee %s while it was to %s", end, request->what);
        }
        if ((message->kind == request->expected || message->kind == WIRE_DECLINED) &&
            wire_integer(message->json, "id", 1, INT32_MAX, 0) == id)
            return 1;
        json_decref(message->json);
    }
}

static int await_answer(struct child *c, const struct child_request *request, int id,
                        const struct runner_progress *progress, struct wire_message *message, struct err *err)
{
    const double until = clock_seconds() + request->limit_s;
    for (;;) {
        child_pass_log(c, progress, false);
        const int found = find_answer(c, request, id, message, err);
        if (found)
            return found < 0 ? -1 : 0;
        if (process_cancelled(progress)) {
            child_end(c, 0);
            return err_set(err, ERR_CANCELLED, "", "cancelled");
        }
        if (clock_seconds() > until) {
            child_end(c, 0);
            return err_set(err, ERR_RUN, "", "the kernel did not %s within %g s", request->what, request->limit_s);
        }
        if (child_wait(c, 50)) {
            child_end(c, 0);
            return err_errno(err, "", "waiting for the debuggee");
        }
    }
}

/* Sends a request with its id and a copy of fd, and waits for its answer of kind `expected`: *answer is the caller's.
   ERR_DECLINED in the debuggee's words; ERR_RUN and ERR_CANCELLED: the child is gone. `what` it was to do stands in the
   text. Messages of other kinds are dropped. */
static int child_ask(struct child *c, const struct child_request *request, const struct runner_progress *progress,
                     json_t **answer, struct err *err)
{
    struct wire_message message;
    *answer = NULL;
    if (!child_alive(c)) {
        json_decref(request->fields);
        return err_set(err, ERR_RUN, "", "the debuggee has exited");
    }
    const int id = ++c->last_id;
    if (request->fields)
        json_object_set_new(request->fields, "id", json_integer(id));
    if (wire_send(&c->wire, request->kind, request->fields, request->fd, err)) {
        child_end(c, 0);
        return -1;
    }
    if (await_answer(c, request, id, progress, &message, err))
        return -1;
    child_pass_log(c, progress, true);
    if (message.kind == WIRE_DECLINED) {
        err_set(err, ERR_DECLINED, c->hello.kernel, "%s", wire_text(message.json, "why"));
        json_decref(message.json);
        return -1;
    }
    *answer = message.json;
    return 0;
}

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

int child_profile(struct child *c, struct trace *t, bool counters, double limit_s,
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
    /* The guardian's is device memory like any other, and nothing is read from it here. */
    const enum memory_kind memory = c->memory == MEMORY_GUARD ? MEMORY_DEVICE : c->memory;
    const struct child_request ask = {.kind = WIRE_BENCH,
                                      .expected = WIRE_TIMED,
                                      .fields = json_pack("{s:i, s:f, s:i, s:s}", "repeats", request->repeats,
                                                          "seconds", request->limit_s, "record", request->record,
                                                          "memory", memory_names[memory]),
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
