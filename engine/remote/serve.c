/* The other end, on the machine that has the GPU. */
#include "engine/base/clock.h"
#include "engine/base/wire.h"
#include "engine/build/cache.h"
#include "engine/bundle/bundle.h"
#include "engine/remote/remote.h"
#include "engine/remote/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_FILES 4000 /* sources and inputs, by their contents */
#define KEPT_S 3600.0

struct serving {
    struct stream stream;
    pthread_mutex_t lock; /* of what is sent */
    atomic_int cancel;
    char kept[600]; /* the folder of contents */
    char lanes[24];
    json_t *files; /* owned: as offered */
};

static int refuse(struct err *err)
{
    return err_set(err, ERR_USAGE, "serve", "is started by attnscope --on, which sends it what to run");
}

static void send_quietly(struct serving *s, json_t *json)
{
    pthread_mutex_lock(&s->lock);
    (void)stream_send(&s->stream, json); /* nobody is there any more: reading ends, too */
    pthread_mutex_unlock(&s->lock);
}

static void on_report(void *ctx, enum runner_step step, double done, double total)
{
    send_quietly(ctx, json_pack("{s:i, s:f, s:f}", "step", (int)step, "done", done, "total", total));
}

static void on_log(void *ctx, const char *line)
{
    json_t *text = json_string(line);
    if (text)
        send_quietly(ctx, json_pack("{s:o}", "log", text));
}

static void on_remarks(void *ctx, size_t lines, bool cached)
{
    send_quietly(ctx, json_pack("{s:I, s:b}", "remarks", (json_int_t)lines, "cached", cached));
}

/* Nothing more is to be read: the end tells to stop. */
static void *watch(void *ctx)
{
    struct serving *s = ctx;
    char byte;
    while (read(s->stream.in, &byte, 1) < 0 && errno == EINTR)
        ;
    atomic_store(&s->cancel, 1);
    return NULL;
}

/* ---- files ---- */

static bool is_hash(const char *hex)
{
    return strlen(hex) == 32 && strspn(hex, "0123456789abcdef") == 32;
}

static void kept_path(const struct serving *s, const char *hex, char out[700])
{
    snprintf(out, 700, "%s/sent-%.32s", s->kept, hex);
}

static int check_files(const struct serving *s, struct err *err)
{
    if (!json_is_array(s->files) || json_array_size(s->files) > CONTAINER_ENTRIES_MAX)
        return refuse(err);
    for (size_t i = 0; i < json_array_size(s->files); i++) {
        const json_t *file = json_array_get(s->files, i);
        if (container_check_name(wire_text(file, "name"), "serve", err) != 0)
            return -1;
        if (!is_hash(wire_text(file, "hash")) || wire_integer(file, "bytes", 0, INT64_MAX, -1) < 0)
            return refuse(err);
    }
    return 0;
}

static int receive_file(struct serving *s, const json_t *file, struct err *err)
{
    char path[700], fresh[720], hex[33] = "";
    kept_path(s, wire_text(file, "hash"), path);
    snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    const int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, fresh, "cannot be written");
    const enum stream_got got = stream_to_file(&s->stream, (uint64_t)wire_integer(file, "bytes", 0, INT64_MAX, 0), fd);
    int failed = got == STREAM_OK ? 0 : err_errno(err, wire_text(file, "name"), "did not arrive");
    if (close(fd) != 0 && !failed)
        failed = err_errno(err, fresh, "cannot be written");
    if (!failed && (remote_hash_file(fresh, hex) != 0 || strcmp(hex, wire_text(file, "hash")) != 0))
        failed = err_set(err, ERR_INPUT, wire_text(file, "name"), "has changed while it was sent: run it again");
    if (!failed && rename(fresh, path) != 0)
        failed = err_errno(err, path, "cannot be written");
    if (failed)
        unlink(fresh);
    return failed;
}

static int receive_files(struct serving *s, struct err *err)
{
    json_t *want = json_array();
    char path[700];
    for (size_t i = 0; i < json_array_size(s->files); i++) {
        kept_path(s, wire_text(json_array_get(s->files, i), "hash"), path);
        if (access(path, R_OK) == 0)
            cache_touch(path);
        else
            json_array_append_new(want, json_integer((json_int_t)i));
    }
    if (stream_send(&s->stream, json_pack("{s:O}", "want", want)) != 0) {
        json_decref(want);
        return err_errno(err, "serve", "cannot answer");
    }
    int failed = 0;
    for (size_t k = 0; k < json_array_size(want) && !failed; k++)
        failed = receive_file(s, json_array_get(s->files, (size_t)json_integer_value(json_array_get(want, k))), err);
    json_decref(want);
    return failed;
}

