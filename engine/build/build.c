#include "engine/build/build.h"

#include "engine/base/clock.h"
#include "engine/base/path.h"
#include "engine/build/cache.h"
#include "engine/build/diagnose.h"
#include "engine/build/inputs.h"
#include "engine/build/link_stub.h"
#include "engine/build/mirror.h"
#include "engine/build/scan.h"
#include "engine/scenario/scenario.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_KEEP 200         /* programs of about 0.6 MB */
#define CACHE_MIN_AGE_S 3600.0 /* longer than any build and the start behind it */

const char *runner_step_words(enum runner_step step)
{
    static const char *const words[] = {
#define STEP(id, words) words,
#include "engine/build/steps.def"
#undef STEP
    };
    return words[step];
}

void runner_report(const struct runner_progress *progress, enum runner_step step, double done, double total)
{
    if (progress && progress->report)
        progress->report(progress->ctx, step, done, total);
}

bool runner_built_before(const struct runner_spent *spent)
{
    return spent->step[STEP_READING] > 0 && !(spent->step[STEP_LINKING] > 0);
}

struct diagnose build_names(const struct build_job *job, int source)
{
    return (struct diagnose){job->sources[source].named, job->sources[source].user, job->without_header};
}

static void log_lines(const struct build_job *job, const char *said, bool cached)
{
    const struct diagnose names = build_names(job, 0);
    char *rest = NULL;
    size_t lines = 0;
    if (!job->progress || !job->progress->log || !said)
        return;
    char *text = diagnose_words(&names, said);
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest), lines++)
        job->progress->log(job->progress->ctx, line);
    if (lines && job->progress->remarks)
        job->progress->remarks(job->progress->ctx, lines, cached);
    free(text);
}

void build_take_words(struct build_job *job, const char *said)
{
    const size_t n = job->words ? strlen(job->words) : 0, n_said = said ? strlen(said) : 0;
    char *words = n_said ? realloc(job->words, n + n_said + 1) : NULL;
    if (words) {
        memcpy(words + n, said, n_said + 1);
        job->words = words;
    }
    log_lines(job, said, false);
}

/* A program's words stand beside it. None: nothing was said, or they could not be kept. */
static void log_cached_words(const struct build_job *job)
{
    char path[700], *said = NULL;
    snprintf(path, sizeof path, "%s" CACHE_WORDS, job->out->program);
    if (cache_read_text(path, "the compiler's output", &said, NULL) == 0)
        log_lines(job, said, true);
    free(said);
}

static void set_source(struct build_job *job, int i, const char *path, const char *user)
{
    struct build_source *source = &job->sources[i];
    snprintf(source->path, sizeof source->path, "%s", path);
    snprintf(source->user, sizeof source->user, "%s", user);
    snprintf(source->named, sizeof source->named, "%s", path);
    if (job->mirror[0])
        mirror_rename(job->mirror, source->named);
}

/* The kernel's text with its patch, at a path below the cache that depends on its content alone. */
static int write_patched(struct build_job *job, const struct patch *patch, struct err *err)
{
    struct build *out = job->out;
    const char *kernel = job->request->kernel, *name = path_name(kernel);
    char hex[33], folder[600];
    free(out->source);
    if (patch_apply_to(patch, 0, kernel, &out->source, err))
        return -1;
    struct cache_key *key = cache_key_new();
    if (!key)
        return err_no_memory(err, kernel, "the patched copy");
    cache_key_add_text(key, kernel);
    cache_key_add_text(key, out->source);
    cache_key_finish(key, hex);
    snprintf(folder, sizeof folder, "%s/patched-%s", job->paths->cache, hex);
    int n = snprintf(out->source_path, sizeof out->source_path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof out->source_path)
        return err_set(err, ERR_SYSTEM, folder, "the path of the patched copy is too long");
    set_source(job, 0, out->source_path, kernel);
    return cache_write_text(folder, name, out->source, err);
}

