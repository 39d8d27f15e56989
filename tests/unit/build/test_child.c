/* A debuggee from start to end: tests/runners/behave.cu, which can do wrong on request, and shell scripts that play
   debuggees of another kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/build/process.h"
#include "engine/build/runner.h"
#include "engine/child/child.h"
#include "engine/child/stamps.h"
#include "engine/trace/live.h"
#include "tests/unit/lib/temporary.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* enum behavior of behave.cu */
enum { FINE = 1, NULL_POINTER, ASSERT, ENDLESS, DIVERGED, PRINTS, NAN_MADE, SAYS_NO, EXITS, DEADLOCK, SLOW };

#define KERNEL "tests/runners/behave.cu"
#define HEADS 2
#define Q_LEN 19 /* 3 q tiles of 8, the last with 3 rows */
#define KV_LEN 21
#define D 16

static struct build kernel;

/* What a run said, and what is done when it says it. */
struct listener {
    struct runner_progress progress;
    atomic_int cancel;
    char log[4096];
    double done, total;
    pid_t kill_at_line; /* 0: nobody */
    int cancel_at_line;
};

static void on_log(void *ctx, const char *line)
{
    struct listener *l = ctx;
    size_t used = strlen(l->log);
    snprintf(l->log + used, sizeof l->log - used, "%s\n", line);
    if (l->kill_at_line)
        kill(l->kill_at_line, SIGKILL);
    if (l->cancel_at_line)
        atomic_store(&l->cancel, 1);
}

static void on_report(void *ctx, enum runner_step step, double done, double total)
{
    struct listener *l = ctx;
    assert_int_equal(step, STEP_RUNNING);
    l->done = done;
    l->total = total;
}

static void listen_to(struct listener *l)
{
    *l = (struct listener){.progress = {.report = on_report, .log = on_log, .ctx = l}};
    l->progress.cancel = &l->cancel;
}

static int setup(void **state)
{
    (void)state;
    struct runner_paths paths;
    struct err err = {0};
    const struct build_request request = {.kernel = KERNEL, .probes = PROBES_RECORD};
    if (runner_find_paths(&paths, &err) || build_debuggee(&paths, &request, NULL, &kernel, &err)) {
        print_message("%s: %s\n", err.where, err.message);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    build_free(&kernel);
    return 0;
}

static struct asc_problem problem(int behavior)
{
    return (struct asc_problem){.batch = 1,
                                .heads = HEADS,
                                .kv_heads = HEADS,
                                .q_len = Q_LEN,
                                .kv_len = KV_LEN,
                                .head_dim = D,
                                .head_dim_v = D,
                                .layout = ASC_BHLD,
                                .dtype = DTYPE_F32,
                                .k_dtype = DTYPE_F32,
                                .v_dtype = DTYPE_F32,
                                .window_left = -1,
                                .window_right = -1,
                                .scale = (float)behavior};
}

static struct child *start(void)
{
    struct child *c = NULL;
    struct err err = {0};
    if (child_start(kernel.program, &c, NULL, &err))
        fail_msg("%s: %s", err.where, err.message);
    assert_true(child_alive(c));
    return c;
}

/* A live trace for a run that behaves so, with all q tiles and small integers as inputs. */
static struct trace *make_trace(struct child *c, int behavior)
{
    static float q[HEADS * Q_LEN * D], k[HEADS * KV_LEN * D], v[HEADS * KV_LEN * D];
    struct asc_problem p = problem(behavior);
    struct asc_plan plan;
    struct err err = {0};
    struct trace *t = NULL;
    struct layout_types types = {.o = DTYPE_F32};
    int32_t slots[HEADS * 3][3];
    for (size_t i = 0; i < sizeof q / sizeof *q; i++)
        dtype_store(DTYPE_F32, q, i, (double)(i % 3));
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        dtype_store(DTYPE_F32, k, i, (double)(i % 5) / 8);
        dtype_store(DTYPE_F32, v, i, (double)(i % 7));
    }
    for (int i = 0; i < HEADS * 3; i++) {
        slots[i][0] = 0;
        slots[i][1] = i / 3;
        slots[i][2] = i % 3;
    }
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = ch == asc_s ? DTYPE_F32 : ch == asc_o ? DTYPE_F32 : -1;
    if (child_load(c, &p, &plan, &err) || trace_create(&p, &plan, &child_hello(c)->conventions, &types,
                                                       (const int32_t(*)[3])slots, HEADS * 3, q, k, v, &t, &err))
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(plan.br, 8);
    assert_int_equal(plan.bc, 8);
    assert_int_equal(plan.threads, 8);
    snprintf(t->info.source_name, sizeof t->info.source_name, "%s", KERNEL);
    t->info.n_sites = kernel.n_sites;
    t->info.sites = calloc(kernel.n_sites, sizeof *kernel.sites);
    assert_non_null(t->info.sites);
    memcpy(t->info.sites, kernel.sites, kernel.n_sites * sizeof *kernel.sites);
    return t;
}

