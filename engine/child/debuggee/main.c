/* main() of every debuggee: says hello, then loads and runs what attnscope asks for until it says quit or is gone. */
#include "engine/base/json_memory.h"
#include "engine/base/wire.h"
#include "engine/child/debuggee/debuggee.h"
#include "engine/child/debuggee/say.h"
#include "engine/trace/conventions.h"
#include "engine/trace/live.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET_FD 3 /* PROCESS_SOCKET_FD */

/* Requests, from the reader to main(): attnscope asks one thing at a time. */
struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct wire_message message; /* json NULL: empty */
    int fd;                      /* that came with it, or -1 */
    int feed_fd;                 /* of a fed trace for the next run, or -1 */
    uint32_t fed_channels;
    struct wire wire; /* read by the reader alone, written by main() alone */
};

static void deliver(struct inbox *inbox, const struct wire_message *message)
{
    if (message->kind == WIRE_RUN)
        debuggee_arm(); /* here, so that a cancel behind the run is not forgotten */
    pthread_mutex_lock(&inbox->lock);
    if (inbox->message.json) /* two requests at once: not attnscope */
        _exit(2);
    inbox->message = *message;
    inbox->fd = wire_take_fd(&inbox->wire);
    pthread_cond_signal(&inbox->filled);
    pthread_mutex_unlock(&inbox->lock);
}

static void keep_feed(struct inbox *inbox, const json_t *json)
{
    pthread_mutex_lock(&inbox->lock);
    if (inbox->feed_fd >= 0)
        close(inbox->feed_fd);
    inbox->feed_fd = wire_take_fd(&inbox->wire);
    inbox->fed_channels = (uint32_t)wire_integer(json, "channels", 0, UINT32_MAX, 0);
    pthread_mutex_unlock(&inbox->lock);
}

/* Listens while a kernel runs, however long: the end of attnscope is the end of the debuggee. (A parent-death signal
   would come at the end of the thread that started this process.) */
static void *read_requests(void *argument)
{
    struct inbox *inbox = argument;
    for (;;) {
        struct wire_message message;
        enum wire_got got;
        const int failed = wire_read(&inbox->wire, 1, &got, &message, NULL);
        say_check(failed);
        if (failed || got == WIRE_END)
            _exit(0);
        if (got == WIRE_MESSAGE && (message.kind == WIRE_LOAD || message.kind == WIRE_RUN ||
                                    message.kind == WIRE_PROFILE || message.kind == WIRE_BENCH)) {
            deliver(inbox, &message);
            continue;
        }
        if (got == WIRE_MESSAGE && message.kind == WIRE_QUIT)
            _exit(0);
        if (got == WIRE_MESSAGE && message.kind == WIRE_CANCEL)
            debuggee_cancel();
        if (got == WIRE_MESSAGE && message.kind == WIRE_WHERE) {
            debuggee_where();
            say_check(wire_send(&inbox->wire, WIRE_STOOD, json_object(), -1, NULL));
        }
        if (got == WIRE_MESSAGE && message.kind == WIRE_FEED)
            keep_feed(inbox, message.json);
        if (got == WIRE_MESSAGE)
            json_decref(message.json);
    }
    return NULL;
}

/* request: the fds that came with the message, now the caller's. */
static struct wire_message next_request(struct inbox *inbox, struct launch_request *request)
{
    pthread_mutex_lock(&inbox->lock);
    while (!inbox->message.json)
        pthread_cond_wait(&inbox->filled, &inbox->lock);
    struct wire_message message = inbox->message;
    *request = (struct launch_request){.fd = inbox->fd, .feed_fd = -1};
    if (message.kind == WIRE_RUN) {
        request->feed_fd = inbox->feed_fd;
        request->fed_channels = inbox->fed_channels;
        inbox->feed_fd = -1;
    }
    inbox->message.json = NULL;
    inbox->fd = -1;
    pthread_mutex_unlock(&inbox->lock);
    return message;
}