static int apply_patch(struct build_job *job, struct err *err)
{
    struct patch patch;
    if (patch_read(job->request->patch, &patch, err))
        return -1;
    int done =
        patch.n == 1 && patch_find(&patch, job->request->kernel) == 0 ? 0 : build_patch_headers(job, &patch, err);
    if (done == 0)
        done = write_patched(job, &patch, err);
    patch_free(&patch);
    return done < 0 ? -1 : build_collect_arguments(job, err);
}

/* The source: the user's file, or a patched copy. */
static int prepare_source(struct build_job *job, struct err *err)
{
    const char *kernel = job->request->kernel;
    struct build *out = job->out;
    if (cache_read_text(kernel, "the kernel", &out->source, err))
        return -1;
    snprintf(out->source_path, sizeof out->source_path, "%s%s", kernel[0] == '-' ? "./" : "", kernel);
    set_source(job, 0, out->source_path, kernel);
    job->n_sources = 1;
    if (build_collect_arguments(job, err))
        return -1;
    return job->request->patch && *job->request->patch ? apply_patch(job, err) : 0;
}

int build_compile(const struct build_job *job, const char *const *more, const struct runner_progress *progress,
                  struct process_output *output, struct err *err)
{
    const char *argv[BUILD_ARGUMENTS_MAX + 9];
    char folder[PATH_MAX], map[PATH_MAX + 32];
    int n = 0;
    for (; n < job->n_arguments; n++)
        argv[n] = job->arguments[n];
    /* No part of the cache's key: a program that another folder has built must not name that one's files. */
    if (job->tools->map_folder && getcwd(folder, sizeof folder)) {
        snprintf(map, sizeof map, "%s=%s=.", job->tools->map_folder, folder);
        argv[n++] = map;
    }
    while (*more)
        argv[n++] = *more++;
    argv[n] = NULL;
    return process_capture(argv, BUILD_COMPILE_LIMIT_S, progress, output, err);
}

static void tell_files(const struct build_job *job, const char *text)
{
    const char *own[] = {job->own[0], job->own[1], NULL};
    if (job->progress && job->progress->reads)
        user_files_tell(text, own, job->progress->reads, job->progress->ctx);
}

/* The compiler's own name and version, so that another one is another build. */
static int compiler_version(const struct build_job *job, struct process_output *output, struct err *err)
{
    const char *const argv[] = {job->compiler, "--version", NULL};
    errno = 0;
    if (process_capture(argv, 10, job->progress, output, err))
        return errno == ENOENT ? err_set(err, ERR_SYSTEM, job->compiler, "%s", job->tools->missing) : -1;
    if (output->status) {
        process_output_free(output);
        return err_set(err, ERR_SYSTEM, job->compiler, "the compiler does not work: `%s --version` failed",
                       job->compiler);
    }
    return 0;
}

/* A string of C at *at, or several with blanks between, which the compiler makes one of: without its quotes into `out`.
 */
static bool read_literal(const char **at, char *out, size_t size)
{
    size_t n = 0;
    const char *from = *at;
    if (*from != '"')
        return false;
    while (*from == '"') {
        for (from++; *from && *from != '"'; from++)
            if (n + 1 < size)
                out[n++] = *from;
        from += *from == '"';
        from += strspn(from, " \n");
    }
    out[n] = '\0';
    *at = from;
    return true;
}

static int add_source(struct build_job *job, const char *name, struct err *err)
{
    char user[600], path[600];
    const char *kernel = job->request->kernel;
    if (job->n_sources == BUILD_SOURCES_MAX)
        return err_set(err, ERR_BUILD, kernel, "ASC_SOURCES names more than %d files", BUILD_SOURCES_MAX - 1);
    const int n = snprintf(user, sizeof user, "%.*s%s", *name == '/' ? 0 : path_folder(kernel), kernel, name);
    if (n < 0 || (size_t)n >= sizeof user)
        return err_set(err, ERR_BUILD, kernel, "ASC_SOURCES names a path that is too long");
    if (access(user, R_OK) != 0)
        return err_errno(err, user, "ASC_SOURCES names it");
    const bool copied = job->mirror[0] && build_place(job, user, path) == 0;
    set_source(job, job->n_sources++, copied ? path : user, user);
    return 0;
}

