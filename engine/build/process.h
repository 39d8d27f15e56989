/* Starting programs: without a shell, without fds they should not have, in a process group of their own so that a kill
   reaches their children too. */
#ifndef BUILD_PROCESS_H
#define BUILD_PROCESS_H

#include "engine/build/runner.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the new process gets. */
struct process_start {
    const char *const *argv; /* borrowed, NULL-terminated; argv[0] is looked up in PATH unless it has a slash */
    int in_fd;               /* becomes 0; 0: that is /dev/null */
    int out_fd, err_fd;      /* become 1 and 2 */
    int socket_fd;           /* becomes PROCESS_SOCKET_FD; -1: none */
    bool plain_messages;     /* LC_ALL=C, for programs whose messages are read */
    const char *mark;        /* "NAME=VALUE" of leftovers_mark() for its environment; NULL: none */
};
#define PROCESS_SOCKET_FD 3

/* Fails with ERR_SYSTEM; errno says why (ENOENT: no such program). */
int process_start(const struct process_start *start, pid_t *pid, struct err *err);

/* Waits up to wait_s for the end, kills what is left of the group, and reaps. Returns the status as of waitpid(), -1 if
   unknown. */
int process_end(pid_t pid, double wait_s);

struct process_output {
    char *out, *err; /* owned, NUL-terminated */
    size_t n_out, n_err;
    int status; /* exit status, 128 + signal */
};

/* Runs a program to its end and keeps what it says until then: a process that it leaves behind is not waited for.
   ERR_CANCELLED, ERR_SYSTEM: time limit, or could not be started; then, and only then, errno is not 0. */
int process_capture(const char *const *argv, double limit_s, const struct runner_progress *progress,
                    struct process_output *output, struct err *err);
void process_output_free(struct process_output *output);

bool process_cancelled(const struct runner_progress *progress);

#endif
