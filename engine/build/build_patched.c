/* A patch that reaches beyond the kernel's own file: to headers that it includes, and sources that are built with it.
 */
#include "engine/build/build.h"

#include "engine/base/path.h"
#include "engine/build/cache.h"
#include "engine/build/inputs.h"
#include "engine/build/mirror.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Folders alone are resolved: a file that is a link is included by the name that it has here. */
static int real_place(const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX];
    const int n = path_folder(path);
    snprintf(folder, sizeof folder, "%.*s", n ? n : 1, n ? path : ".");
    if (!realpath(folder, out))
        return -1;
    const size_t length = strlen(out);
    const int more = snprintf(out + length, PATH_MAX - length, "%s%s", length > 1 ? "/" : "", path_name(path));
    return more > 0 && (size_t)more < PATH_MAX - length ? 0 : -1;
}

int build_place(const struct build_job *job, const char *path, char out[600])
{
    char real[PATH_MAX];
    const char *name = path_name(path);
    const bool is_folder = strcmp(name, "") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (is_folder ? !realpath(path, real) : real_place(path, real) != 0)
        return -1;
    const int n = snprintf(out, 600, "%s%s", job->mirror, real);
    return n > 0 && n < 600 && access(out, R_OK) == 0 ? 0 : -1;
}

struct reads {
    char (*path)[PATH_MAX]; /* owned */
    size_t n;
    bool no_memory;
};

static void take_read(void *ctx, const char *path)
{
    struct reads *reads = ctx;
    for (size_t i = 0; i < reads->n; i++)
        if (strcmp(reads->path[i], path) == 0)
            return;
    char(*paths)[PATH_MAX] = reads->n % 64 ? reads->path : realloc(reads->path, (reads->n + 64) * sizeof *paths);
    if (!paths) {
        reads->no_memory = true;
        return;
    }
    reads->path = paths;
    snprintf(paths[reads->n++], PATH_MAX, "%s", path);
}

/* How many names both paths end in. */
static int common_names(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    int names = 0;
    while (n && m && a[n - 1] == b[m - 1]) {
        n--;
        m--;
        names += (!n || a[n - 1] == '/') && (!m || b[m - 1] == '/') && a[n] != '/';
    }
    return names;
}

/* The file of the build that the patch means by a name; NULL: none. */
static const char *meant(const struct build_job *job, const struct reads *reads, const char *name)
{
    const char *best = job->request->kernel;
    int most = common_names(best, name);
    for (size_t i = 0; i < reads->n; i++) {
        const int names = common_names(reads->path[i], name);
        if (names > most) {
            most = names;
            best = reads->path[i];
        }
    }
    return most ? best : NULL;
}

struct patched_text {
    char real[PATH_MAX];
    const char *path; /* borrowed */
    char *text;       /* owned */
};

static int apply(const struct build_job *job, const struct patch *patch, const struct reads *reads,
                 struct patched_text *to, struct err *err)
{
    char where[768];
    for (int i = 0; i < patch->n; i++) {
        snprintf(where, sizeof where, "%s:%d", patch->path, patch->file[i].line);
        to[i].path = meant(job, reads, patch->file[i].name);
        if (!to[i].path)
            return err_set(err, ERR_INPUT, where, "expected the kernel or a file that it includes, found `%s`",
                           patch->file[i].name);
        for (int k = 0; k < i; k++)
            if (to[k].path == to[i].path)
                return err_set(err, ERR_INPUT, where, "expected each file once, found `%s` again", patch->file[i].name);
        if (real_place(to[i].path, to[i].real) != 0)
            return err_errno(err, to[i].path, "is patched");
        if (patch_apply_to(patch, i, to[i].path, &to[i].text, err) != 0)
            return -1;
    }
    return 0;
}

