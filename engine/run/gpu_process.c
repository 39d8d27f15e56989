#include "engine/run/gpu_process.h"

#include "engine/base/clock.h"
#include "engine/build/process.h"
#include "engine/judge/ask.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT_S 600.0 /* of a judge that hangs */
#define END_S 0.5

struct gpu_process {
    pid_t pid;  /* -1: it has ended, or could not be started: failure */
    int socket; /* owned, or -1 */
    bool there; /* device is known */
    struct judge_answer answer;
    struct err failure;
};

static int start(struct gpu_process *p, const char *program, struct err *err)
{
    const char *argv[] = {program, "serve", NULL};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return err_errno(err, "", "a socket for the judge");
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int failed =
        nowhere < 0
            ? err_errno(err, "", "/dev/null")
            : process_start(
                  &(struct process_start){.argv = argv, .out_fd = nowhere, .err_fd = nowhere, .socket_fd = pair[1]},
                  &p->pid, err);
    if (nowhere >= 0)
        close(nowhere);
    close(pair[1]);
    p->socket = pair[0];
    return failed;
}

struct gpu_process *gpu_process_start(const char *program)
{
    struct gpu_process *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->pid = p->socket = -1;
    if (start(p, program, &p->failure) != 0)
        p->pid = -1;
    return p;
}

bool gpu_process_alive(const struct gpu_process *p)
{
    return p->pid > 0;
}

void gpu_process_stop(struct gpu_process *p)
{
    if (!p)
        return;
    if (p->socket >= 0)
        close(p->socket);
    if (p->pid > 0)
        process_end(p->pid, END_S);
    free(p);
}

/* It is asked nothing more: an answer that is late would be taken for another one's. */
static int give_up(struct gpu_process *p, const struct err *err)
{
    if (p->pid > 0)
        process_end(p->pid, 0);
    p->pid = -1;
    p->failure = *err;
    return -1;
}

static int wait_for(struct gpu_process *p, const struct runner_progress *progress, struct err *err)
{
    enum { LOOK_MS = 50 };
    struct pollfd wait = {.fd = p->socket, .events = POLLIN};
    const double until = clock_seconds() + LIMIT_S;
    while (clock_seconds() < until) {
        const int ready = poll(&wait, 1, LOOK_MS);
        if (process_cancelled(progress)) {
            err_set(err, ERR_CANCELLED, "", "cancelled while judging");
            return give_up(p, err);
        }
        if (ready <= 0)
            continue;
        if (recv(p->socket, &p->answer, sizeof p->answer, 0) != (ssize_t)sizeof p->answer) {
            err_set(err, ERR_SYSTEM, "", "attnscope-judge ended early");
            return give_up(p, err);
        }
        p->answer.device[sizeof p->answer.device - 1] = p->answer.failure[sizeof p->answer.failure - 1] = '\0';
        if (!*p->answer.failure)
            return 0;
        err_set(err, ERR_SYSTEM, "", "%s", p->answer.failure);
        return give_up(p, err);
    }
    err_set(err, ERR_SYSTEM, "", "attnscope-judge did not answer within %g s", LIMIT_S);
    return give_up(p, err);
}

const char *gpu_process_device(struct gpu_process *p, const struct runner_progress *progress, struct err *err)
{
    if (p->pid < 0) {
        *err = p->failure;
        return NULL;
    }
    if (!p->there && wait_for(p, progress, err) != 0)
        return NULL;
    p->there = true;
    return p->answer.device;
}

struct gpu_process_spent gpu_process_spent(const struct gpu_process *p)
{
    return (struct gpu_process_spent){p->answer.copying, p->answer.judging};
}

int gpu_process_ask(struct gpu_process *p, const char *work, const char *trace, const struct runner_progress *progress,
                    struct err *err)
{
    struct judge_ask ask = {{0}, {0}};
    if (!gpu_process_device(p, progress, err))
        return -1;
    snprintf(ask.work, sizeof ask.work, "%s", work);
    snprintf(ask.trace, sizeof ask.trace, "%s", trace);
    if (send(p->socket, &ask, sizeof ask, MSG_NOSIGNAL) != (ssize_t)sizeof ask) {
        err_errno(err, "", "attnscope-judge does not listen");
        return give_up(p, err);
    }
    return wait_for(p, progress, err);
}