/* The line of behave.cu with this comment. */
static int line_of(const char *comment)
{
    int line = 1;
    const char *at = strstr(kernel.source, comment);
    assert_non_null(at);
    for (const char *c = kernel.source; c < at; c++)
        line += *c == '\n';
    return line;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("`%s` lacks `%s`", text, part);
}

static double s_of(const struct trace *t, int slot, int kv, int row, int col)
{
    struct tile tile = trace_tile(t, asc_s, slot, kv);
    return dtype_load(tile.dtype, tile.data, (size_t)row * tile.cols + col);
}

/* What the first q tile of each head recorded, in every outcome. */
static void first_tiles_are_there(const struct trace *t)
{
    double want = 0;
    for (int d = 0; d < D; d++)
        want += (double)((D + d) % 3) * ((double)((2 * D + d) % 5) / 8);
    assert_true(s_of(t, 0, 0, 1, 2) == want);
    assert_true(trace_first_stamp(t, asc_s, 0, 2) > trace_last_stamp(t, asc_s, 0, 1) - 1);
}

/* A fed trace that is not laid out as the live one, and a build that does not feed: no launch, and words that say so.
 */
static void test_feeding_is_refused(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        struct child *c = start();
        struct trace *t = make_trace(c, FINE), *fed = make_trace(c, FINE);
        struct err err = {0};
        if (!same) {
            uint32_t other = ASC_ABI_VERSION + 1;
            assert_int_equal(pwrite(fed->fd, &other, sizeof other, offsetof(struct live_header, abi)), sizeof other);
        }
        t->fed = fed;
        t->fed_channels = 1u << asc_s;
        assert_int_equal(child_run(c, t, 10, NULL, &err), -1);
        assert_int_equal(err.code, ERR_RUN);
        has(err.message, same ? "could not be bound" : "ABI version");
        assert_int_equal(trace_first_stamp(t, asc_s, 0, 0), 0);
        trace_free(t);
        child_stop(c);
    }
}

static void test_hello(void **state)
{
    (void)state;
    struct child *c = start();
    const struct child_hello *hello = child_hello(c);
    assert_string_equal(hello->kernel, "behave");
    assert_int_equal(hello->backend, BACKEND_CPU);
    assert_int_equal(hello->abi, ASC_ABI_VERSION);
    assert_int_equal(hello->dtypes, 1u << DTYPE_F32);
    assert_int_equal(hello->layouts, ASC_SUPPORTS(BHLD));
    assert_int_equal(hello->o_dtype, -1);
    assert_int_equal(hello->channel_dtype[asc_s], -1);
    assert_int_equal(hello->conventions.s_unit, ASC_UNIT_RAW);
    assert_int_equal(hello->conventions.m_unit, 2);
    child_stop(c);
    child_stop(NULL);
}

static void test_two_runs_in_one_child(void **state)
{
    (void)state;
    struct child *c = start();
    pid_t pid = c->pid;
    for (int i = 0; i < 2; i++) {
        struct listener l;
        struct err err = {0};
        struct trace *t = make_trace(c, FINE);
        listen_to(&l);
        if (child_run(c, t, 20, &l.progress, &err))
            fail_msg("%s: %s", err.where, err.message);
        assert_int_equal(t->info.status, RUN_COMPLETE);
        assert_int_equal(t->info.stopped, EVENT_NONE);
        assert_string_equal(t->info.kernel, "behave");
        assert_int_equal(t->info.backend, BACKEND_CPU);
        assert_true(t->info.seconds > 0);
        assert_true(t->info.workers > 0);
        assert_int_equal(t->info.n_events, 0);
        assert_true(l.total == 6 && l.done == 6);
        first_tiles_are_there(t);
        enum dtype type;
        const void *o = trace_tensor(t, 'o', &type);
        for (size_t e = 0; e < (size_t)HEADS * Q_LEN * D; e++) {
            double value = dtype_load(type, o, e);
            assert_true(value > 0 && value < 6); /* a mean of 0..6; NaN fails */
        }
        assert_int_equal(trace_dropped(t, asc_s), 0);
        trace_free(t);
        assert_true(child_alive(c));
        assert_int_equal(c->pid, pid);
    }
    child_stop(c);
}

