#include "engine/session/watch.h"

#include "engine/base/path.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define LOST_MS 1000 /* a folder that has gone is looked for this often */

struct file {
    char *path;       /* owned */
    const char *name; /* within path */
    int folder;       /* inotify's number; -1: there is none */
    int exists, changed;
    struct stat status;
};

struct watch {
    int events, timer, poll; /* owned; -1: none */
    struct file *files;      /* owned, [n] */
    size_t n;
};

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void arm(const struct watch *w, int ms)
{
    const struct itimerspec when = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}};
    timerfd_settime(w->timer, 0, &when, NULL);
}

/* Follows the folder, if it is there. */
static void follow(const struct watch *w, struct file *f)
{
    char folder[PATH_MAX];
    const int length = (int)(f->name - f->path);
    snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? f->path : ".");
    f->folder = inotify_add_watch(w->events, folder, EVENTS);
    if (f->folder < 0)
        arm(w, LOST_MS);
}

static int add_file(struct watch *w, const char *path)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->files[i].path, path) == 0)
            return 0;
    struct file *files = realloc(w->files, (w->n + 1) * sizeof *files);
    if (!files)
        return -1;
    w->files = files;
    struct file *f = &files[w->n];
    *f = (struct file){.path = strdup(path)};
    if (!f->path)
        return -1;
    f->name = path_name(f->path);
    f->exists = stat(path, &f->status) == 0;
    follow(w, f);
    w->n++;
    return 0;
}

int watch_add(struct watch *w, const char *path)
{
    char real[PATH_MAX];
    struct stat status;
    if (add_file(w, path) != 0)
        return -1;
    /* What a link stands for is written in a folder of its own. */
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && realpath(path, real))
        return add_file(w, real);
    return 0;
}

int watch_new(int also_fd, struct watch **out, struct err *err)
{
    struct watch *w = malloc(sizeof *w);
    *out = NULL;
    if (!w)
        return err_no_memory(err, "", "watching files");
    *w = (struct watch){.events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                        .timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
                        .poll = epoll_create1(EPOLL_CLOEXEC)};
    const int fds[] = {w->events, w->timer, also_fd};
    int failed = w->events < 0 || w->timer < 0 || w->poll < 0;
    for (size_t i = 0; i < sizeof fds / sizeof *fds && !failed; i++)
        failed =
            fds[i] >= 0 && epoll_ctl(w->poll, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){.events = EPOLLIN}) != 0;
    if (failed) {
        err_errno(err, "", "files cannot be watched");
        watch_free(w);
        return -1;
    }
    *out = w;
    return 0;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    const int fds[] = {w->events, w->timer, w->poll};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (size_t i = 0; i < w->n; i++)
        free(w->files[i].path);
    free(w->files);
    free(w);
}

int watch_fd(const struct watch *w)
{
    return w->poll;
}

/* 1: it may be about one of the files. */
static int concerns(struct watch *w, const struct inotify_event *event)
{
    int does = event->mask & IN_Q_OVERFLOW ? 1 : 0;
    for (size_t i = 0; i < w->n; i++) {
        struct file *f = &w->files[i];
        if (f->folder != event->wd)
            continue;
        if (event->mask & (IN_IGNORED | IN_MOVE_SELF)) { /* a folder of that name is another one from now on */
            f->folder = -1;
            does = 1;
        } else if (event->len && strcmp(event->name, f->name) == 0) {
            does = 1;
        }
    }
    return does;
}

static void drain_events(struct watch *w)
{
    _Alignas(struct inotify_event) char buffer[4096];
    int concerned = 0;
    for (ssize_t n; (n = read(w->events, buffer, sizeof buffer)) > 0;)
        for (const char *at = buffer; at < buffer + n;) {
            const struct inotify_event *event = (const void *)at;
            concerned |= concerns(w, event);
            at += sizeof *event + event->len;
        }
    if (concerned)
        arm(w, WATCH_QUIET_MS);
}

bool watch_take(struct watch *w)
{
    uint64_t expired;
    int changed = 0;
    drain_events(w);
    if (read(w->timer, &expired, sizeof expired) < 0)
        return false;
    for (size_t i = 0; i < w->n; i++) {
        struct file *f = &w->files[i];
        struct stat now;
        f->changed = 0;
        if (f->folder < 0)
            follow(w, f);
        if (stat(f->path, &now) != 0 || (f->exists && same(&now, &f->status)))
            continue;
        f->status = now;
        f->exists = f->changed = changed = 1;
    }
    return changed;
}

bool watch_was(const struct watch *w, const char *path)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->files[i].changed && strcmp(w->files[i].path, path) == 0)
            return true;
    return false;
}