static int make_tree(struct build_job *job, struct patched_text *from, int n, struct err *err)
{
    struct build *out = job->out;
    char hex[33], folder[PATH_MAX], kernel[PATH_MAX];
    struct cache_key *key = cache_key_new();
    if (!key)
        return err_no_memory(err, job->request->kernel, "the patched copies");
    for (int i = 0; i < n; i++) {
        cache_key_add_text(key, from[i].real);
        cache_key_add_text(key, from[i].text);
    }
    cache_key_finish(key, hex);
    snprintf(job->mirror, sizeof job->mirror, "%s/patched-%s", job->paths->cache, hex);
    if (real_place(job->request->kernel, kernel) != 0)
        return err_errno(err, job->request->kernel, "the kernel");
    snprintf(folder, sizeof folder, "%.*s", path_folder(kernel) - 1, kernel);
    if (mirror_add_folder(job->mirror, folder, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        struct build_patched *patched = &out->patched[out->n_patched++];
        snprintf(folder, sizeof folder, "%.*s", path_folder(from[i].real) - 1, from[i].real);
        if (mirror_add_folder(job->mirror, folder, err) < 0 ||
            mirror_put(job->mirror, from[i].real, from[i].text, err) != 0)
            return -1;
        const int length = snprintf(patched->path, sizeof patched->path, "%s%s", job->mirror, from[i].real);
        if (length < 0 || (size_t)length >= sizeof patched->path)
            return err_set(err, ERR_SYSTEM, from[i].real, "the path is too long for a patched copy");
        snprintf(patched->name, sizeof patched->name, "%.255s", runner_short_path(from[i].path));
        if (from[i].path == job->request->kernel) {
            free(out->source);
            out->source = from[i].text;
            from[i].text = NULL;
            out->n_patched--;
        }
    }
    cache_touch(job->mirror);
    return 0;
}

int build_patch_headers(struct build_job *job, const struct patch *patch, struct err *err)
{
    struct reads reads = {0};
    struct patched_text *texts = calloc(PATCH_FILES_MAX, sizeof *texts);
    struct build_source *kernel = &job->sources[0];
    int done = texts ? build_tell_reads(job, take_read, &reads, err) : err_no_memory(err, patch->path, "its copies");
    if (done == 0 && reads.no_memory)
        done = err_no_memory(err, patch->path, "the files that the kernel includes");
    if (done == 0 && (patch->n > 1 || meant(job, &reads, patch->file[0].name)))
        done = apply(job, patch, &reads, texts, err) || make_tree(job, texts, patch->n, err) ? -1 : 1;
    if (done == 1 && build_place(job, job->request->kernel, kernel->path) != 0)
        done = err_set(err, ERR_SYSTEM, job->request->kernel, "the path is too long for a patched copy");
    if (done == 1) {
        memcpy(kernel->named, kernel->path, sizeof kernel->named);
        mirror_rename(job->mirror, kernel->named);
        memcpy(job->out->source_path, kernel->named, sizeof kernel->named);
    }
    for (int i = 0; texts && i < patch->n; i++)
        free(texts[i].text);
    free(texts);
    free(reads.path);
    return done;
}

int build_mirror_reads(const struct build_job *job, const char *text, struct err *err)
{
    const char *own[] = {job->own[0], job->own[1], NULL};
    struct reads reads = {0};
    const size_t n_mirror = strlen(job->mirror);
    char folder[PATH_MAX], last[PATH_MAX] = "";
    int again = 0;
    user_files_tell(text, own, take_read, &reads);
    for (size_t i = 0; i < reads.n && again >= 0; i++) {
        snprintf(folder, sizeof folder, "%.*s", path_folder(reads.path[i]), reads.path[i]);
        char real[PATH_MAX];
        if (strcmp(folder, last) == 0 || !realpath(folder[0] ? folder : ".", real))
            continue;
        memcpy(last, folder, sizeof last);
        if (strncmp(real, job->mirror, n_mirror) == 0)
            continue;
        const int added = mirror_add_folder(job->mirror, real, err);
        again = added < 0 ? -1 : again | added;
    }
    free(reads.path);
    return again;
}
