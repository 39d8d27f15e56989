/* attnscope check: runs scenarios, compares with what each expects, and sums up. */
#include "cli/check_kernels.h"
#include "cli/check_table.h"
#include "cli/options.h"
#include "cli/report.h"
#include "engine/base/clock.h"
#include "engine/base/json_memory.h"
#include "engine/base/path.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct paths {
    char **path; /* owned, each owned */
    size_t n;
};

static void paths_free(struct paths *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->path[i]);
    free(p->path);
    *p = (struct paths){0};
}

/* path is taken over. */
static int add_path(struct paths *p, char *path, struct err *err)
{
    char **more = path ? realloc(p->path, (p->n + 1) * sizeof *more) : NULL;
    if (!more) {
        free(path);
        return err_no_memory(err, "", "the list of scenarios");
    }
    p->path = more;
    p->path[p->n++] = path;
    return 0;
}

static int is_scenario(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && path_ends_in(entry->d_name, ".ini");
}

static int is_kernel(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && path_ends_in(entry->d_name, ".cu");
}

/* Every .ini of a folder, in the order of their names; where it has none, every .cu. */
static int add_folder(struct paths *p, const char *folder, struct err *err)
{
    struct dirent **entries;
    size_t length = strlen(folder);
    int n = scandir(folder, &entries, is_scenario, alphasort);
    if (n == 0) {
        free(entries);
        n = scandir(folder, &entries, is_kernel, alphasort);
    }
    if (n < 0)
        return err_errno(err, folder, "cannot be read");
    while (length > 1 && folder[length - 1] == '/')
        length--;
    int failed = 0;
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (!failed && asprintf(&path, "%.*s/%s", (int)length, folder, entries[i]->d_name) < 0)
            path = NULL;
        failed = failed || add_path(p, path, err);
        free(entries[i]);
    }
    free(entries);
    if (!failed && n == 0)
        return err_set(err, ERR_INPUT, folder, "holds no scenario (*.ini) and no kernel (*.cu)");
    return failed;
}

static int list_paths(const struct options *o, struct paths *out, struct err *err)
{
    *out = (struct paths){0};
    for (int i = 0; i < o->n_files; i++) {
        struct stat status;
        const bool folder = stat(o->files[i], &status) == 0 && S_ISDIR(status.st_mode);
        if (folder ? add_folder(out, o->files[i], err) : add_path(out, strdup(o->files[i]), err)) {
            paths_free(out);
            return -1;
        }
    }
    return 0;
}

static size_t count_kernels(const struct paths *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += (size_t)path_ends_in(p->path[i], ".cu");
    return n;
}

/* What a report writes, as text; owned by the caller. */
static char *text_of(void (*write)(const struct session *, FILE *), const struct session *s)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        end_without_memory();
    write(s, out);
    fclose(out);
    if (!text)
        end_without_memory();
    return text;
}

/* One line on what came of it; an error names the file itself more often than not. */
static void write_line(const struct check_result *r, FILE *out)
{
    if (r->status > 1) {
        const bool named = strncmp(r->err.where, r->path, strlen(r->path)) == 0;
        text_inline(out, "ERROR %s%s", named ? "" : r->path, named ? "" : ": ");
        text_failure(out, &r->err);
    } else {
        text_inline(out, "%s %s: %s", r->status == 0 ? "ok   " : "FAIL ", r->path, r->why);
        fputs("\n", out);
    }
    if (r->bias)
        fputs(r->bias, out);
    fflush(out);
}

static void check_one(const struct options *o, struct check_result *r, json_t *results)
{
    struct session *s;
    const double begin = clock_seconds();
    int failed = options_open(o, r->path, &s, &r->err);
    if (!failed)
        failed = options_finish(s, &r->err);
    if (!failed)
        options_look_bias(o, s);
    int status = s ? report_status(s, r->why, sizeof r->why) : -1;
    const bool undeclared = status == 0 && !report_checks(s, r->why, sizeof r->why);
    if (undeclared)
        status = 1;
    if (s && !failed && status < 0) { /* a run that ended early has left what it recorded */
        r->err = s->job.err;
        failed = -1;
    }
    snprintf(r->verdict, sizeof r->verdict, "%s", s ? session_verdict_word(s) : "ERROR");
    if (s) {
        report_expected(s, r->expected);
        report_found(s, r->found);
        r->status = status;
    } else {
        snprintf(r->found, sizeof r->found, "nothing: %s", err_name(r->err.code));
    }
    if (failed)
        r->status = err_exit_status(r->err.code);
    check_table_fill(s, r);
    if (s && s->run.judgement)
        r->details = text_of(report_write_findings, s);
    if (s && o->bias)
        r->bias = text_of(report_write_bias, s);
    if (results) {
        json_t *json = report_json(s, r->path, &r->err);
        if (undeclared) {
            json_object_set_new(json, "as_expected", json_false());
            json_object_set_new(json, "why", report_json_text(r->why));
        }
        json_array_append_new(results, json);
    }
    session_free(s);
    r->seconds = clock_seconds() - begin;
}

static int check_all(const struct options *o, struct check_result *r, size_t n, struct err *err)
{
    json_t *results = o->json ? json_array() : NULL;
    int worst = 0;
    for (size_t i = 0; i < n; i++) {
        check_one(o, &r[i], results);
        worst = r[i].status > worst ? r[i].status : worst;
        if (!o->json)
            write_line(&r[i], text_out());
        else if (isatty(STDERR_FILENO))
            write_line(&r[i], text_err());
    }
    if (!o->json && n > 1)
        check_table_write(r, n, text_out());
    if (o->json && report_dump(results, text_out(), err) != 0)
        worst = -1;
    json_decref(results);
    return worst;
}

int command_check(const struct options *o, struct err *err)
{
    struct paths paths;
    if (list_paths(o, &paths, err) != 0)
        return -1;
    const size_t n_kernels = o->shape ? 0 : count_kernels(&paths); /* a shape that is stated is what is run */
    if (n_kernels) {
        const int status = n_kernels == paths.n
                               ? check_kernels(o, paths.path, paths.n, err)
                               : err_set(err, ERR_USAGE, "check", "kernels and scenarios cannot be checked together");
        paths_free(&paths);
        return status;
    }
    int status = o->time_s > 0 ? err_set(err, ERR_USAGE, "--time", "applies to kernels without --shape") : 0;
    struct check_result *results = calloc(paths.n + 1, sizeof *results);
    if (!results)
        status = err_no_memory(err, "", "the results");
    for (size_t i = 0; i < paths.n && results; i++)
        results[i].path = paths.path[i];
    if (status == 0 && o->junit)
        status = junit_check(o->junit, err);
    if (status == 0)
        status = check_all(o, results, paths.n, err);
    if (status >= 0 && o->junit && junit_write(o->junit, "check", results, paths.n, err) != 0)
        status = -1;
    for (size_t i = 0; i < paths.n && results; i++) {
        free(results[i].details);
        free(results[i].bias);
    }
    free(results);
    paths_free(&paths);
    return status;
}
