#include "engine/runners/cache.h"
#include "engine/runners/cpu/flags.h"
#include "engine/runners/cpu/link_stub.h"
#include "engine/runners/diagnose.h"
#include "engine/runners/process.h"
#include "engine/runners/scan.h"
#include "scenarios/scenario.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPILE_LIMIT_S 600.0
#define CACHE_KEEP 200         /* programs of about 0.6 MB */
#define CACHE_MIN_AGE_S 3600.0 /* longer than any build and the start behind it */
#define ARGUMENTS_MAX 64
#define FLAG_MAX 1400 /* bytes; -ffile-prefix-map holds two paths */

struct job {
    const struct runner_paths *paths; /* borrowed */
    const char *kernel;               /* borrowed: as the user names it */
    enum probes probes;
    const struct runner_progress *progress;
    struct build *out;
    const char *arguments[ARGUMENTS_MAX]; /* g++ and its flags, before -E or -c; borrowed from below and flags.h */
    int n_arguments;
    char flags[8][FLAG_MAX]; /* the flags with paths in them */
    int n_flags;
    char own[2][600];  /* folders whose headers are attnscope's */
    char library[600]; /* libdebuggee_cpu.a */
    char base[128];    /* file name of the kernel without .cu, fit for a file name */
};

static void report(const struct job *job, const char *what)
{
    char phase[256];
    const struct runner_progress *progress = job->progress;
    if (!progress || !progress->report)
        return;
    const char *slash = strrchr(job->kernel, '/');
    snprintf(phase, sizeof phase, "%s %s", what, slash ? slash + 1 : job->kernel);
    progress->report(progress->ctx, phase, 0, 0);
}

static void log_lines(const struct job *job, char *text)
{
    char *rest = NULL;
    if (!job->progress || !job->progress->log || !text)
        return;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        job->progress->log(job->progress->ctx, line);
}

/* The source: the user's file, or a patched copy below the cache, at a path that depends on its content alone. */
static int prepare_source(struct job *job, const char *patch, struct err *err)
{
    struct build *out = job->out;
    char *text = NULL, *diff = NULL, *patched = NULL, hex[33], folder[600];
    if (cache_read_text(job->kernel, "the kernel", &text, err))
        return -1;
    if (!patch || !*patch) {
        out->source = text;
        snprintf(out->source_path, sizeof out->source_path, "%s%s", job->kernel[0] == '-' ? "./" : "", job->kernel);
        return 0;
    }
    int failed = cache_read_text(patch, "the patch", &diff, err) || patch_apply(text, diff, patch, &patched, err);
    free(text);
    free(diff);
    if (failed)
        return -1;
    out->source = patched;
    struct cache_key *key = cache_key_new();
    if (!key) {
        errno = ENOMEM;
        return err_errno(err, job->kernel, "the patched copy");
    }
    cache_key_add_text(key, job->kernel);
    cache_key_add_text(key, patched);
    cache_key_finish(key, hex);
    const char *slash = strrchr(job->kernel, '/'), *name = slash ? slash + 1 : job->kernel;
    snprintf(folder, sizeof folder, "%s/patched-%s", job->paths->cache, hex);
    int n = snprintf(out->source_path, sizeof out->source_path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof out->source_path)
        return err_set(err, ERR_SYSTEM, folder, "the path of the patched copy is too long");
    return cache_write_text(folder, name, patched, err);
}

static int find_library(struct job *job, struct err *err)
{
    static const char name[] = "libdebuggee_cpu.a";
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(exe, '/');
    if (slash)
        *slash = '\0';
    for (int i = 0; i < 3; i++) {
        int length = i < 2 ? snprintf(job->library, sizeof job->library, "%s/%s%s", exe, i ? "../" : "", name)
                           : snprintf(job->library, sizeof job->library, "%s/build/%s", job->paths->root, name);
        if (length > 0 && (size_t)length < sizeof job->library && access(job->library, R_OK) == 0)
            return 0;
    }
    return err_set(err, ERR_SYSTEM, job->library, "the runtime library is not built: run `make`");
}

static void add(struct job *job, const char *argument)
{
    if (job->n_arguments < ARGUMENTS_MAX - 8) /* room for what -E, -c and the link add */
        job->arguments[job->n_arguments++] = argument;
}