static void test_declines(void **state)
{
    (void)state;
    struct child *c = start();
    struct asc_plan plan;
    struct err err = {0};
    struct asc_problem p = problem(FINE);
    p.head_dim = p.head_dim_v = 32;
    assert_int_equal(child_load(c, &p, &plan, &err), -1);
    assert_int_equal(err.code, ERR_DECLINED);
    assert_string_equal(err.where, "behave");
    assert_string_equal(err.message, "head_dim must be at most 16");
    p = problem(FINE);
    p.dtype = p.k_dtype = p.v_dtype = DTYPE_BF16;
    assert_int_equal(child_load(c, &p, &plan, &err), -1);
    assert_int_equal(err.code, ERR_DECLINED);
    assert_string_equal(err.message, "behave takes f32, not bf16");
    p = problem(FINE);
    p.layout = ASC_BLHD;
    assert_int_equal(child_load(c, &p, &plan, &err), -1);
    assert_string_equal(err.message, "behave accepts the layout BHLD, not BLHD");
    p = problem(FINE);
    p.head_dim = p.head_dim_v = 13;
    assert_int_equal(child_load(c, &p, &plan, &err), -1);
    assert_int_equal(err.code, ERR_DECLINED);
    has(err.message, "5000 threads");
    p.head_dim = p.head_dim_v = 12;
    assert_int_equal(child_load(c, &p, &plan, &err), -1);
    assert_int_equal(err.code, ERR_DECLINED);
    has(err.message, "an error limit of nan");
    p.head_dim = p.head_dim_v = 11;
    assert_int_equal(child_load(c, &p, &plan, &err), 0);
    assert_true(plan.error_limit == 0.25f);
    p = problem(FINE);
    assert_int_equal(child_load(c, &p, &plan, &err), 0); /* it is not the worse for it */
    child_stop(c);
}

/* Runs to a bad end: status, code, what the message has. Returns the trace. */
static struct trace *run_badly(int behavior, double limit_s, struct listener *l, enum run_status status,
                               enum err_code code, const char *part, struct err *err)
{
    struct child *c = start();
    struct trace *t = make_trace(c, behavior);
    pid_t pid = c->pid;
    if (l->kill_at_line)
        l->kill_at_line = pid;
    *err = (struct err){0};
    assert_int_equal(child_run(c, t, limit_s, &l->progress, err), -1);
    assert_int_equal(t->info.status, status);
    has(err->message, part);
    assert_int_equal(err->code, code);
    char what[sizeof t->info.status_text];
    snprintf(what, sizeof what, "%.*s", (int)strcspn(t->info.status_text, "\n"), t->info.status_text);
    has(err->message, what);
    assert_false(child_alive(c));
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1); /* reaped */
    assert_int_equal(errno, ECHILD);
    struct asc_plan plan;
    struct asc_problem p = problem(FINE);
    assert_int_equal(child_load(c, &p, &plan, NULL), -1);
    assert_int_equal(child_run(c, t, 1, NULL, NULL), -1);
    child_stop(c);
    return t;
}

static void at_line(const struct trace *t, const struct err *err, enum event_kind kind, const char *comment)
{
    char where[300];
    snprintf(where, sizeof where, "%s:%d", KERNEL, line_of(comment));
    assert_string_equal(err->where, where);
    assert_int_equal(t->info.stopped, kind);
    const struct trace_event *found = t->info.events, *end = found + t->info.n_events;
    while (found < end && (found->kind != kind || strcmp(found->file, KERNEL) != 0 || found->line != line_of(comment)))
        found++;
    assert_true(found < end);
    assert_int_equal(found->stack.n, 2);
    assert_string_equal(found->stack.at[0].function, "misbehave");
    snprintf(where, sizeof where, "; called at %s:%d", KERNEL, line_of("call"));
    has(err->message, where);
}

