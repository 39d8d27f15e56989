#include "engine/base/clock.h"
#include "engine/build/process.h"
#include "engine/child/child.h"

#include <stdio.h>

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
        child_pass_log(c, progress, 0);
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

int child_ask(struct child *c, const struct child_request *request, const struct runner_progress *progress,
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
    child_pass_log(c, progress, 1);
    if (message.kind == WIRE_DECLINED) {
        err_set(err, ERR_DECLINED, c->hello.kernel, "%s", wire_text(message.json, "why"));
        json_decref(message.json);
        return -1;
    }
    *answer = message.json;
    return 0;
}
