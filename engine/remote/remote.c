/* The end of the conversation where the user is. */
#include "engine/remote/remote.h"

#include "engine/base/clock.h"
#include "engine/base/path.h"
#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/base/wire.h"
#include "engine/build/cache.h"
#include "engine/build/process.h"
#include "engine/bundle/bundle.h"
#include "engine/remote/stream.h"
#include "engine/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOPPING_S 10.0 /* how long what was recorded is waited for after a cancel */

struct call {
    const struct scenario *scenario;
    const struct runner_progress *progress;
    struct container files;
    struct stream stream;
    pid_t ssh; /* 0: not started */
    int said;  /* owned: what ssh and the other side's login say */
    int sent;  /* files */
};

/* ---- names: what lies below source/ there is the user's file here ---- */

static const struct container_entry *named_at(const struct container *files, const char *text)
{
    const struct container_entry *longest = NULL;
    for (size_t i = 0; i < files->n; i++) {
        const struct container_entry *entry = &files->entries[i];
        const size_t n = strlen(entry->name);
        if (entry->path && strncmp(text, entry->name, n) == 0 && (!longest || n > strlen(longest->name)))
            longest = entry;
    }
    return longest;
}

static void name_as_here(const struct container *files, char *text, size_t bytes)
{
    char *from = strdup(text);
    size_t used = 0;
    for (const char *at = from; at && *at && used + 1 < bytes;) {
        const struct container_entry *entry = named_at(files, at);
        const char *path = entry ? runner_short_path(entry->path) : at;
        const size_t n = entry ? strlen(path) : 1, room = bytes - 1 - used;
        memcpy(text + used, path, n < room ? n : room);
        used += n < room ? n : room;
        at += entry ? strlen(entry->name) : 1;
    }
    if (from)
        text[used] = '\0';
    free(from);
}

static void name_stack(const struct container *files, struct trace_stack *stack)
{
    for (int i = 0; i < stack->n; i++)
        name_as_here(files, stack->at[i].file, sizeof stack->at[i].file);
}

static void name_trace(const struct call *c, struct trace *t)
{
    const struct container *files = &c->files;
    struct trace_info *info = &t->info;
    name_as_here(files, info->source_name, sizeof info->source_name);
    name_as_here(files, info->inputs, sizeof info->inputs);
    name_as_here(files, info->status_text, sizeof info->status_text);
    for (size_t i = 0; i < info->n_sources; i++)
        name_as_here(files, info->sources[i].file, sizeof info->sources[i].file);
    for (size_t i = 0; i < info->n_sites; i++)
        name_as_here(files, info->sites[i].file, sizeof info->sites[i].file);
    for (size_t i = 0; i < info->n_events; i++) {
        struct trace_event *e = &info->events[i];
        name_as_here(files, e->file, sizeof e->file);
        name_as_here(files, e->other_file, sizeof e->other_file);
        name_as_here(files, e->recorder_file, sizeof e->recorder_file);
        name_as_here(files, e->text, sizeof e->text);
        name_stack(files, &e->stack);
        name_stack(files, &e->other_stack);
    }
    free(info->scenario);
    info->scenario = c->scenario->text ? strdup(c->scenario->text) : NULL;
    snprintf(info->scenario_name, sizeof info->scenario_name, "%s", c->scenario->name);
    snprintf(info->lanes, sizeof info->lanes, "%s", c->scenario->lanes);
}

/* ---- ssh ---- */

/* "HOST:PORT" as ssh has it; what ssh takes by itself stays. */
static void destination(const char *on, char *out, size_t bytes)
{
    const char *colon = strchr(on, ':');
    const bool port = colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
    snprintf(out, bytes, "%s%s", port ? "ssh://" : "", on);
}