__attribute__((format(printf, 2, 3))) static void add_path(struct job *job, const char *format, ...)
{
    char *flag = job->flags[job->n_flags++];
    va_list args;
    va_start(args, format);
    vsnprintf(flag, FLAG_MAX, format, args);
    va_end(args);
    add(job, flag);
}

static void collect_arguments(struct job *job)
{
    const char *root = job->paths->root, *slash = strrchr(job->kernel, '/');
    int n_folder = slash ? (int)(slash - job->kernel + 1) : 0;
    add(job, "g++");
    for (const char *const *flag = simt_compile_flags; *flag; flag++)
        add(job, *flag);
    if (simt_march_flag())
        add(job, simt_march_flag());
    add(job, "-fdiagnostics-color=never");
    add(job, job->probes == PROBES_FEED ? "-DASC_MODE=2" : "-DASC_MODE=1");
    add(job, "-iquote");
    add_path(job, "%.*s", n_folder ? n_folder : 1, n_folder ? job->kernel : ".");
    if (strcmp(job->out->source_path, job->kernel) != 0) {
        const char *end = strrchr(job->out->source_path, '/');
        int n_copy = end ? (int)(end - job->out->source_path + 1) : 0;
        add_path(job, "-ffile-prefix-map=%.*s=%.*s", n_copy, job->out->source_path, n_folder, job->kernel);
    }
    add_path(job, "-I%s/probes", root);
    add_path(job, "-I%s", root);
    add_path(job, "-I%s/engine/runners/cpu/include", root);
    add(job, "-include");
    add_path(job, "%s/engine/runners/cpu/include/simt_device.h", root);
}

/* Runs g++ with the job's arguments and these, NULL-terminated. */
static int compile(struct job *job, const char *const *more, struct process_output *output, struct err *err)
{
    const char *argv[ARGUMENTS_MAX + 8];
    int n = 0;
    for (; n < job->n_arguments; n++)
        argv[n] = job->arguments[n];
    while (*more)
        argv[n++] = *more++;
    argv[n] = NULL;
    return process_capture(argv, COMPILE_LIMIT_S, job->progress, output, err);
}

/* The compiler's own name and version, so that another one is another build. */
static int compiler_version(const struct job *job, struct process_output *output, struct err *err)
{
    const char *const argv[] = {"g++", "--version", NULL};
    errno = 0;
    if (process_capture(argv, 10, job->progress, output, err))
        return errno == ENOENT ? err_set(err, ERR_SYSTEM, "g++",
                                         "the compiler was not found; kernels are built with it: install the "
                                         "package g++ (apt install g++)")
                               : -1;
    if (output->status) {
        process_output_free(output);
        return err_set(err, ERR_SYSTEM, "g++", "the compiler does not work: `g++ --version` failed");
    }
    return 0;
}

static int preprocess(struct job *job, struct process_output *output, struct err *err)
{
    const char *more[] = {"-E", "-dI", job->out->source_path, NULL};
    if (compile(job, more, output, err))
        return -1;
    if (output->status == 0)
        return 0;
    const struct diagnose names = {job->out->source_path, job->kernel};
    diagnose_compiler(&names, output->err, err);
    process_output_free(output);
    return -1;
}

static int scan(struct job *job, const char *text, struct err *err)
{
    const char *own[] = {job->own[0], job->own[1], NULL};
    struct scan result = {.own_folders = own, .compiled_path = job->out->source_path, .user_path = job->kernel};
    if (scan_preprocessed(&result, text, err))
        return -1;
    job->out->sites = result.sites;
    job->out->n_sites = result.n_sites;
    return 0;
}

static int make_key(const struct job *job, const struct process_output *text, const struct process_output *version,
                    char hex[33], struct err *err)
{
    const int abi = ASC_ABI_VERSION;
    struct cache_key *key = cache_key_new();
    if (!key) {
        errno = ENOMEM;
        return err_errno(err, job->kernel, "the key of the cache");
    }
    cache_key_add(key, &abi, sizeof abi);
    cache_key_add(key, text->out, text->n_out);
    cache_key_add(key, version->out, version->n_out);
    for (int i = 0; i < job->n_arguments; i++)
        cache_key_add_text(key, job->arguments[i]);
    for (const char *const *flag = simt_link_flags; *flag; flag++)
        cache_key_add_text(key, *flag);
    int failed = cache_key_add_file(key, job->library, err);
    cache_key_finish(key, failed ? NULL : hex);
    return failed;
}