/* Each at its place below this folder: another name of what is kept. */
static int lay_out(const struct serving *s, struct err *err)
{
    for (size_t i = 0; i < json_array_size(s->files); i++) {
        const json_t *file = json_array_get(s->files, i);
        char path[700], part[CONTAINER_NAME_BYTES];
        const char *name = wire_text(file, "name");
        for (const char *slash = name; (slash = strchr(slash, '/')); slash++) {
            snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
            if (mkdir(part, 0700) != 0 && errno != EEXIST)
                return err_errno(err, part, "cannot be written");
        }
        kept_path(s, wire_text(file, "hash"), path);
        if (link(path, name) != 0)
            return err_errno(err, name, "cannot be written");
    }
    return 0;
}

/* ---- the run ---- */

static void send_result(struct serving *s, const struct err *why, double seconds, bool trace)
{
    struct stat status = {.st_size = 0};
    json_t *where = json_string(why->where), *message = json_string(why->message);
    if (trace && stat(BUNDLE_TRACE, &status) != 0)
        status.st_size = 0;
    send_quietly(s, json_pack("{s:s, s:o, s:o, s:f, s:I}", "code", err_name(why->code), "where",
                              where ? where : json_string(""), "message",
                              message ? message : json_string("its message is no text"), "seconds", seconds, "bytes",
                              (json_int_t)status.st_size));
    if (status.st_size)
        (void)stream_send_file(&s->stream, BUNDLE_TRACE, (uint64_t)status.st_size);
}

static void run_it(struct serving *s, const struct runner_paths *paths, remote_run *run)
{
    const struct runner_progress progress = {
        .report = on_report, .log = on_log, .remarks = on_remarks, .ctx = s, .cancel = &s->cancel};
    struct scenario scenario;
    struct trace *t = NULL;
    struct err why = {0}, unsaved = {0};
    const double begun = clock_seconds();
    if (scenario_read(BUNDLE_SCENARIO, paths->root, &scenario, &why) != 0) {
        send_result(s, &why, 0, false);
        return;
    }
    snprintf(scenario.lanes, sizeof scenario.lanes, "%s", s->lanes);
    run(paths, &scenario, &progress, &t, &why);
    const double seconds = clock_seconds() - begun;
    if (t && trace_save(t, BUNDLE_TRACE, &unsaved) != 0) {
        why = why.code == ERR_NONE ? unsaved : why;
        send_result(s, &why, seconds, false);
    } else {
        send_result(s, &why, seconds, t != NULL);
    }
    trace_free(t);
    scenario_free(&scenario);
}

static int serve(struct serving *s, const struct runner_paths *paths, remote_run *run, struct err *err)
{
    json_t *request = NULL;
    struct cache_work work;
    pthread_t watcher;
    if (stream_send(&s->stream, json_pack("{s:s, s:i}", "attnscope", remote_version, "abi", (int)ASC_ABI_VERSION)) != 0)
        return err_errno(err, "serve", "cannot answer");
    if (stream_line(&s->stream, &request) != STREAM_OK)
        return refuse(err);
    s->files = json_incref(json_object_get(request, "files"));
    snprintf(s->lanes, sizeof s->lanes, "%s", wire_text(request, "lanes"));
    json_decref(request);
    if (check_files(s, err) != 0 || receive_files(s, err) != 0 || cache_make_work(paths->cache, &work, err) != 0)
        return -1;
    int failed = chdir(work.folder) != 0 ? err_errno(err, work.folder, "cannot be entered") : lay_out(s, err);
    if (!failed && pthread_create(&watcher, NULL, watch, s) != 0)
        failed = err_set(err, ERR_SYSTEM, "serve", "no thread could be started");
    if (!failed) {
        pthread_detach(watcher);
        run_it(s, paths, run);
    }
    cache_drop_work(&work);
    cache_prune(s->kept, KEPT_FILES, KEPT_S);
    return failed;
}

int remote_serve(const struct runner_paths *paths, int in, int out, remote_run *run, struct err *err)
{
    struct serving s = {.stream = {.in = in, .out = out}, .lock = PTHREAD_MUTEX_INITIALIZER};
    snprintf(s.kept, sizeof s.kept, "%s/sent", paths->cache);
    if (mkdir(s.kept, 0700) != 0 && errno != EEXIST)
        return err_errno(err, s.kept, "cannot be written");
    const int failed = serve(&s, paths, run, err);
    json_decref(s.files);
    stream_free(&s.stream);
    return failed;
}