/* asc_sources("merge.cu", ...), as ASC_SOURCES expands to: paths from the folder of the kernel's file. */
static int find_sources(struct build_job *job, const char *text, struct err *err)
{
    static const char open[] = "asc_sources(\"";
    char name[600];
    for (const char *at = text; (at = strstr(at, open)) != NULL;)
        for (at += sizeof open - 2; read_literal(&at, name, sizeof name);) {
            if (add_source(job, name, err))
                return -1;
            at += *at == ',';
            at += strspn(at, " \n");
        }
    return 0;
}

static int run_preprocessor(struct build_job *job, int source, struct process_output *output, struct err *err)
{
    const char *more[8];
    int n = 0;
    for (const char *const *argument = job->tools->preprocess; *argument && n < 6; argument++)
        more[n++] = *argument;
    more[n++] = job->sources[source].path;
    more[n] = NULL;
    return build_compile(job, more, job->progress, output, err);
}

void build_rename_output(const struct build_job *job, struct process_output *output)
{
    if (job->mirror[0] && output->out)
        output->n_out = mirror_rename(job->mirror, output->out);
    if (job->mirror[0] && output->err)
        output->n_err = mirror_rename(job->mirror, output->err);
}

int build_tell_reads(struct build_job *job, void (*reads)(void *ctx, const char *path), void *ctx, struct err *err)
{
    const char *own[] = {job->own[0], job->own[1], NULL};
    struct process_output output;
    int failed = 0;
    for (int i = 0; i < job->n_sources && !failed; i++) {
        if (run_preprocessor(job, i, &output, err))
            return -1;
        if (output.out)
            user_files_tell(output.out, own, reads, ctx);
        if (i == 0 && output.out)
            failed = find_sources(job, output.out, err);
        else if (i)
            reads(ctx, job->sources[i].path);
        process_output_free(&output);
    }
    job->n_sources = 1;
    return failed;
}

static int preprocess(struct build_job *job, int source, struct process_output *output, struct err *err)
{
    enum { TIMES = 8 };
    for (int time = 0;; time++) {
        if (run_preprocessor(job, source, output, err))
            return -1;
        const int again = job->mirror[0] && output->out ? build_mirror_reads(job, output->out, err) : 0;
        if (again == 0 || (again > 0 && time == TIMES))
            break;
        process_output_free(output);
        if (again < 0)
            return -1;
    }
    build_rename_output(job, output);
    if (output->out)
        tell_files(job, output->out); /* of one that failed as far as it came */
    if (output->status == 0)
        return 0;
    const struct diagnose names = build_names(job, source);
    diagnose_compiler(&names, output->err, err);
    process_output_free(output);
    return -1;
}

static int scan(struct build_job *job, int source, const char *text, struct err *err)
{
    const char *own[] = {job->own[0], job->own[1], NULL};
    struct build *out = job->out;
    struct scan result = {.own_folders = own,
                          .compiled_path = job->sources[source].named,
                          .always = job->mirror[0] && job->tools->scan_gpu_only,
                          .user_path = job->sources[source].user,
                          .gpu_only_allowed = !job->tools->scan_gpu_only};
    if (scan_preprocessed(&result, text, err))
        return -1;
    job->sources[source].rewritten = result.rewritten;
    if (result.values[0].name[0]) {
        if (out->values[0].name[0] && memcmp(out->values, result.values, sizeof out->values) != 0) {
            free(result.sites);
            return err_set(err, ERR_INPUT, job->sources[source].user,
                           "ASC_VALUES declares other values than another file of this kernel: one header for both");
        }
        memcpy(out->values, result.values, sizeof out->values);
    }
    struct trace_site *sites = realloc(out->sites, (out->n_sites + result.n_sites + 1) * sizeof *sites);
    if (!sites) {
        free(result.sites);
        return err_no_memory(err, job->sources[source].user, "the list of probes");
    }
    if (result.n_sites)
        memcpy(sites + out->n_sites, result.sites, result.n_sites * sizeof *sites);
    out->sites = sites;
    out->n_sites += result.n_sites;
    free(result.sites);
    return 0;
}

