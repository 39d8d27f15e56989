#include "engine/child/child.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/units.h"
#include "engine/build/process.h"
#include "engine/trace/conventions.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* For its hello: a process start, a CUDA context (0.2 s, seconds on a cold driver). Under ncu the first start on a
   machine took more than 30 s. */
#define HELLO_S 120.0
#define PLAN_S 30.0 /* sums */
#define QUIT_S 0.5

const struct child_hello *child_hello(const struct child *c)
{
    return &c->hello;
}

void child_set_memory(struct child *c, enum memory_kind kind, struct guardian *guardian)
{
    c->memory = kind;
    c->guardian = guardian;
}

bool child_alive(const struct child *c)
{
    return c && c->pid > 0;
}

int child_end(struct child *c, double wait_s)
{
    int status = -1;
    if (c->pid > 0) {
        status = c->status = process_end(c->pid, wait_s);
        leftovers_kill_marked(c->mark, 0);
    }
    c->pid = -1;
    return status;
}

void child_stop(struct child *c)
{
    if (!c)
        return;
    if (c->pid > 0) {
        wire_send(&c->wire, WIRE_QUIT, json_object(), -1, NULL);
        shutdown(c->wire.fd, SHUT_WR);
    }
    child_end(c, QUIT_S);
    wire_close(&c->wire);
    if (c->log_fd >= 0)
        close(c->log_fd);
    free(c);
}

void child_describe_end(int status, char *text, size_t size)
{
    if (status == -1)
        snprintf(text, size, "ended");
    else if (WIFSIGNALED(status))
        snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == WIRE_REFUSED)
        snprintf(text, size, "ran out of memory");
    else
        snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
}

/* A constructor or plan() prints before there is a run: its lines come first in that run's log. */
static void keep_early(struct child *c)
{
    const size_t used = strlen(c->early);
    if (used + c->n_log_line + 2 > sizeof c->early)
        return;
    memcpy(c->early + used, c->log_line, c->n_log_line);
    memcpy(c->early + used + c->n_log_line, "\n", 2);
}

static void give_line(struct child *c, const struct runner_progress *progress)
{
    c->log_line[c->n_log_line] = '\0';
    if (c->assertion.kind == EVENT_NONE)
        assertion_parse(c->log_line, &c->assertion);
    if (progress && progress->log)
        progress->log(progress->ctx, c->log_line);
    else if (!progress)
        keep_early(c);
    c->n_log_line = 0;
}