static void test_null_pointer(void **state)
{
    (void)state;
    struct listener l;
    struct err err;
    listen_to(&l);
    struct trace *t = run_badly(NULL_POINTER, 20, &l, RUN_CRASHED, ERR_RUN, "null pointer", &err);
    at_line(t, &err, EVENT_ADDRESS, "here: null pointer");
    has(err.message, "last probe: S at batch 0, head ");
    has(err.message, "q tile 1, kv tile 1 (" KERNEL ":");
    first_tiles_are_there(t);
    struct last_stamp last[HEADS * 3];
    assert_true(runner_last_stamps(t, last) >= 2);
    assert_int_equal(last[0].finished, 1);
    assert_int_equal(last[0].channel, asc_o);
    assert_int_equal(last[1].finished, 0);
    assert_int_equal(last[1].channel, asc_s);
    assert_int_equal(last[1].kv, 1);
    trace_free(t);
}

static void test_assert(void **state)
{
    (void)state;
    struct listener l;
    struct err err;
    listen_to(&l);
    struct trace *t = run_badly(ASSERT, 20, &l, RUN_CRASHED, ERR_RUN, "assert(row != 3)", &err);
    at_line(t, &err, EVENT_ASSERT, "here: assert");
    trace_free(t);
}

static void test_time_limit(void **state)
{
    (void)state;
    struct listener l;
    struct err err;
    listen_to(&l);
    struct trace *t = run_badly(ENDLESS, 0.5, &l, RUN_HUNG, ERR_RUN,
                                "did not finish within 0.5 s of the last block that did (scenario.limit); ", &err);
    assert_int_equal(t->info.stopped, EVENT_LIMIT);
    first_tiles_are_there(t);
    trace_free(t);
}

/* Two blocks of 1.2 s each, one after the other: together they take longer than the limit, each for itself does not. */
static void test_slow_is_not_hung(void **state)
{
    (void)state;
    struct child *c = start();
    struct trace *t = make_trace(c, SLOW);
    struct err err = {0};
    t->info.workers = 1;
    if (child_run(c, t, 2, NULL, &err))
        fail_msg("%s", err.message);
    assert_true(t->info.seconds > 2);
    child_stop(c);
    trace_free(t);
}

static void test_cancel(void **state)
{
    (void)state;
    struct listener l;
    struct err err;
    listen_to(&l);
    l.cancel_at_line = 1;
    struct trace *t = run_badly(PRINTS, 20, &l, RUN_CANCELLED, ERR_CANCELLED, "cancelled; last probe", &err);
    assert_int_equal(t->info.stopped, EVENT_NONE);
    has(l.log, "spinning\n");
    first_tiles_are_there(t);
    trace_free(t);
}

static void test_killed(void **state)
{
    (void)state;
    struct listener l;
    struct err err;
    listen_to(&l);
    l.kill_at_line = 1;
    struct trace *t = run_badly(PRINTS, 20, &l, RUN_CRASHED, ERR_RUN, "signal 9 (Killed); last probe: S", &err);
    first_tiles_are_there(t);
    trace_free(t);
}

static void test_exits(void **state)
{
    (void)state;
    struct listener l;
    struct err err;
    listen_to(&l);
    struct trace *t = run_badly(EXITS, 20, &l, RUN_CRASHED, ERR_RUN, "exited with status 7", &err);
    assert_int_equal(t->info.stopped, EVENT_CRASH);
    trace_free(t);
}

static void test_deadlock(void **state)
{
    (void)state;
    struct listener l;
    struct err err;
    listen_to(&l);
    struct trace *t = run_badly(DEADLOCK, 20, &l, RUN_HUNG, ERR_RUN, "; last probe: S at batch 0", &err);
    at_line(t, &err, EVENT_DEADLOCK, "here: deadlock");
    has(err.message, "\nthreads 0..3 wait in __syncthreads at behave.cu:");
    first_tiles_are_there(t);
    trace_free(t);
}

static void test_launch_says_no(void **state)
{
    (void)state;
    struct listener l;
    struct err err;
    listen_to(&l);
    struct trace *t =
        run_badly(SAYS_NO, 20, &l, RUN_CRASHED, ERR_RUN, "this one is never launched; no probe fired", &err);
    assert_int_equal(t->info.stopped, EVENT_LAUNCH);
    trace_free(t);
}