static int start(struct call *c, struct err *err)
{
    char host[300];
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    destination(c->scenario->on, host, sizeof host);
    /* Without a terminal for questions: the screen is attnscope's. */
    const char *const argv[] = {
        "ssh", "-T", "-o",        "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=10",
        "--",  host, "attnscope", "serve",         NULL};
    c->said = memfd_create("attnscope ssh", MFD_CLOEXEC);
    if (c->said < 0 || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
        err_errno(err, c->scenario->on, "a pipe for ssh");
        if (to[0] >= 0) {
            close(to[0]);
            close(to[1]);
        }
        return -1;
    }
    const struct process_start process = {
        .argv = argv, .in_fd = to[0], .out_fd = from[1], .err_fd = c->said, .socket_fd = -1};
    const int failed = process_start(&process, &c->ssh, err);
    close(to[0]);
    close(from[1]);
    fcntl(to[1], F_SETFL, O_NONBLOCK);
    c->stream = (struct stream){.in = from[0], .out = to[1], .progress = c->progress};
    return failed;
}

/* The last line that was said on the way; a name, for messages. */
static void last_words(const struct call *c, char *out, size_t bytes)
{
    char tail[1024];
    const off_t end = lseek(c->said, 0, SEEK_END);
    const off_t at = end > (off_t)sizeof tail - 1 ? end - (off_t)sizeof tail + 1 : 0;
    const ssize_t n = end > 0 ? pread(c->said, tail, sizeof tail - 1, at) : 0;
    tail[n > 0 ? n : 0] = '\0';
    for (char *last = tail + strlen(tail); last > tail && (last[-1] == '\n' || last[-1] == '\r');)
        *--last = '\0';
    const char *line = strrchr(tail, '\n');
    line = line ? line + 1 : tail;
    text_name(line, strlen(line), out, bytes);
}

/* How ssh has ended, as of a shell; -1: not by itself. */
static int hang_up(struct call *c)
{
    if (c->stream.out >= 0)
        close(c->stream.out);
    c->stream.out = -1;
    if (c->ssh <= 0)
        return -1;
    const int status = process_end(c->ssh, 1);
    c->ssh = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int no_answer(struct call *c, enum stream_got got, struct err *err)
{
    char words[300];
    if (got == STREAM_CANCELLED)
        return err_set(err, ERR_CANCELLED, "", "cancelled");
    const int status = hang_up(c);
    last_words(c, words, sizeof words);
    if (status == 127)
        return err_set(err, ERR_SYSTEM, c->scenario->on, "there is no attnscope in PATH: install version %s there",
                       remote_version);
    return err_set(err, ERR_SYSTEM, c->scenario->on, "%s%s", words[0] ? words : "nothing answers there",
                   status == 255 ? "; ssh has to get there without a question (BatchMode)" : "");
}

static int lost(struct call *c, struct err *err)
{
    char words[300];
    hang_up(c);
    last_words(c, words, sizeof words);
    return err_set(err, ERR_SYSTEM, c->scenario->on,
                   "the connection was lost%s%s%s; earlier runs are kept, and r tries again", words[0] ? " (" : "",
                   words, words[0] ? ")" : "");
}

/* ---- the conversation ---- */

static int greet(struct call *c, struct err *err)
{
    json_t *hello = NULL;
    char version[REMOTE_VERSION_BYTES];
    const enum stream_got got = stream_greeting(&c->stream, "attnscope", &hello);
    if (got != STREAM_OK)
        return no_answer(c, got, err);
    text_name(wire_text(hello, "attnscope"), strlen(wire_text(hello, "attnscope")), version, sizeof version);
    const bool same =
        strcmp(version, remote_version) == 0 && wire_integer(hello, "abi", 0, INT32_MAX, -1) == ASC_ABI_VERSION;
    json_decref(hello);
    return same ? 0
                : err_set(err, ERR_SYSTEM, c->scenario->on,
                          "has attnscope %s, here is %s: both have to be of the same version and build", version,
                          remote_version);
}

static int offer(struct call *c, struct err *err)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->files.n; i++) {
        const struct container_entry *entry = &c->files.entries[i];
        char hex[33];
        if ((entry->text ? remote_hash_text(entry->text, hex) : remote_hash_file(entry->path, hex)) != 0) {
            json_decref(list);
            return err_errno(err, entry->path ? entry->path : entry->name, "cannot be read");
        }
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:s}", "name", entry->name, "bytes", (json_int_t)entry->bytes, "hash", hex));
    }
    if (stream_send(&c->stream, json_pack("{s:s, s:o}", "lanes", c->scenario->lanes, "files", list)) != 0)
        return errno == ECANCELED ? err_set(err, ERR_CANCELLED, "", "cancelled") : lost(c, err);
    return 0;
}