json_t *debuggee_words(const char *text)
{
    json_t *json = json_string(text);
    if (json)
        return json;
    char ascii[512];
    snprintf(ascii, sizeof ascii, "%s", text);
    for (char *c = ascii; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return json_string(ascii);
}

static int hello(const struct wire *wire, const struct asc_kernel *kernel, const char *device)
{
    json_t *types = json_array(), *fields = json_object();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        json_array_append_new(types, json_integer(kernel->channel_dtype[ch]));
    for (int i = 0; i < CONVENTIONS; i++)
        json_object_set_new(fields, conventions[i].name, json_real(convention_get(&kernel->conventions, i)));
    return wire_send(wire, WIRE_HELLO,
                     json_pack("{s:i, s:o, s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:o, s:o}", "abi",
                               (int)debuggee_abi(), "kernel", debuggee_words(kernel->name), "backend",
                               backend_names[debuggee_backend()], "checks", debuggee_checked(), "device",
                               debuggee_words(device), "dtypes", (json_int_t)kernel->dtypes, "k_dtypes",
                               (json_int_t)kernel->k_dtypes, "v_dtypes", (json_int_t)kernel->v_dtypes, "layouts",
                               (json_int_t)kernel->layouts, "biases", (json_int_t)kernel->biases, "sequences",
                               (json_int_t)kernel->sequences, "tensors", (json_int_t)kernel->tensors, "o_dtype",
                               (int)kernel->o_dtype, "channel_dtype", types, "conventions", fields),
                     -1, NULL);
}

static void answer_load(const struct wire *wire, const struct asc_kernel *kernel, const json_t *json, int id)
{
    const json_t *fields = json_object_get(json, "problem");
    struct asc_problem problem = {0};
#define PROBLEM_INTEGER(name) problem.name = (int32_t)wire_integer(fields, #name, INT32_MIN, INT32_MAX, -1);
#define PROBLEM_REAL(name) problem.name = (float)wire_number(fields, #name, 0);
#define PROBLEM_TEXT(name) snprintf(problem.name, sizeof problem.name, "%s", wire_text(fields, #name));
#include "engine/base/fields.def"
#undef PROBLEM_INTEGER
#undef PROBLEM_REAL
#undef PROBLEM_TEXT
    struct asc_plan plan;
    char why[512];
    if (debuggee_plan(kernel, &problem, &plan, why, sizeof why))
        say_check(
            wire_send(wire, WIRE_DECLINED, json_pack("{s:i, s:o}", "id", id, "why", debuggee_words(why)), -1, NULL));
    else
        say_check(wire_send(wire, WIRE_PLAN,
                            json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:f}", "id", id, "br", (int)plan.br, "bc",
                                      (int)plan.bc, "threads", (int)plan.threads, "kv_splits", (int)plan.kv_splits,
                                      "kv_deal", (int)plan.kv_deal, "workspace_bytes", (json_int_t)plan.workspace_bytes,
                                      "error_limit", (double)plan.error_limit),
                            -1, NULL));
}

