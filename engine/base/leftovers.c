#include "engine/base/leftovers.h"

#include "engine/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_MAX 64
#define PATHS_MAX 16
#define MARK_NAME "ATTNSCOPE_STARTED="
#define ENVIRONMENT_READ 8192 /* the mark is put first, and most programs hand an environment on as it is */
#define HUNTED_MAX 1024

enum slot_state { SLOT_FREE, SLOT_CHANGING, SLOT_TAKEN };

static atomic_int groups[GROUPS_MAX];
static struct {
    atomic_int state; /* enum slot_state */
    char path[PATH_MAX];
} paths[PATHS_MAX];

void leftovers_add_group(pid_t group)
{
    for (int i = 0; i < GROUPS_MAX; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&groups[i], &none, (int)group))
            return;
    }
}

void leftovers_remove_group(pid_t group)
{
    for (int i = 0; i < GROUPS_MAX; i++) {
        int found = (int)group;
        if (atomic_compare_exchange_strong(&groups[i], &found, 0))
            return;
    }
}

void leftovers_add_path(const char *path)
{
    if (strlen(path) >= sizeof paths[0].path)
        return;
    for (int i = 0; i < PATHS_MAX; i++) {
        int state = SLOT_FREE;
        if (!atomic_compare_exchange_strong(&paths[i].state, &state, SLOT_CHANGING))
            continue;
        memcpy(paths[i].path, path, strlen(path) + 1);
        atomic_store(&paths[i].state, SLOT_TAKEN);
        return;
    }
}

void leftovers_remove_path(const char *path)
{
    for (int i = 0; i < PATHS_MAX; i++)
        if (atomic_load(&paths[i].state) == SLOT_TAKEN && strcmp(paths[i].path, path) == 0) {
            atomic_store(&paths[i].state, SLOT_FREE);
            return;
        }
}

/* From here to the handler: nothing but what a signal handler may call. readdir() is not, getdents64 is. */

struct dirent64_head {
    unsigned long long inode;
    long long next;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* Calls visit for every entry of a folder but "." and "..". */
static void each_entry(const char *folder, void (*visit)(void *ctx, int folder_fd, const char *name), void *ctx)
{
    _Alignas(struct dirent64_head) char bytes[4096];
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    for (long n = syscall(SYS_getdents64, fd, bytes, sizeof bytes); n > 0;
         n = syscall(SYS_getdents64, fd, bytes, sizeof bytes))
        for (long at = 0; at < n;) {
            const struct dirent64_head *entry = (const void *)(bytes + at);
            const char *name = entry->name;
            if (!(name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'))))
                visit(ctx, fd, name);
            at += entry->length;
        }
    close(fd);
}

static void remove_entry(void *ctx, int folder_fd, const char *name)
{
    (void)ctx;
    unlinkat(folder_fd, name, 0);
}

static void remove_path(const char *path)
{
    if (unlink(path) == 0 || (errno != EISDIR && errno != EPERM))
        return;
    each_entry(path, remove_entry, NULL);
    rmdir(path);
}

struct hunt {
    const char *mark;
    bool whole; /* the mark is a whole value, not the beginning of one */
    pid_t spared;
    int n;
    pid_t killed[HUNTED_MAX];
};

static bool holds_mark(const char *bytes, size_t n, const struct hunt *h)
{
    const size_t length = strlen(h->mark);
    for (size_t at = 0; at + length < n; at++) {
        if ((at == 0 || bytes[at - 1] == '\0') && memcmp(bytes + at, h->mark, length) == 0 &&
            (!h->whole || bytes[at + length] == '\0'))
            return true;
    }
    return false;
}

static void kill_if_marked(void *ctx, int folder_fd, const char *name)
{
    struct hunt *h = ctx;
    char file[32], bytes[ENVIRONMENT_READ];
    size_t n = 0;
    pid_t pid = 0;
    for (; name[n] >= '0' && name[n] <= '9' && n < 10; n++) {
        file[n] = name[n];
        pid = pid * 10 + (name[n] - '0');
    }
    if (n == 0 || name[n] != '\0' || pid == getpid() || pid == h->spared)
        return;
    memcpy(file + n, "/environ", sizeof "/environ");
    const int fd = openat(folder_fd, file, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    if (got <= 0 || !holds_mark(bytes, (size_t)got, h) || kill(pid, SIGKILL) != 0 || h->n == HUNTED_MAX)
        return;
    for (int i = 0; i < h->n; i++)
        if (h->killed[i] == pid) /* it is on its way */
            return;
    h->killed[h->n++] = pid;
}

/* Until a pass finds no other: a process may fork while it is looked for. */
static int hunt(struct hunt *h)
{
    for (int before = -1; h->n != before && h->n < HUNTED_MAX;) {
        before = h->n;
        each_entry("/proc", kill_if_marked, h);
    }
    return h->n;
}

static char own_marks[LEFTOVERS_MARK_BYTES]; /* the beginning of every mark that this program gives */

static void take_along(int number)
{
    for (int i = 0; i < GROUPS_MAX; i++)
        if (atomic_load(&groups[i]) > 0)
            kill(-atomic_load(&groups[i]), SIGKILL);
    struct hunt h = {.mark = own_marks};
    hunt(&h);
    for (int i = 0; i < PATHS_MAX; i++)
        if (atomic_load(&paths[i].state) == SLOT_TAKEN)
            remove_path(paths[i].path);
    if (number == SIGINT)
        text_write_kept();
    signal(number, SIG_DFL);
    raise(number);
}

void leftovers_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = take_along}, before;
    snprintf(own_marks, sizeof own_marks, MARK_NAME "%ld.", (long)getpid());
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&act.sa_mask, numbers[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &act, NULL);
}

void leftovers_mark(char mark[LEFTOVERS_MARK_BYTES])
{
    static atomic_int given;
    snprintf(mark, LEFTOVERS_MARK_BYTES, MARK_NAME "%ld.%d", (long)getpid(), atomic_fetch_add(&given, 1));
}

int leftovers_kill_marked(const char *mark, pid_t spared)
{
    struct hunt h = {.mark = mark, .whole = true, .spared = spared};
    return hunt(&h);
}