static int send_wanted(struct call *c, struct err *err)
{
    json_t *json = NULL;
    const enum stream_got got = stream_line(&c->stream, &json);
    if (got != STREAM_OK)
        return got == STREAM_CANCELLED ? no_answer(c, got, err) : lost(c, err);
    const json_t *want = json_object_get(json, "want");
    int failed = json_is_array(want) ? 0 : lost(c, err);
    for (size_t k = 0; k < json_array_size(want) && !failed; k++) {
        const json_int_t i = json_integer_value(json_array_get(want, k));
        if (i < 0 || (size_t)i >= c->files.n) {
            failed = lost(c, err);
            break;
        }
        const struct container_entry *entry = &c->files.entries[i];
        if ((entry->text ? stream_send_bytes(&c->stream, entry->text, entry->bytes)
                         : stream_send_file(&c->stream, entry->path, entry->bytes)) != 0)
            failed = errno == ECANCELED ? err_set(err, ERR_CANCELLED, "", "cancelled") : lost(c, err);
        c->sent++;
    }
    json_decref(json);
    return failed;
}

static void take_progress(const struct call *c, const json_t *json)
{
    const struct runner_progress *p = c->progress;
    const json_int_t step = wire_integer(json, "step", 0, STEP_COUNT - 1, -1);
    if (!p)
        return;
    if (step >= 0)
        runner_report(p, (enum runner_step)step, wire_number(json, "done", 0), wire_number(json, "total", 0));
    if (json_object_get(json, "log") && p->log) {
        char line[4096];
        snprintf(line, sizeof line, "%s", wire_text(json, "log"));
        name_as_here(&c->files, line, sizeof line);
        p->log(p->ctx, line);
    }
    if (json_object_get(json, "remarks") && p->remarks)
        p->remarks(p->ctx, (size_t)wire_integer(json, "remarks", 0, INT32_MAX, 0),
                   json_is_true(json_object_get(json, "cached")));
}

/* Up to its end. A cancel tells the other side, which then ends the run and sends what there is. */
static int follow(struct call *c, json_t **result, struct err *err)
{
    for (;;) {
        json_t *json = NULL;
        const enum stream_got got = stream_line(&c->stream, &json);
        if (got == STREAM_CANCELLED && c->stream.out >= 0) {
            close(c->stream.out);
            c->stream.out = -1;
            c->stream.progress = NULL;
            c->stream.until = clock_seconds() + STOPPING_S;
            continue;
        }
        if (got != STREAM_OK)
            return got == STREAM_CANCELLED ? no_answer(c, got, err) : lost(c, err);
        if (json_object_get(json, "code")) {
            *result = json;
            return 0;
        }
        take_progress(c, json);
        json_decref(json);
    }
}

static int take_trace(struct call *c, const struct cache_work *work, uint64_t bytes, struct trace **out,
                      struct err *err)
{
    char path[700];
    snprintf(path, sizeof path, "%s/" BUNDLE_TRACE, work->folder);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, path, "cannot be written");
    const enum stream_got got = stream_to_file(&c->stream, bytes, fd);
    const int why = errno;
    close(fd);
    errno = why;
    if (got == STREAM_BROKEN)
        return err_errno(err, path, "cannot be written");
    if (got != STREAM_OK)
        return got == STREAM_CANCELLED ? no_answer(c, got, err) : lost(c, err);
    if (trace_open(path, out, err) != 0)
        return -1;
    name_trace(c, *out); /* the mapping keeps the file, which has no name any more */
    return 0;
}

