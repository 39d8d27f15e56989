#include "engine/child/guardian.h"

#include "engine/base/clock.h"
#include "engine/base/pass_fd.h"
#include "engine/build/process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_S 60.0 /* a context on a cold driver takes seconds, copying 100 GB to memory ten */
#define END_S 0.5

struct guardian {
    pid_t pid;  /* -1: it could not be started: failure */
    int socket; /* owned, or -1 */
    struct err failure;
};

_Static_assert((int)ASC_ALL_CHANNELS <= (int)GUARDIAN_PARTS, "a part for every channel");

static int start(struct guardian *g, const struct runner_paths *paths, int device, struct err *err)
{
    char program[600], ordinal[16];
    int pair[2];
    if (runner_find_built(paths, "attnscope-device", program, sizeof program, err) != 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return err_errno(err, "", "a socket for the guardian of device memory");
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(ordinal, sizeof ordinal, "%d", device);
    const char *argv[] = {program, "guard", ordinal, NULL};
    const int failed =
        nowhere < 0
            ? err_errno(err, "", "/dev/null")
            : process_start(
                  &(struct process_start){.argv = argv, .out_fd = nowhere, .err_fd = nowhere, .socket_fd = pair[1]},
                  &g->pid, err);
    if (nowhere >= 0)
        close(nowhere);
    close(pair[1]);
    g->socket = pair[0];
    return failed;
}

struct guardian *guardian_start(const struct runner_paths *paths, int device)
{
    struct guardian *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->pid = g->socket = -1;
    if (start(g, paths, device, &g->failure) != 0)
        g->pid = -1;
    return g;
}

bool guardian_alive(const struct guardian *g)
{
    return g && g->pid > 0;
}

void guardian_stop(struct guardian *g)
{
    if (!g)
        return;
    if (g->socket >= 0)
        close(g->socket);
    if (g->pid > 0)
        process_end(g->pid, END_S);
    free(g);
}

/* It is asked nothing more: an answer that is late would be taken for another one's. */
static int give_up(struct guardian *g, const struct err *err)
{
    process_end(g->pid, 0);
    g->pid = -1;
    g->failure = *err;
    return -1;
}

static int ask(struct guardian *g, const struct guardian_request *request, int fd, struct guardian_answer *answer,
               struct err *err)
{
    struct pollfd wait = {.fd = g->socket, .events = POLLIN};
    const double until = clock_seconds() + ANSWER_S;
    if (g->pid < 0) {
        *err = g->failure;
        return -1;
    }
    if (pass_fd_send(g->socket, request, sizeof *request, fd) != (ssize_t)sizeof *request) {
        err_errno(err, "", "the guardian of device memory does not listen");
        return give_up(g, err);
    }
    for (double left; (left = until - clock_seconds()) > 0;) {
        const int ready = poll(&wait, 1, (int)(left * 1e3) + 1);
        const ssize_t n = ready > 0 ? recv(g->socket, answer, sizeof *answer, 0) : 0;
        if (ready > 0 && n == (ssize_t)sizeof *answer) {
            answer->failure[sizeof answer->failure - 1] = '\0';
            return *answer->failure ? err_set(err, ERR_SYSTEM, "", "%s", answer->failure) : 0;
        }
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            err_set(err, ERR_SYSTEM, "", "the guardian of device memory has ended");
            return give_up(g, err);
        }
    }
    err_set(err, ERR_SYSTEM, "", "the guardian of device memory did not answer within %g s", ANSWER_S);
    return give_up(g, err);
}

int guardian_take(struct guardian *g, const struct trace *t, unsigned char handle[GUARDIAN_HANDLE_BYTES],
                  struct err *err)
{
    const struct layout *l = &t->layout;
    struct guardian_request request = {.op = GUARDIAN_TAKE, .begin = l->values_offset, .end = l->total_bytes};
    struct guardian_answer answer;
    request.beside = l->values_offset + t->plan.workspace_bytes;
    request.n_parts = (uint32_t)layout_unwritten(l, request.part);
    if (ask(g, &request, -1, &answer, err) != 0)
        return -1;
    memcpy(handle, answer.handle, sizeof answer.handle);
    return 0;
}

int guardian_copy(struct guardian *g, const struct values_piece *pieces, uint32_t n, int fd, struct err *err)
{
    struct guardian_request request = {.op = GUARDIAN_COPY, .n_parts = n};
    struct guardian_answer answer;
    memcpy(request.piece, pieces, n * sizeof *pieces);
    return ask(g, &request, fd, &answer, err);
}

int guardian_bring(struct guardian *g, const struct trace *t, struct err *err)
{
    const struct layout *l = &t->layout;
    const struct values_piece all = {0, l->values_offset, l->total_bytes - l->values_offset};
    return guardian_copy(g, &all, 1, t->fd, err);
}
