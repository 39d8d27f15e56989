#include "tui/save.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

int saver_init(struct saver *v, struct err *err)
{
    *v = (struct saver){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return v->fd < 0 ? err_errno(err, "", "no event descriptor") : 0;
}

void saver_free(struct saver *v)
{
    if (v->active)
        saver_finish(v, NULL);
    if (v->fd >= 0)
        close(v->fd);
    v->fd = -1;
}

static void choose_name(const struct session *s, int number, char *name, size_t bytes)
{
    const int i = runs_index(&s->runs, number ? number : s->runs.shown);
    const struct trace_info *info = i < 0 ? &s->run.trace->info : &s->runs.at[i].trace->info;
    const char *own = i < 0 ? "" : s->runs.at[i].name;
    snprintf(name, bytes, "%s", *own ? own : info->scenario_name[0] ? info->scenario_name : info->kernel);
    for (char *c = name; *c; c++)
        if (*c == '/' || (unsigned char)*c <= 0x20)
            *c = '_';
    if (!name[0] || name[0] == '.')
        snprintf(name, bytes, "trace");
}

int saver_choose_path(const struct session *s, int number, char *path, size_t bytes, struct err *err)
{
    char name[128];
    struct stat status;
    choose_name(s, number, name, sizeof name);
    for (int i = 1; i < 10000; i++) {
        if (i == 1)
            snprintf(path, bytes, "%s.safetensors", name);
        else
            snprintf(path, bytes, "%s-%d.safetensors", name, i);
        if (lstat(path, &status) != 0 && errno == ENOENT)
            return 0;
    }
    return err_set(err, ERR_INPUT, path, "no free file name to save as");
}

static void *save(void *context)
{
    struct saver *v = context;
    const uint64_t one = 1;
    v->failed = (v->number ? session_save_run(v->session, v->number, v->path, &v->err)
                           : session_save(v->session, v->path, &v->err)) != 0;
    /* An eventfd counter of 0 takes 1 without fail. */
    return write(v->fd, &one, sizeof one) < 0 ? v : NULL;
}

int saver_start(struct saver *v, const struct session *s, int number, const char *path, struct err *err)
{
    if (v->active)
        return err_set(err, ERR_USAGE, "", "a save is in progress");
    if (!s->run.trace)
        return err_set(err, ERR_INPUT, "", "there is no run to save yet");
    struct stat status;
    if (path && strlen(path) >= sizeof v->path)
        return err_set(err, ERR_INPUT, "", "a path of more than %zu bytes", sizeof v->path - 1);
    if (path && lstat(path, &status) == 0)
        return err_set(err, ERR_INPUT, "", "%s already exists", path);
    if (path)
        snprintf(v->path, sizeof v->path, "%s", path);
    else if (saver_choose_path(s, number, v->path, sizeof v->path, err) != 0)
        return -1;
    v->session = s;
    v->number = number;
    v->err = (struct err){0};
    errno = pthread_create(&v->thread, NULL, save, v);
    if (errno != 0)
        return err_errno(err, "", "cannot start a thread to save");
    v->active = true;
    return 0;
}

int saver_finish(struct saver *v, struct err *err)
{
    uint64_t count;
    pthread_join(v->thread, NULL);
    if (read(v->fd, &count, sizeof count) < 0)
        errno = 0; /* drained already */
    v->active = false;
    if (!v->failed)
        return 0;
    if (err)
        *err = v->err;
    return -1;
}