/* What is compiled, once its source was scanned. */
static void look_at_source(struct build_job *job, int source, const char *text)
{
    const char *rewritten = job->sources[source].rewritten;
    struct cache_key *key = cache_key_new();
    if (!key)
        return;
    cache_key_add_text(key, rewritten ? rewritten : text);
    cache_key_finish(key, job->sources[source].hash);
}

/* Reads the other translation units; their text joins that of the first, so that a change in any is a change. */
static int read_others(struct build_job *job, struct process_output *text, struct err *err)
{
    if (find_sources(job, text->out, err))
        return -1;
    look_at_source(job, 0, text->out);
    for (int i = 1; i < job->n_sources; i++) {
        struct process_output other;
        if (job->progress && job->progress->reads)
            job->progress->reads(job->progress->ctx, job->sources[i].user);
        if (preprocess(job, i, &other, err))
            return -1;
        const size_t n = job->others ? strlen(job->others) : 0;
        char *others = realloc(job->others, n + other.n_out + 1), *all = NULL;
        if (others) {
            memcpy(others + n, other.out, other.n_out + 1);
            job->others = others;
            all = realloc(text->out, text->n_out + other.n_out + 1);
        }
        if (all) {
            memcpy(all + text->n_out, other.out, other.n_out + 1);
            text->out = all;
            text->n_out += other.n_out;
        }
        const int failed =
            all ? scan(job, i, other.out, err) : err_no_memory(err, job->sources[i].user, "the preprocessed source");
        look_at_source(job, i, other.out);
        process_output_free(&other);
        if (failed)
            return -1;
    }
    return 0;
}

/* What reaches compilers and linkers beside their arguments: of g++ and clang++ (GCC manual, "Environment Variables"),
   of nvcc (its manual, 4.1.2), and which files are run. */
static void add_surroundings(const struct build_job *job, struct cache_key *key)
{
    static const char *const variables[] = {
        "CPATH",           "C_INCLUDE_PATH",     "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",         "COMPILER_PATH",
        "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH",  "LD_RUN_PATH",        "CCC_OVERRIDE_OPTIONS", "CUDA_HOME",
        "CUDA_PATH",       "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",  "NVCC_CCBIN",           "CICC_PATH",
    };
    const char *const tools[] = {job->compiler, "g++", "as", "ld", "objcopy"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        cache_key_add_text(key, value ? variables[i] : "");
        cache_key_add_text(key, value ? value : "");
    }
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        char identity[900];
        build_tool_identity(tools[i], identity, sizeof identity);
        cache_key_add_text(key, identity);
    }
}

/* Which file a library of the user's is: -lNAME, or -l:FILE of an object, in the folder of a -LDIR. */
static void add_library(const struct build_job *job, const char *name, struct cache_key *key)
{
    const bool is_file = name[0] == ':';
    for (int i = 0; i < job->n_link_arguments; i++)
        for (int form = is_file ? 2 : 0; strncmp(job->link_arguments[i], "-L", 2) == 0 && form < (is_file ? 3 : 2);
             form++) {
            char path[PATH_MAX], identity[900];
            const char *folder = job->link_arguments[i] + 2;
            const int n = form == 0   ? snprintf(path, sizeof path, "%s/lib%s.so", folder, name)
                          : form == 1 ? snprintf(path, sizeof path, "%s/lib%s.a", folder, name)
                                      : snprintf(path, sizeof path, "%s/%s", folder, name + 1);
            build_tool_identity(n > 0 && (size_t)n < sizeof path ? path : "", identity, sizeof identity);
            cache_key_add_text(key, identity);
        }
}