/* Where the probes write. */
static void read_memory(const json_t *json, struct launch_request *request)
{
    const char *handle = wire_text(json, "handle");
    request->memory = (enum memory_kind)wire_word(json, "memory", memory_names, MEMORY_PINNED);
    for (size_t i = 0; i < sizeof request->handle && handle[2 * i] && handle[2 * i + 1]; i++) {
        const char digits[3] = {handle[2 * i], handle[2 * i + 1], '\0'};
        request->handle[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

static void answer_run(const struct wire *wire, const struct asc_kernel *kernel, const json_t *json, int id,
                       struct launch_request *request)
{
    struct launch_result result = {.text = "no live trace came with the request"};
    request->workers = (int)wire_integer(json, "workers", 0, 4096, 0);
    snprintf(request->tensor_core, sizeof request->tensor_core, "%s", wire_text(json, "tensor_core"));
    snprintf(request->lanes, sizeof request->lanes, "%s", wire_text(json, "lanes"));
    read_memory(json, request);
    if (request->fd >= 0)
        debuggee_launch(kernel, wire->fd, request, &result);
    else if (request->feed_fd >= 0)
        close(request->feed_fd);
    fflush(NULL); /* what the kernel printed comes before its result */
    say_check(wire_send(wire, WIRE_RESULT,
                        json_pack("{s:i, s:s, s:f, s:i, s:o, s:s, s:o}", "id", id, "status",
                                  launch_end_names[result.end], "seconds", result.seconds, "workers", result.workers,
                                  "text", debuggee_words(result.text), "stopped", event_name(result.stopped),
                                  "launches", result.launches ? result.launches : json_null()),
                        -1, NULL));
}

static void answer_measure(const struct wire *wire, const struct asc_kernel *kernel, const struct wire_message *message,
                           int id, struct launch_request *request)
{
    const bool profile = message->kind == WIRE_PROFILE;
    char why[512] = "no live trace came with the request";
    json_t *answer = NULL;
    read_memory(message->json, request);
    if (request->fd >= 0)
        answer = (profile ? debuggee_profile : debuggee_bench)(kernel, request, message->json, why, sizeof why);
    fflush(NULL); /* what the kernel printed comes first */
    if (answer) {
        json_object_set_new(answer, "id", json_integer(id));
        say_check(wire_send(wire, profile ? WIRE_PROFILED : WIRE_TIMED, answer, -1, NULL));
    } else {
        say_check(
            wire_send(wire, WIRE_DECLINED, json_pack("{s:i, s:o}", "id", id, "why", debuggee_words(why)), -1, NULL));
    }
}

/* From before the constructors of the kernel's own file on: one of them, or plan(), may never end. The first byte is
   nobody's to read before there is a reader, so nothing is read here. */
static void *watch_parent(void *argument)
{
    (void)argument;
    struct pollfd wire = {.fd = SOCKET_FD, .events = POLLRDHUP};
    while (poll(&wire, 1, -1) < 0 || !(wire.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)))
        ;
    _exit(0);
}

__attribute__((constructor(101))) static void start_watch(void)
{
    struct stat info;
    pthread_t watch;
    sigset_t all, before;
    if (fstat(SOCKET_FD, &info) || !S_ISSOCK(info.st_mode)) /* not started by attnscope: main() says so */
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_create(&watch, NULL, watch_parent, NULL) == 0)
        pthread_detach(watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int start_reader(struct inbox *inbox)
{
    pthread_t reader;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&reader, NULL, read_requests, inbox);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? -1 : pthread_detach(reader);
}

/* The builder asks the linker for this name, and for __wrap_main in the place of main: a kernel's own is never called.
 */
int debuggee_main(void);
int debuggee_main(void)
{
    static struct inbox inbox = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .fd = -1, .feed_fd = -1};
    struct asc_kernel kernel;
    char device[96], why[512];
    int type = 0;
    socklen_t n = sizeof type;
    if (getsockopt(SOCKET_FD, SOL_SOCKET, SO_TYPE, &type, &n) || wire_open(&inbox.wire, SOCKET_FD, NULL)) {
        fprintf(stderr, "%s: a debuggee of attnscope, which starts it: attnscope run KERNEL.cu\n",
                program_invocation_short_name);
        return 2;
    }
    json_memory_begin(WIRE_REFUSED);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* it would hold the whole trace; the trace is kept anyway */
    asc_kernel_defaults(&kernel);
    kernel.name = asc_kernel_name;
    asc_describe(&kernel);
    if (!kernel.name)
        kernel.name = asc_kernel_name;
    if (debuggee_prepare(device, sizeof device, why, sizeof why)) {
        say_check(wire_send(&inbox.wire, WIRE_DECLINED, json_pack("{s:i, s:o}", "id", 0, "why", debuggee_words(why)),
                            -1, NULL));
        return 1;
    }
    debuggee_host(&kernel);
    if (hello(&inbox.wire, &kernel, device) || start_reader(&inbox))
        return 1;
    for (;;) {
        struct launch_request request;
        struct wire_message message = next_request(&inbox, &request);
        int id = (int)wire_integer(message.json, "id", 1, INT32_MAX, 0);
        if (message.kind == WIRE_RUN) {
            answer_run(&inbox.wire, &kernel, message.json, id, &request);
        } else if (message.kind == WIRE_PROFILE || message.kind == WIRE_BENCH) {
            answer_measure(&inbox.wire, &kernel, &message, id, &request);
        } else {
            answer_load(&inbox.wire, &kernel, message.json, id);
            if (request.fd >= 0)
                close(request.fd);
        }
        json_decref(message.json);
    }
}

int __wrap_main(void); /* NOLINT(*-identifier): the linker's name */
int __wrap_main(void)  /* NOLINT(*-identifier) */
{
    return debuggee_main();
}