static int link_program(struct job *job, const char *object, const char *stub, const char *program, struct err *err)
{
    const char *argv[32] = {"g++", "-o", program, object, stub, "-Wl,-u,debuggee_main", job->library, "-ljansson"};
    int n = 8;
    for (const char *const *flag = simt_link_flags; *flag && n < 31; flag++)
        argv[n++] = *flag;
    struct process_output output;
    if (process_capture(argv, COMPILE_LIMIT_S, job->progress, &output, err))
        return -1;
    int failed = output.status;
    const struct diagnose names = {job->out->source_path, job->kernel};
    if (failed)
        diagnose_linker(&names, output.err, err);
    else
        log_lines(job, output.err);
    process_output_free(&output);
    return failed ? -1 : 0;
}

/* Compiles and links in `work`, then moves the program to its place. */
static int make_program(struct job *job, const char *work, struct err *err)
{
    char object[640], stub[640], program[640];
    snprintf(object, sizeof object, "%s/kernel.o", work);
    snprintf(stub, sizeof stub, "%s/shared.s", work);
    snprintf(program, sizeof program, "%s/program", work);
    report(job, "compiling");
    const char *more[] = {"-c", job->out->source_path, "-o", object, NULL};
    struct process_output output;
    if (compile(job, more, &output, err))
        return -1;
    int failed = output.status;
    const struct diagnose names = {job->out->source_path, job->kernel};
    if (failed)
        diagnose_compiler(&names, output.err, err);
    else
        log_lines(job, output.err);
    process_output_free(&output);
    if (failed || link_stub_write(object, stub, err))
        return -1;
    report(job, "linking");
    if (link_program(job, object, stub, program, err))
        return -1;
    if (rename(program, job->out->program))
        return err_errno(err, job->out->program, "the debuggee can not be put into the cache");
    return 0;
}

static int build(struct job *job, struct err *err)
{
    struct process_output text = {0}, version = {0};
    char hex[33], work[600];
    report(job, "reading");
    int failed = compiler_version(job, &version, err) || preprocess(job, &text, err) || scan(job, text.out, err) ||
                 make_key(job, &text, &version, hex, err);
    process_output_free(&text);
    process_output_free(&version);
    if (failed)
        return -1;
    int n = snprintf(job->out->program, sizeof job->out->program, "%s/%s-%s", job->paths->cache, job->base, hex);
    if (n < 0 || (size_t)n >= sizeof job->out->program)
        return err_set(err, ERR_SYSTEM, job->paths->cache, "the path of the cache is too long");
    if (access(job->out->program, X_OK) == 0) {
        job->out->from_cache = 1;
        cache_touch(job->out->program);
        return 0;
    }
    if (cache_make_work(job->paths->cache, work, sizeof work, err))
        return -1;
    failed = make_program(job, work, err);
    cache_drop_work(work);
    if (!failed)
        cache_prune(job->paths->cache, CACHE_KEEP, CACHE_MIN_AGE_S);
    return failed;
}

static void set_names(struct job *job)
{
    const char *slash = strrchr(job->kernel, '/');
    snprintf(job->base, sizeof job->base, "%.100s", slash ? slash + 1 : job->kernel);
    char *dot = strrchr(job->base, '.');
    if (dot && dot != job->base)
        *dot = '\0';
    for (char *c = job->base; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *c))
            *c = '_';
    snprintf(job->own[0], sizeof job->own[0], "%s/probes/", job->paths->root);
    snprintf(job->own[1], sizeof job->own[1], "%s/engine/", job->paths->root);
}

int build_debuggee(const struct runner_paths *paths, const char *kernel, const char *patch, enum probes probes,
                   const struct runner_progress *progress, struct build *out, struct err *err)
{
    *out = (struct build){0};
    if (strlen(kernel) > 500)
        return err_set(err, ERR_INPUT, "", "the path of the kernel is longer than 500 bytes");
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        errno = ENOMEM;
        return err_errno(err, kernel, "a build");
    }
    job->paths = paths;
    job->kernel = kernel;
    job->probes = probes;
    job->progress = progress;
    job->out = out;
    set_names(job);
    int failed = prepare_source(job, patch, err) || find_library(job, err);
    if (!failed) {
        collect_arguments(job);
        failed = build(job, err);
    }
    free(job);
    if (failed)
        build_free(out);
    return failed ? -1 : 0;
}

void build_free(struct build *b)
{
    if (!b)
        return;
    free(b->source);
    free(b->sites);
    *b = (struct build){0};
}