static void give_early(struct child *c, const struct runner_progress *progress)
{
    char *rest = NULL;
    for (char *line = strtok_r(c->early, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        progress->log(progress->ctx, line);
    c->early[0] = '\0';
}

/* Takes bytes over; past the limit they are counted alone, which is as fast as a kernel prints. */
static void take_log(struct child *c, const char *bytes, size_t n, const struct runner_progress *progress)
{
    const uint64_t before = c->log_bytes;
    c->log_bytes += n;
    if (before >= CHILD_LOG_BYTES)
        return;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n')
            c->log_line[c->n_log_line++] = bytes[i];
        if (bytes[i] == '\n' || c->n_log_line == sizeof c->log_line - 1)
            give_line(c, progress);
    }
}

static void give_end(struct child *c, const struct runner_progress *progress)
{
    if (c->n_log_line)
        give_line(c, progress);
    if (c->log_bytes > CHILD_LOG_BYTES && progress && progress->log) {
        char all[32], kept[32], line[128];
        units_bytes(c->log_bytes, all, sizeof all);
        units_bytes(CHILD_LOG_BYTES, kept, sizeof kept);
        snprintf(line, sizeof line, "attnscope: the kernel printed %s; the first %s are kept", all, kept);
        progress->log(progress->ctx, line);
    }
    c->log_bytes = 0;
}

void child_pass_log(struct child *c, const struct runner_progress *progress, bool at_end)
{
    char bytes[4096];
    if (progress && progress->log && c->early[0])
        give_early(c, progress);
    /* A bounded number of reads: a kernel that never stops printing must not keep the clock from being looked at. */
    for (int turns = 64; turns > 0 && c->log_fd >= 0; turns--) {
        ssize_t n = read(c->log_fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        if (n == 0) {
            close(c->log_fd);
            c->log_fd = -1;
            break;
        }
        take_log(c, bytes, (size_t)n, progress);
    }
    if (at_end)
        give_end(c, progress);
}

void child_end_descendants(struct child *c, const struct runner_progress *progress)
{
    const int n = leftovers_kill_marked(c->mark, c->pid);
    char line[96];
    if (!n || !progress || !progress->log)
        return;
    snprintf(line, sizeof line, "attnscope: the kernel left %d process%s running; %s killed", n, n == 1 ? "" : "es",
             n == 1 ? "it was" : "they were");
    progress->log(progress->ctx, line);
}

int child_wait(struct child *c, int wait_ms)
{
    struct pollfd fds[2] = {{.fd = c->wire.fd, .events = POLLIN}, {.fd = c->log_fd, .events = POLLIN}};
    int n = poll(fds, 2, wait_ms);
    return n < 0 && errno != EINTR ? -1 : 0;
}

/* Waits for one message; the child's end is ERR_RUN. */
static int await_message(struct child *c, const char *what, double limit_s, struct wire_message *message,
                         struct err *err)
{
    double until = clock_seconds() + limit_s;
    for (;;) {
        enum wire_got got;
        child_pass_log(c, NULL, false);
        if (wire_read(&c->wire, 0, &got, message, err)) {
            child_end(c, 0);
            return -1;
        }
        if (got == WIRE_MESSAGE)
            return 0;
        if (got == WIRE_END) {
            char end[128];
            child_describe_end(child_end(c, 1.0), end, sizeof end);
            child_pass_log(c, NULL, true);
            c->early[strcspn(c->early, "\n")] = '\0';
            return err_set(err, ERR_RUN, c->program, "the debuggee %s before it sent its %s%s%.500s", end, what,
                           c->early[0] ? "; it printed: " : "", c->early);
        }
        if (clock_seconds() > until) {
            child_end(c, 0);
            c->status = -1; /* the signal was ours */
            return err_set(err, ERR_RUN, c->program, "the debuggee did not send its %s within %g s", what, limit_s);
        }
        if (child_wait(c, 50))
            return err_errno(err, c->program, "waiting for the debuggee");
    }
}

static int read_hello(struct child_hello *hello, const json_t *json, struct err *err)
{
    const json_t *types = json_object_get(json, "channel_dtype"), *fields = json_object_get(json, "conventions");
    snprintf(hello->kernel, sizeof hello->kernel, "%s", wire_text(json, "kernel"));
    hello->backend = (enum backend)wire_word(json, "backend", backend_names, BACKEND_CPU);
    snprintf(hello->device, sizeof hello->device, "%s", wire_text(json, "device"));
    hello->dtypes = (uint32_t)wire_integer(json, "dtypes", 0, UINT32_MAX, 0);
    hello->k_dtypes = (uint32_t)wire_integer(json, "k_dtypes", 0, UINT32_MAX, 0);
    hello->v_dtypes = (uint32_t)wire_integer(json, "v_dtypes", 0, UINT32_MAX, 0);
    hello->checks = wire_integer(json, "checks", 0, 1, 0) != 0;
    hello->layouts = (uint32_t)wire_integer(json, "layouts", 0, UINT32_MAX, 0);
    hello->biases = (uint32_t)wire_integer(json, "biases", 0, UINT32_MAX, 0);
    hello->sequences = (uint32_t)wire_integer(json, "sequences", 0, UINT32_MAX, 0);
    hello->tensors = (uint32_t)wire_integer(json, "tensors", 0, UINT32_MAX, 0);
    hello->o_dtype = (int32_t)wire_integer(json, "o_dtype", -1, DTYPE_COUNT - 1, -1);
    for (size_t ch = 0; ch < ASC_CHANNELS; ch++) {
        const json_t *type = json_array_get(types, ch);
        json_int_t value = json_is_integer(type) ? json_integer_value(type) : -1;
        hello->channel_dtype[ch] = value >= 0 && value < DTYPE_COUNT ? (int32_t)value : -1;
    }
    for (int i = 0; i < CONVENTIONS; i++)
        convention_set(&hello->conventions, i, wire_number(fields, conventions[i].name, NAN));
    return conventions_check(&hello->conventions, hello->kernel, err);
}

static int greet(struct child *c, struct err *err)
{
    struct wire_message message;
    if (await_message(c, "hello", HELLO_S, &message, err))
        return -1;
    int failed = 0;
    c->hello.abi = (int)wire_integer(message.json, "abi", 0, INT32_MAX, -1);
    if (message.kind == WIRE_DECLINED)
        failed = err_set(err, ERR_RUN, "GPU", "%s", wire_text(message.json, "why"));
    else if (message.kind != WIRE_HELLO)
        failed =
            err_set(err, ERR_RUN, c->program, "the debuggee sent \"%s\", expected \"hello\"", wire_type(message.kind));
    else if (c->hello.abi != ASC_ABI_VERSION)
        failed = err_set(err, ERR_ABI, c->program,
                         "the kernel was built with an attnscope.h of ABI version %d, this attnscope has version %d: "
                         "copy its attnscope.h again",
                         c->hello.abi, ASC_ABI_VERSION);
    else
        failed = read_hello(&c->hello, message.json, err);
    json_decref(message.json);
    return failed;
}

static int launch(struct child *c, struct err *err)
{
    int pair[2], log[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_errno(err, "", "a socket for the debuggee");
    if (wire_open(&c->wire, pair[0], err)) {
        close(pair[1]);
        return -1;
    }
    if (pipe2(log, O_CLOEXEC)) {
        err_errno(err, "", "a pipe for the debuggee");
        close(pair[1]);
        return -1;
    }
    c->log_fd = log[0];
    leftovers_mark(c->mark);
    const char *argv[] = {c->program, NULL};
    const struct process_start start = {
        .argv = argv, .out_fd = log[1], .err_fd = log[1], .socket_fd = pair[1], .mark = c->mark};
    int failed = fcntl(log[0], F_SETFL, O_NONBLOCK) != 0 ? err_errno(err, "", "a pipe for the debuggee")
                                                         : process_start(&start, &c->pid, err);
    if (failed)
        c->pid = -1;
    close(log[1]);
    close(pair[1]);
    return failed;
}

#define NO_LOADER 127 /* exit status of the dynamic loader where it cannot load a program */

int child_start(const char *program, struct child **out, bool *damaged, struct err *err)
{
    *out = NULL;
    if (damaged)
        *damaged = false;
    struct child *c = calloc(1, sizeof *c);
    if (!c)
        return err_no_memory(err, "", "a child");
    c->pid = c->status = -1;
    c->memory = MEMORY_PINNED;
    c->log_fd = c->wire.fd = c->wire.received = -1;
    snprintf(c->program, sizeof c->program, "%s", program);
    const bool started = launch(c, err) == 0;
    if (!started || greet(c, err)) {
        /* It is alive where it said something wrong, or nothing in time. */
        if (damaged && c->pid < 0)
            *damaged = !started || (c->status != -1 && (WIFSIGNALED(c->status) || WEXITSTATUS(c->status) == NO_LOADER));
        child_end(c, 0);
        child_stop(c);
        return -1;
    }
    *out = c;
    return 0;
}

static json_t *problem_json(const struct asc_problem *p)
{
    json_t *json = json_object();
#define PROBLEM_INTEGER(name) json_object_set_new(json, #name, json_integer(p->name));
#define PROBLEM_REAL(name) json_object_set_new(json, #name, json_real((double)p->name));
#define PROBLEM_TEXT(name) json_object_set_new(json, #name, json_string(p->name));
#include "engine/base/fields.def"
#undef PROBLEM_INTEGER
#undef PROBLEM_REAL
#undef PROBLEM_TEXT
    return json;
}

int child_load(struct child *c, const struct asc_problem *p, struct asc_plan *plan, struct err *err)
{
    *plan = (struct asc_plan){0};
    if (!child_alive(c))
        return err_set(err, ERR_RUN, "", "the debuggee has exited");
    int id = ++c->last_id;
    json_t *fields = json_pack("{s:i, s:o}", "id", id, "problem", problem_json(p));
    if (wire_send(&c->wire, WIRE_LOAD, fields, -1, err)) {
        child_end(c, 0);
        return -1;
    }
    struct wire_message message;
    for (;;) {
        if (await_message(c, "plan", PLAN_S, &message, err))
            return -1;
        if (wire_integer(message.json, "id", 1, INT32_MAX, 0) == id)
            break;
        json_decref(message.json); /* of an earlier request */
    }
    int failed = 0;
    if (message.kind == WIRE_DECLINED) {
        const char *why = wire_text(message.json, "why");
        const size_t n = strlen(c->hello.kernel); /* a kernel may say its name itself */
        if (strncmp(why, c->hello.kernel, n) == 0 && strncmp(why + n, ": ", 2) == 0)
            why += n + 2;
        failed = err_set(err, ERR_DECLINED, c->hello.kernel, "%s", why);
    } else {
        plan->br = (int32_t)wire_integer(message.json, "br", 1, 1024, 0);
        plan->bc = (int32_t)wire_integer(message.json, "bc", 1, 1024, 0);
        plan->threads = (int32_t)wire_integer(message.json, "threads", 1, 1024, 0);
        plan->kv_splits = (int32_t)wire_integer(message.json, "kv_splits", 0, ASC_SPLITS_MAX, 0);
        plan->kv_deal = (int32_t)wire_integer(message.json, "kv_deal", ASC_DEAL_RANGES, ASC_DEAL_MAP, 0);
        plan->workspace_bytes =
            (uint64_t)wire_integer(message.json, "workspace_bytes", 0, (long long)ASC_WORKSPACE_MAX, 0);
        plan->error_limit = (float)wire_number(message.json, "error_limit", 0);
        plan->l_lanes = c->hello.conventions.l_lanes;
        if (message.kind != WIRE_PLAN || !plan->br || !plan->bc || !plan->threads) {
            child_end(c, 0);
            failed = err_set(err, ERR_RUN, c->program, "the debuggee did not answer with a plan");
        }
        /* The CPU executor takes it from this machine's memory, and marks all of it as never written. */
        if (!failed && c->hello.backend == BACKEND_CPU)
            failed = memory_check(plan->workspace_bytes, c->hello.kernel, "set by workspace_bytes in its plan", err);
    }
    json_decref(message.json);
    return failed;
}

/* ":12: " in [line, end): where the file's name ends. */
static const char *find_number(const char *line, const char *end)
{
    for (const char *c = line; c + 2 < end; c++) {
        if (*c != ':' || !isdigit((unsigned char)c[1]))
            continue;
        const char *digit = c + 1;
        while (digit < end && isdigit((unsigned char)*digit))
            digit++;
        if (digit < end && *digit == ':')
            return c;
    }
    return NULL;
}

bool assertion_parse(const char *line, struct trace_event *event)
{
    static const char said[] = " Assertion `", failed[] = "failed";
    unsigned block[3], thread[3];
    const char *place = strstr(line, ": block: ["), *begin = place ? strstr(place, said) : NULL;
    if (!begin || sscanf(place, ": block: [%u,%u,%u], thread: [%u,%u,%u]", &block[0], &block[1], &block[2], &thread[0],
                         &thread[1], &thread[2]) != 6)
        return false;
    begin += sizeof said - 1;
    const char *colon = find_number(line, place), *end = NULL;
    for (const char *at = begin; (at = strstr(at, failed)); at++)
        end = at;
    while (end && end > begin && strchr(" `'", end[-1]))
        end--;
    if (!colon || !end)
        return false;
    trace_event_init(event);
    event->kind = EVENT_ASSERT;
    event->line = (int)strtol(colon + 1, NULL, 10);
    snprintf(event->file, sizeof event->file, "%.*s", (int)(colon - line), line);
    snprintf(event->text, sizeof event->text, "assertion `%.*s` failed in block (%u,%u,%u), thread (%u,%u,%u)",
             (int)(end - begin < 300 ? end - begin : 300), begin, block[0], block[1], block[2], thread[0], thread[1],
             thread[2]);
    return true;
}