/* "sent 3 files, 14.2 KiB; 2.10 s there; 48.1 MiB back" */
static void say_cost(const struct call *c, const json_t *result)
{
    char sent[32], back[32], seconds[32], line[200];
    const struct runner_progress *p = c->progress;
    units_bytes(c->stream.sent, sent, sizeof sent);
    units_bytes(c->stream.received, back, sizeof back);
    units_seconds(wire_number(result, "seconds", 0), seconds, sizeof seconds);
    snprintf(line, sizeof line, "%.80s: sent %d file%s, %s; %s there; %s back", c->scenario->on, c->sent,
             c->sent == 1 ? "" : "s", sent, seconds, back);
    if (p && p->log)
        p->log(p->ctx, line);
    if (p && p->say)
        p->say(p->ctx, line);
}

static int converse(struct call *c, const struct cache_work *work, struct trace **out, struct err *err)
{
    json_t *result = NULL;
    struct err why = {0};
    runner_report(c->progress, STEP_CONNECTING, 0, 0);
    if (start(c, err) != 0 || greet(c, err) != 0)
        return -1;
    runner_report(c->progress, STEP_SENDING, 0, 0);
    if (offer(c, err) != 0 || send_wanted(c, err) != 0 || follow(c, &result, err) != 0)
        return -1;
    const enum err_code code = err_from_name(wire_text(result, "code"));
    const json_int_t bytes = wire_integer(result, "bytes", 0, INT64_MAX, 0);
    int failed = 0;
    if (code != ERR_NONE) {
        failed = err_set(&why, code, wire_text(result, "where"), "%s", wire_text(result, "message"));
        name_as_here(&c->files, why.where, sizeof why.where);
        name_as_here(&c->files, why.message, sizeof why.message);
    }
    if (bytes) {
        runner_report(c->progress, STEP_FETCHING, 0, 0);
        if (take_trace(c, work, (uint64_t)bytes, out, err) != 0) {
            json_decref(result);
            return -1;
        }
    }
    say_cost(c, result);
    json_decref(result);
    if (failed)
        *err = why;
    return failed;
}

/* As the scenario is, keys or not. */
static int settle(const struct scenario *scenario, struct scenario *out, struct err *err)
{
    if (scenario_copy(scenario, out) != 0)
        return err_no_memory(err, "", "the scenario");
    if (scenario_set(out, "scenario.checks", scenario->checks ? "yes" : "no", err) == 0 &&
        scenario_set(out, "scenario.probes", scenario->probes == SCENARIO_PROBES_OFF ? "off" : "on", err) == 0)
        return 0;
    scenario_free(out);
    return -1;
}

static void tell_reads(const struct call *c)
{
    for (size_t i = 0; i < c->files.n; i++)
        if (c->files.entries[i].path && c->progress && c->progress->reads)
            c->progress->reads(c->progress->ctx, c->files.entries[i].path);
}

int remote_record(const struct runner_paths *paths, const struct scenario *scenario,
                  const struct runner_progress *progress, struct trace **out, struct err *err)
{
    struct call c = {.scenario = scenario, .progress = progress, .said = -1, .stream = {.in = -1, .out = -1}};
    struct scenario own;
    struct cache_work work;
    *out = NULL;
    if (settle(scenario, &own, err) != 0)
        return -1;
    int failed = bundle_problem(paths, &own, &c.files, err);
    scenario_free(&own);
    if (failed)
        return -1;
    tell_reads(&c);
    failed = cache_make_work(paths->cache, &work, err);
    if (!failed) {
        failed = converse(&c, &work, out, err);
        cache_drop_work(&work);
    }
    hang_up(&c);
    if (c.stream.in >= 0)
        close(c.stream.in);
    if (c.said >= 0)
        close(c.said);
    stream_free(&c.stream);
    container_free(&c.files);
    return failed;
}