static void add_link_arguments(const struct build_job *job, struct cache_key *key)
{
    cache_key_add(key, &job->n_link_arguments, sizeof job->n_link_arguments);
    for (int i = 0; i < job->n_link_arguments; i++)
        cache_key_add_text(key, job->link_arguments[i]);
    for (int i = 0; i < job->n_link_arguments; i++)
        if (strncmp(job->link_arguments[i], "-l", 2) == 0)
            add_library(job, job->link_arguments[i] + 2, key);
}

static void add_arguments(const struct build_job *job, struct cache_key *key)
{
    for (int i = 0; i < job->n_arguments; i++)
        cache_key_add_text(key, job->arguments[i]);
}

/* The keys of the program and of its objects. */
static int make_key(struct build_job *job, const struct process_output *text, const struct process_output *version,
                    char hex[33], struct err *err)
{
    const int abi = ASC_ABI_VERSION;
    struct cache_key *key = cache_key_new();
    for (int i = 0; i < job->n_sources; i++) {
        struct cache_key *object = job->sources[i].hash[0] ? cache_key_new() : NULL;
        if (!object)
            continue;
        cache_key_add_text(object, job->sources[i].hash);
        cache_key_add_text(object, job->sources[i].named);
        cache_key_add(object, version->out, version->n_out);
        add_arguments(job, object);
        add_surroundings(job, object);
        cache_key_finish(object, job->sources[i].hash);
    }
    if (!key)
        return err_no_memory(err, job->request->kernel, "the key of the cache");
    cache_key_add(key, &abi, sizeof abi);
    if (!job->sources[0].rewritten || job->others)
        cache_key_add(key, text->out, text->n_out);
    for (int i = 0; i < job->n_sources; i++)
        if (job->sources[i].rewritten)
            cache_key_add_text(key, job->sources[i].rewritten);
    cache_key_add(key, version->out, version->n_out);
    add_arguments(job, key);
    for (const char *const *flag = job->tools->link_flags; *flag; flag++)
        cache_key_add_text(key, *flag);
    add_link_arguments(job, key);
    add_surroundings(job, key);
    int failed = cache_key_add_file(key, job->library, err);
    cache_key_finish(key, failed ? NULL : hex);
    return failed;
}

void build_library_folder(const struct build_job *job, char *flag, size_t size)
{
    const int n = path_folder(job->library);
    snprintf(flag, size, "-L%.*s", n ? n - 1 : 1, n ? job->library : ".");
}

int build_run_linker(struct build_job *job, const char *const *argv, struct err *err)
{
    struct process_output output;
    if (process_capture(argv, BUILD_COMPILE_LIMIT_S, job->progress, &output, err))
        return -1;
    build_rename_output(job, &output);
    int failed = output.status;
    const struct diagnose names = build_names(job, 0);
    if (failed)
        diagnose_linker(&names, output.err, err);
    else
        build_take_words(job, output.err);
    process_output_free(&output);
    return failed ? -1 : 0;
}

int build_link(struct build_job *job, const char *object, const char *work, const char *const *argv, int n,
               struct err *err)
{
    /* In the folder itself: of several files the compiler names the objects. */
    const char *const assemble[] = {"env", "-C", work, "g++", "-c", "@missing.s.args", NULL};
    const char *const pack[] = {"env", "-C", work, "ar", "rcsD", "missing.a", "@missing.o.args", NULL};
    const char *all[BUILD_LINK_ARGUMENTS_MAX + 48];
    char folder[640];
    snprintf(folder, sizeof folder, "-L%s", work);
    const int functions = link_stub_missing(object, work, err);
    if (functions < 0 || (functions && (build_run_linker(job, assemble, err) || build_run_linker(job, pack, err))))
        return -1;
    memcpy(all, argv, (size_t)n * sizeof *argv);
    if (functions) { /* what the C++ library has is its */
        all[n++] = "-lstdc++";
        all[n++] = folder;
        all[n++] = "-l:missing.a";
    }
    all[n] = NULL;
    return build_run_linker(job, all, err);
}

