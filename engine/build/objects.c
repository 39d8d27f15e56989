/* From the sources of a debuggee to one object. Where there are several, those that changed are compiled, at once. */
#include "engine/build/build.h"

#include "engine/build/cache.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* nvcc --time: "file , phase , ... , milliseconds , ms" a line, below one of titles. */
static void tell_parts(const struct build_job *job, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *name = strchr(line, ',');
        char *unit = strrchr(line, ',');
        if (!name || unit == name || !strstr(unit, "ms"))
            continue;
        *unit = '\0';
        const char *number = strrchr(line, ',');
        char phase[40];
        if (number > name && sscanf(name + 1, " %39[^,]", phase) == 1) {
            for (size_t n = strlen(phase); n && phase[n - 1] == ' ';)
                phase[--n] = '\0';
            job->progress->part(job->progress->ctx, phase, 1e-3 * strtod(number + 1, NULL));
        }
    }
}

static void tell_times(const struct build_job *job, const char *path)
{
    char *text = NULL;
    if (cache_read_text(path, "the compiler's times", &text, NULL) == 0)
        tell_parts(job, text);
    free(text);
}

/* One source on its way. */
struct part {
    struct parts *of;
    int source;
    char object[640]; /* as the compiler is to write it, or in the cache */
    char times[640];
    struct process_output output;
    struct err err;
    pthread_t thread;
    bool cached, failed;
};

struct parts {
    struct build_job *job;
    const char *work;
    struct runner_progress progress; /* stop ends it */
    atomic_int stop, next, running;
    struct part part[BUILD_SOURCES_MAX];
};

static bool is_timed(const struct build_job *job)
{
    return job->tools->time_flag && job->progress && job->progress->part;
}

static int compile(struct part *p)
{
    struct build_job *job = p->of->job;
    const char *text = job->sources[p->source].rewritten;
    char rewritten[640], name[32];
    const char *more[] = {"-c", job->sources[p->source].path, "-o", p->object, NULL, NULL, NULL};
    if (is_timed(job)) {
        more[4] = job->tools->time_flag;
        more[5] = p->times;
    }
    if (text) {
        const char *const preprocessed[] = {"-x", "c++-cpp-output", "-c", rewritten, "-o", p->object, NULL};
        snprintf(name, sizeof name, p->source ? "kernel%d.ii" : "kernel.ii", p->source);
        snprintf(rewritten, sizeof rewritten, "%s/%s", p->of->work, name);
        memcpy(more, preprocessed, sizeof preprocessed);
        if (cache_write_text(p->of->work, name, text, &p->err))
            return -1;
    }
    if (build_compile(job, more, &p->of->progress, &p->output, &p->err))
        return -1;
    build_rename_output(job, &p->output);
    return p->output.status ? -1 : 0;
}

static void *work_off(void *ctx)
{
    struct parts *all = ctx;
    for (int i; (i = atomic_fetch_add(&all->next, 1)) < all->job->n_sources && !atomic_load(&all->stop);) {
        struct part *p = &all->part[i];
        if (!p->cached && compile(p)) {
            p->failed = true;
            atomic_store(&all->stop, 1);
        }
    }
    atomic_fetch_sub(&all->running, 1);
    return NULL;
}

/* As many at once as there are cores. */
static void compile_all(struct parts *all)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[BUILD_SOURCES_MAX];
    int n = 0;
    while (n < all->job->n_sources && n < cores) {
        atomic_fetch_add(&all->running, 1);
        if (pthread_create(&threads[n], NULL, work_off, all)) {
            atomic_fetch_sub(&all->running, 1);
            break;
        }
        n++;
    }
    if (!n) {
        atomic_fetch_add(&all->running, 1);
        work_off(all);
    }
    while (atomic_load(&all->running)) {
        const struct timespec pause = {.tv_nsec = 10000000};
        if (process_cancelled(all->job->progress))
            atomic_store(&all->stop, 1);
        nanosleep(&pause, NULL);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void cached_words(struct build_job *job, const char *object)
{
    char path[700], *said = NULL;
    snprintf(path, sizeof path, "%s" CACHE_WORDS, object);
    if (cache_read_text(path, "the compiler's output", &said, NULL) == 0)
        build_take_words(job, said);
    free(said);
}

/* The words first: an object that is there has them. */
static int keep(const struct build_job *job, struct part *p, struct err *err)
{
    char path[640], words[640];
    snprintf(path, sizeof path, "%s/%s.o-%s", job->paths->cache, job->base, job->sources[p->source].hash);
    snprintf(words, sizeof words, "%s.o-%s" CACHE_WORDS, job->base, job->sources[p->source].hash);
    if ((p->output.n_err && cache_write_text(job->paths->cache, words, p->output.err, err)) ||
        cache_keep(p->object, path, err))
        return -1;
    snprintf(p->object, sizeof p->object, "%s", path);
    return 0;
}

/* What became of a source, told in the order of the sources. */
static int end(struct build_job *job, struct part *p, bool kept, struct err *err)
{
    const struct diagnose names = build_names(job, p->source);
    if (p->cached) {
        cache_touch(p->object);
        cached_words(job, p->object);
        return 0;
    }
    if (p->failed) {
        if (p->output.status)
            diagnose_compiler(&names, p->output.err, err);
        else
            *err = p->err;
        return -1;
    }
    if (is_timed(job))
        tell_times(job, p->times);
    build_take_words(job, p->output.err);
    return kept && job->sources[p->source].hash[0] ? keep(job, p, err) : 0;
}

static int make_parts(struct parts *all, const char *object, struct err *err)
{
    struct build_job *job = all->job;
    const bool several = job->n_sources > 1;
    const char *argv[BUILD_SOURCES_MAX + 6] = {"ld", "-r", "--unique", "-o", object};
    int failed = 0;
    for (int i = 0; i < job->n_sources; i++) {
        struct part *p = &all->part[i];
        p->of = all;
        p->source = i;
        snprintf(p->object, sizeof p->object, "%s/%s.o-%s", job->paths->cache, job->base, job->sources[i].hash);
        p->cached = several && job->sources[i].hash[0] && access(p->object, R_OK) == 0;
        if (!p->cached && several)
            snprintf(p->object, sizeof p->object, "%s/part%d.o", all->work, i);
        else if (!several)
            snprintf(p->object, sizeof p->object, "%s", object);
        snprintf(p->times, sizeof p->times, "%s/times%d.csv", all->work, i);
        argv[5 + i] = p->object;
    }
    compile_all(all);
    if (process_cancelled(job->progress))
        failed = err_set(err, ERR_CANCELLED, "", "cancelled");
    /* A source that was stopped for the sake of another one's mistake has nothing to say. */
    for (int i = 0; i < job->n_sources && !failed; i++)
        if (all->part[i].failed && all->part[i].err.code != ERR_CANCELLED)
            failed = end(job, &all->part[i], several, err);
    for (int i = 0; i < job->n_sources && !failed; i++)
        failed = end(job, &all->part[i], several, err);
    for (int i = 0; i < job->n_sources; i++)
        process_output_free(&all->part[i].output);
    return failed || !several ? failed : build_run_linker(job, argv, err);
}

int build_objects(struct build_job *job, const char *work, const char *object, struct err *err)
{
    struct parts *all = calloc(1, sizeof *all);
    if (!all)
        return err_no_memory(err, job->request->kernel, "the objects");
    all->job = job;
    all->work = work;
    if (job->progress)
        all->progress = *job->progress;
    all->progress.cancel = &all->stop;
    const int failed = make_parts(all, object, err);
    free(all);
    return failed;
}
