#include "engine/build/process.h"

#include "engine/base/clock.h"
#include "engine/base/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 50               /* how soon a cancel is seen */
#define CAPTURE_MAX (256u << 20) /* more than any preprocessed kernel */

extern char **environ;

bool process_cancelled(const struct runner_progress *progress)
{
    return progress && progress->cancel && atomic_load(progress->cancel);
}

/* The environment with these two, where they are not NULL; the mark comes first, where it is looked for. LC_ALL=C gives
   the compiler's messages in English, quotes in ASCII. The array is the caller's. */
static char **changed_environment(const char *mark, const char *locale)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + 3, sizeof *env);
    if (!env)
        return NULL;
    size_t kept = 0;
    if (mark)
        env[kept++] = (char *)(uintptr_t)mark;
    for (size_t i = 0; i < n; i++)
        if (!locale || strncmp(environ[i], "LC_ALL=", 7) != 0)
            env[kept++] = environ[i];
    if (locale)
        env[kept] = (char *)(uintptr_t)locale;
    return env;
}

static int spawn(const struct process_start *start, char **env, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed) {
        posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    /* A Ctrl-Z of this group in the moment before the process has its own would stop it there, out of reach of fg,
       while this one waits for it to be a program. Its own group gets none from the terminal. */
    sigset_t blocked, defaults;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTSTP);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGTERM);
    sigaddset(&defaults, SIGCHLD);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int last = 2;
    failed = start->in_fd ? posix_spawn_file_actions_adddup2(&actions, start->in_fd, 0)
                          : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, start->out_fd, 1);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, start->err_fd, 2);
    if (!failed && start->socket_fd >= 0) {
        last = PROCESS_SOCKET_FD;
        failed = posix_spawn_file_actions_adddup2(&actions, start->socket_fd, PROCESS_SOCKET_FD);
    }
    if (!failed)
        failed = posix_spawn_file_actions_addclosefrom_np(&actions, last + 1);
    if (!failed)
        failed = posix_spawnp(pid, start->argv[0], &actions, &attributes, (char *const *)start->argv, env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

int process_start(const struct process_start *start, pid_t *pid, struct err *err)
{
    char **env = changed_environment(start->mark, start->plain_messages ? "LC_ALL=C" : NULL);
    if (!env)
        return err_no_memory(err, "", "the start of %s", start->argv[0]);
    int failed = spawn(start, env, pid);
    free(env);
    if (!failed)
        leftovers_add_group(*pid);
    if (failed) {
        errno = failed;
        return err_errno(err, "", "cannot start %s", start->argv[0]);
    }
    return 0;
}

/* Whether it has ended; it is not reaped, so that its group's number stays its own. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        if (errno != EINTR)
            return true; /* there is nothing to wait for */
    return info.si_pid == pid;
}

int process_end(pid_t pid, double wait_s)
{
    const double until = clock_seconds() + wait_s;
    while (!has_ended(pid) && clock_seconds() < until) {
        const struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL);
    }
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    leftovers_remove_group(pid);
    for (;;) {
        int status = 0;
        if (waitpid(pid, &status, 0) == pid)
            return status;
        if (errno != EINTR)
            return -1;
    }
}

struct growing {
    char **text; /* borrowed: where the owner keeps it */
    size_t *n;
    size_t capacity;
    int fd; /* owned; -1 after the end */
};

static int grow(struct growing *g)
{
    if (*g->n + 4096 <= g->capacity)
        return 0;
    size_t capacity = g->capacity ? g->capacity * 2 : 65536;
    if (capacity > CAPTURE_MAX) {
        errno = EFBIG;
        return -1;
    }
    char *text = realloc(*g->text, capacity);
    if (!text)
        return -1;
    *g->text = text;
    g->capacity = capacity;
    return 0;
}

/* Reads what is there. */
static int take(struct growing *g)
{
    if (grow(g))
        return -1;
    ssize_t n = read(g->fd, *g->text + *g->n, g->capacity - *g->n - 1);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -1;
    if (n == 0) {
        close(g->fd);
        g->fd = -1;
        return 0;
    }
    *g->n += (size_t)n;
    return 0;
}

/* Until both streams end, or the program has and nothing more is there: what it left running may hold them open. */
static int collect(struct growing *streams, pid_t pid, const char *name, double until,
                   const struct runner_progress *progress, struct err *err)
{
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        struct pollfd fds[2] = {{.fd = streams[0].fd, .events = POLLIN}, {.fd = streams[1].fd, .events = POLLIN}};
        const bool ended = has_ended(pid);
        const int ready = poll(fds, 2, ended ? 0 : TICK_MS);
        if (ready < 0 && errno != EINTR)
            return err_errno(err, "", "waiting for %s", name);
        if (ended && ready == 0)
            break;
        for (int i = 0; i < 2; i++)
            if (streams[i].fd >= 0 && fds[i].revents && take(&streams[i]))
                return err_errno(err, "", "reading the output of %s", name);
        if (process_cancelled(progress))
            return err_set(err, ERR_CANCELLED, "", "cancelled");
        if (clock_seconds() > until)
            return err_set(err, ERR_SYSTEM, "", "%s did not finish in time", name);
    }
    for (int i = 0; i < 2; i++) {
        if (grow(&streams[i]))
            return err_errno(err, "", "reading the output of %s", name);
        (*streams[i].text)[*streams[i].n] = '\0';
    }
    return 0;
}

int process_capture(const char *const *argv, double limit_s, const struct runner_progress *progress,
                    struct process_output *output, struct err *err)
{
    int out[2] = {-1, -1}, error[2] = {-1, -1};
    *output = (struct process_output){0};
    if (pipe2(out, O_CLOEXEC) || pipe2(error, O_CLOEXEC)) {
        err_errno(err, "", "a pipe for %s", argv[0]);
        if (out[0] >= 0) {
            close(out[0]);
            close(out[1]);
        }
        return -1;
    }
    pid_t pid = -1;
    const struct process_start start = {
        .argv = argv, .out_fd = out[1], .err_fd = error[1], .socket_fd = -1, .plain_messages = true};
    int failed = process_start(&start, &pid, err);
    int saved = failed ? errno : 0;
    close(out[1]);
    close(error[1]);
    struct growing streams[2] = {{&output->out, &output->n_out, 0, out[0]},
                                 {&output->err, &output->n_err, 0, error[0]}};
    if (!failed) {
        failed = collect(streams, pid, argv[0], clock_seconds() + limit_s, progress, err);
        int status = process_end(pid, failed ? 0 : limit_s);
        output->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    for (int i = 0; i < 2; i++)
        if (streams[i].fd >= 0)
            close(streams[i].fd);
    if (failed)
        process_output_free(output);
    errno = saved;
    return failed;
}

void process_output_free(struct process_output *output)
{
    if (!output)
        return;
    free(output->out);
    free(output->err);
    *output = (struct process_output){0};
}