/* Compiles and links in `work`, then moves the program to its place. */
static int make_program(struct build_job *job, const char *work, struct err *err)
{
    char object[640], program[640];
    snprintf(object, sizeof object, "%s/kernel.o", work);
    snprintf(program, sizeof program, "%s/program", work);
    runner_report(job->progress, STEP_COMPILING, 0, 0);
    if (build_objects(job, work, object, err))
        return -1;
    runner_report(job->progress, STEP_LINKING, 0, 0);
    if (job->tools->link(job, object, work, program, err))
        return -1;
    char name[200];
    snprintf(name, sizeof name, "%s" CACHE_WORDS, path_name(job->out->program));
    if (job->words && cache_write_text(job->paths->cache, name, job->words, err))
        return -1;
    return cache_keep(program, job->out->program, err);
}

/* Of all that decides a build and that no file of build_inputs says. -1 without memory. */
static int make_signature(const struct build_job *job, char hex[33])
{
    struct cache_key *key = cache_key_new();
    if (!key)
        return -1;
    cache_key_add_text(key, job->tools->library);
    cache_key_add_text(key, job->paths->cache);
    cache_key_add_text(key, job->request->kernel);
    cache_key_add_text(key, job->out->source_path);
    cache_key_add_text(key, job->out->source);
    cache_key_add_text(key, job->mirror);
    add_link_arguments(job, key);
    add_surroundings(job, key);
    add_arguments(job, key);
    cache_key_finish(key, hex);
    return 0;
}

/* The last build's answer where nothing has changed since. 0: it must be built. */
static bool take_last(struct build_job *job, const char *signature)
{
    const struct build *last = job->request->last;
    struct build *out = job->out;
    if (!last || !build_inputs_unchanged(last->inputs, signature) || access(last->program, X_OK) != 0)
        return false;
    struct trace_site *sites = malloc((last->n_sites + 1) * sizeof *sites);
    if (!sites)
        return false;
    if (last->n_sites)
        memcpy(sites, last->sites, last->n_sites * sizeof *sites);
    out->sites = sites;
    out->n_sites = last->n_sites;
    memcpy(out->values, last->values, sizeof out->values);
    memcpy(out->program, last->program, sizeof out->program);
    out->inputs = build_inputs_copy(last->inputs);
    out->from_cache = out->unchanged = 1;
    cache_touch(out->program);
    return true;
}

static bool take_cached(struct build_job *job)
{
    if (access(job->out->program, X_OK) != 0)
        return false;
    job->out->from_cache = true;
    cache_touch(job->out->program);
    log_cached_words(job);
    return true;
}

/* Waits for whoever makes this program now. Where it is not there afterwards, its compiler failed, or took as long as
   any may: then each makes its own, beside the others. */
static int wait_for_other(const struct build_job *job, int *locks, const char *hex, struct err *err)
{
    const struct timespec tick = {.tv_nsec = 50000000};
    const double begin = clock_seconds();
    bool waited = false;
    while (*locks >= 0 && cache_is_being_made(*locks, hex) && clock_seconds() - begin < BUILD_COMPILE_LIMIT_S) {
        waited = true;
        runner_report(job->progress, STEP_WAITING, 0, 0);
        nanosleep(&tick, NULL);
        if (process_cancelled(job->progress))
            return err_set(err, ERR_CANCELLED, "", "cancelled");
    }
    if (waited) {
        close(*locks);
        *locks = -1;
    }
    return 0;
}

