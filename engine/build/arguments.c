/* What the compiler is called with: attnscope's own, what the toolchain adds, and the user's folders, macros and flags.
 */
#include "engine/build/build.h"

#include "engine/base/path.h"
#include "engine/build/cache.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/value.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void build_add(struct build_job *job, const char *argument)
{
    if (job->n_arguments < BUILD_ARGUMENTS_MAX - 8) /* room for what -E, -c and the link add */
        job->arguments[job->n_arguments++] = argument;
}

void build_add_path(struct build_job *job, const char *format, ...)
{
    char *flag = job->flags[job->n_flags++];
    va_list args;
    va_start(args, format);
    vsnprintf(flag, BUILD_FLAG_MAX, format, args);
    va_end(args);
    build_add(job, flag);
}

static int add_defines(struct build_job *job, struct err *err)
{
    const char *define = job->request->define ? job->request->define : "";
    char *rest = NULL;
    if (strlen(define) >= sizeof job->define)
        return err_set(err, ERR_INPUT, job->request->kernel, "its macros need more than %zu bytes",
                       sizeof job->define - 1);
    memcpy(job->define, define, strlen(define) + 1);
    for (char *macro = strtok_r(job->define, " ", &rest); macro; macro = strtok_r(NULL, " ", &rest)) {
        build_add(job, "-D");
        build_add(job, macro);
    }
    return 0;
}

/* NULL: there is no more room. */
static const char *keep_given(struct build_job *job, const char *before, const char *word)
{
    char *kept = job->given + job->n_given;
    const size_t room = sizeof job->given - job->n_given;
    const int n = snprintf(kept, room, "%s%s", before, word);
    if (n < 0 || (size_t)n >= room || job->n_arguments == BUILD_ARGUMENTS_MAX - 8)
        return NULL;
    job->n_given += (size_t)n + 1;
    return kept;
}

static int add_given(struct build_job *job, const char *before, const char *word, struct err *err)
{
    const char *kept = keep_given(job, before, word);
    if (!kept)
        return err_set(err, ERR_INPUT, job->request->kernel, "its folders and flags are too many");
    build_add(job, kept);
    return 0;
}

static int add_include(struct build_job *job, struct err *err)
{
    char folder[600];
    struct stat info;
    for (const char *list = job->request->include; list && *list;) {
        if (!value_next(&list, folder, sizeof folder) || stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
            return err_set(err, ERR_INPUT, folder, "expected a folder of headers (scenario.include, -I), found none");
        char place[600], itself[602];
        snprintf(itself, sizeof itself, "%s/.", folder); /* it may be a link */
        if ((job->mirror[0] && build_place(job, itself, place) == 0 && add_given(job, "-I", place, err) != 0) ||
            add_given(job, "-I", folder, err) != 0)
            return -1;
    }
    return 0;
}

static int add_flags(struct build_job *job, struct err *err)
{
    char word[sizeof((struct scenario *)NULL)->flags];
    bool dropped = false, with_value = false;
    for (const char *list = job->request->flags; list && *list && value_next(&list, word, sizeof word);) {
        /* "-Xptxas -v" and "-maxrregcount 64" go as a whole. */
        if (dropped && (with_value || word[0] != '-')) {
            dropped = false;
            continue;
        }
        dropped = job->tools->lacks_flag && job->tools->lacks_flag(word);
        with_value = strncmp(word, "-X", 2) == 0;
        const bool links =
            !dropped && (strncmp(word, "-l", 2) == 0 || strncmp(word, "-L", 2) == 0 || strncmp(word, "-Wl,", 4) == 0) &&
            strcmp(word, "-lineinfo") != 0;
        const char *kept = links && job->n_link_arguments < BUILD_LINK_ARGUMENTS_MAX ? keep_given(job, "", word) : NULL;
        if (links && !kept)
            return err_set(err, ERR_INPUT, job->request->kernel, "its flags for the linker are too many");
        if (links)
            job->link_arguments[job->n_link_arguments++] = kept;
        else if (!dropped && add_given(job, "", word, err) != 0)
            return -1;
    }
    return 0;
}

/* A header as its includer finds it: beside it, or in the user's folders. NULL: in neither; it is to be freed. */
static char *read_header(const struct build_request *request, const char *includer, const char *name, char *path)
{
    struct err none = {0};
    char folder[600], *text;
    snprintf(path, PATH_MAX, "%.*s%s", path_folder(includer), includer, name);
    if (cache_read_text(path, "a header", &text, &none) == 0)
        return text;
    for (const char *list = request->include; list && *list && value_next(&list, folder, sizeof folder);) {
        snprintf(path, PATH_MAX, "%s/%s", folder, name);
        if (cache_read_text(path, "a header", &text, &none) == 0)
            return text;
    }
    return NULL;
}

/* Whether a source or a header of its own asks for its instance. */
static bool asks_for_instance(const struct build_request *request, const char *source, const char *path, int depth)
{
    if (strstr(source, "asc_built_for"))
        return true;
    for (const char *at = source; depth > 0 && (at = strstr(at, "#include \"")) != NULL;) {
        at += strlen("#include \"");
        char header[PATH_MAX], name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\"\n"), at);
        if (strcmp(name, "attnscope.h") == 0) /* which has it for those that ask */
            continue;
        char *text = read_header(request, path, name, header);
        const bool asks = text && asks_for_instance(request, text, header, depth - 1);
        free(text);
        if (asks)
            return true;
    }
    return false;
}

int build_collect_arguments(struct build_job *job, struct err *err)
{
    enum { HEADER_DEPTH = 2 };
    static const char *const modes[] = {"-DASC_MODE=0", "-DASC_MODE=1", "-DASC_MODE=2", "-DASC_MODE=1"};
    const char *root = job->paths->root;
    job->n_arguments = job->n_flags = job->n_link_arguments = 0;
    job->n_given = 0;
    build_add(job, job->compiler);
    job->tools->add_arguments(job);
    build_add(job, modes[job->request->probes]);
    build_add(job, "-DASC_BUILD=1");
    if (job->request->probes == PROBES_SWITCHED)
        build_add(job, "-DASC_SWITCHED=1");
    if (job->request->writers && job->request->backend == BACKEND_GPU)
        build_add(job, "-DASC_WRITERS=1");
    if (job->request->backend == BACKEND_GPU)
        build_add(job, job->request->staging ? "-DASC_STAGING=1" : "-DASC_STAGING=0");
    /* Only where it changes anything, or every shape would be a build of its own. */
    if (job->request->head_dim > 0 &&
        asks_for_instance(job->request, job->out->source, job->request->kernel, HEADER_DEPTH)) {
        build_add_path(job, "-DASC_ONLY_DTYPE=%d", job->request->dtype);
        build_add_path(job, "-DASC_ONLY_HEAD_DIM=%d", job->request->head_dim);
    }
    build_add_path(job, "-I%.*s", path_folder(job->own[0]) - 1, job->own[0]);
    build_add_path(job, "-I%s/engine/standin/include", root);
    if (add_include(job, err))
        return -1;
    build_add_path(job, "-I%s", root);
    return add_defines(job, err) || add_flags(job, err) ? -1 : 0;
}