/* Runs to a good end, with an event at the line that has one of the comments. */
static void run_with_event(int behavior, enum event_kind kind, const char *comment, const char *other, const char *part)
{
    struct listener l;
    struct err err = {0};
    struct child *c = start();
    struct trace *t = make_trace(c, behavior);
    listen_to(&l);
    assert_int_equal(child_run(c, t, 20, &l.progress, &err), 0);
    assert_int_equal(t->info.status, RUN_COMPLETE);
    assert_true(child_alive(c));
    int found = 0;
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *event = &t->info.events[i];
        int there = event->line == line_of(comment) || event->line == line_of(other);
        if (event->kind == kind && there && strcmp(event->file, KERNEL) == 0) {
            has(event->text, part);
            found = 1;
        }
    }
    if (!found)
        fail_msg("no event \"%s\" at the line of \"%s\" among %zu; first: %s", event_name(kind), comment,
                 t->info.n_events, t->info.n_events ? t->info.events[0].file : "");
    trace_free(t);
    child_stop(c);
}

static void test_nan_is_an_event(void **state)
{
    (void)state;
    run_with_event(NAN_MADE, EVENT_FP_DIVIDE, "here: not a number", "here: not a number", "thread (2,0,0)");
}

static void test_diverged_barrier_is_an_event(void **state)
{
    (void)state;
    run_with_event(DIVERGED, EVENT_BARRIER, "here: one barrier", "here: other barrier", "block (1,");
}

/* A shell script in the place of a debuggee; what child_start says of it. */
static void play(const char *script, enum err_code code, const char *part)
{
    char path[TEMPORARY];
    struct child *c = NULL;
    struct err err = {0};
    int fd = mkstemp(temporary(path, "child"));
    assert_true(fd >= 0);
    dprintf(fd, "#!/bin/sh\n%s\n", script);
    fchmod(fd, 0700);
    close(fd);
    assert_int_equal(child_start(path, &c, NULL, &err), -1);
    unlink(path);
    assert_null(c);
    has(err.message, part);
    assert_int_equal(err.code, code);
}

static void test_strangers(void **state)
{
    (void)state;
    play("echo '{\"type\":\"hello\",\"abi\":99,\"kernel\":\"x\"}' >&3; read x <&3", ERR_ABI, "version 99");
    play("echo '{\"type\":\"hello\"}' >&3; read x <&3", ERR_ABI, "version -1");
    play("echo 'good morning' >&3; read x <&3", ERR_RUN, "not a JSON object");
    play("echo '{\"type\":\"plan\"}' >&3; read x <&3", ERR_RUN, "expected \"hello\"");
    play("exit 5", ERR_RUN, "exited with status 5 before it sent its hello");
    play("kill -9 $$", ERR_RUN, "signal 9");
    play("head -c 40000 /dev/zero | tr '\\0' x >&3; read x <&3", ERR_RUN, "longer than");
    struct child *c = NULL;
    struct err err = {0};
    assert_int_equal(child_start("/nonexistent/debuggee", &c, NULL, &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    has(err.message, "No such file");
}

static void test_no_orphan_and_no_fd_left(void **state)
{
    (void)state;
    int before = 0, after = 0;
    for (int turn = 0; turn < 2; turn++) {
        int n = 0;
        DIR *d = opendir("/proc/self/fd");
        assert_non_null(d);
        while (readdir(d))
            n++;
        closedir(d);
        if (turn) {
            after = n;
            break;
        }
        before = n;
        struct child *c = start();
        pid_t pid = c->pid;
        struct trace *t = make_trace(c, FINE);
        assert_int_equal(child_run(c, t, 20, NULL, NULL), 0);
        trace_free(t);
        child_stop(c);
        assert_int_equal(kill(pid, 0), -1);
    }
    assert_int_equal(before, after);
    /* The end of the socket alone ends a debuggee, in the middle of a kernel too. */
    struct child *c = start();
    struct trace *t = make_trace(c, ENDLESS);
    assert_int_equal(wire_send(&c->wire, WIRE_RUN, json_pack("{s:i, s:i}", "id", 2, "workers", 2), t->fd, NULL), 0);
    shutdown(c->wire.fd, SHUT_RDWR);
    int status = 0;
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    assert_true(WIFEXITED(status));
    c->pid = -1;
    trace_free(t);
    child_stop(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_feeding_is_refused),
        cmocka_unit_test(test_two_runs_in_one_child),
        cmocka_unit_test(test_declines),
        cmocka_unit_test(test_null_pointer),
        cmocka_unit_test(test_assert),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_slow_is_not_hung),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_deadlock),
        cmocka_unit_test(test_launch_says_no),
        cmocka_unit_test(test_nan_is_an_event),
        cmocka_unit_test(test_diverged_barrier_is_an_event),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_no_orphan_and_no_fd_left),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