/* Makes the program, unless somebody else does: minutes of nvcc are not spent twice at the same time. */
static int make_or_wait(struct build_job *job, const char *hex, struct err *err)
{
    const char *cache = job->paths->cache;
    struct cache_work work;
    int locks = cache_open_locks(cache);
    int failed = wait_for_other(job, &locks, hex, err);
    if (!failed && !take_cached(job)) {
        failed = cache_make_work(cache, &work, err);
        if (!failed) {
            failed = make_program(job, work.folder, err);
            cache_drop_work(&work);
        }
        if (!failed)
            cache_prune(cache, CACHE_KEEP, CACHE_MIN_AGE_S);
    }
    if (locks >= 0)
        close(locks);
    return failed;
}

static int build(struct build_job *job, struct err *err)
{
    struct process_output text = {0}, version = {0};
    char hex[33], signature[33];
    struct timespec began;
    const bool is_signed = make_signature(job, signature) == 0;
    if (is_signed && take_last(job, signature))
        return 0;
    clock_gettime(CLOCK_REALTIME, &began);
    runner_report(job->progress, STEP_READING, 0, 0);
    int failed = compiler_version(job, &version, err) || preprocess(job, 0, &text, err) ||
                 scan(job, 0, text.out, err) || read_others(job, &text, err) ||
                 make_key(job, &text, &version, hex, err);
    job->without_header = !failed && !strstr(text.out, "attnscope.h\"");
    if (!failed && is_signed)
        job->out->inputs = build_inputs_new(text.out, job->out->source_path, job->arguments, job->n_arguments,
                                            job->library, signature, &began);
    process_output_free(&text);
    process_output_free(&version);
    if (failed)
        return -1;
    int n = snprintf(job->out->program, sizeof job->out->program, "%s/%s-%s", job->paths->cache, job->base, hex);
    if (n < 0 || (size_t)n >= sizeof job->out->program)
        return err_set(err, ERR_SYSTEM, job->paths->cache, "the path of the cache is too long");
    return take_cached(job) ? 0 : make_or_wait(job, hex, err);
}

static void set_names(struct build_job *job)
{
    snprintf(job->base, sizeof job->base, "%.100s", path_name(job->request->kernel));
    char *dot = strrchr(job->base, '.');
    if (dot && dot != job->base)
        *dot = '\0';
    for (char *c = job->base; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *c))
            *c = '_';
    snprintf(job->own[1], sizeof job->own[1], "%s/engine/", job->paths->root);
}

int build_debuggee(const struct runner_paths *paths, const struct build_request *request,
                   const struct runner_progress *progress, struct build *out, struct err *err)
{
    *out = (struct build){0};
    if (strlen(request->kernel) > 500)
        return err_set(err, ERR_INPUT, "", "the path of the kernel is longer than 500 bytes");
    if (request->checks && request->backend == BACKEND_GPU)
        return err_set(err, ERR_INPUT, request->kernel, "access checks need the CPU executor: backend must be cpu");
    struct build_job *job = calloc(1, sizeof *job);
    if (!job)
        return err_no_memory(err, request->kernel, "a build");
    job->paths = paths;
    job->request = request;
    job->progress = progress;
    job->tools = request->backend == BACKEND_GPU ? &toolchain_gpu : &toolchain_cpu;
    job->out = out;
    set_names(job);
    const int failed = runner_find_built(paths, "include/attnscope.h", job->own[0], sizeof job->own[0], err) ||
                       runner_find_built(paths, job->tools->library, job->library, sizeof job->library, err) ||
                       job->tools->find_compiler(job, err) || prepare_source(job, err) || build(job, err);
    for (int i = 0; i < job->n_sources; i++)
        free(job->sources[i].rewritten);
    free(job->others);
    free(job->words);
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
    build_inputs_free(b->inputs);
    *b = (struct build){0};
}
