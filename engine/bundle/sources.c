/* The user's sources. They lie in the bundle as they lie to each other. */
#include "engine/base/path.h"
#include "engine/bundle/parts.h"
#include "engine/scenario/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCES "source"

static int add_source(struct sources *s, const char *path, const char *text, struct err *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->at[i].path, path) == 0)
            return 0;
    struct source_file *more = realloc(s->at, (s->n + 1) * sizeof *more);
    if (!more)
        return err_no_memory(err, path, "the list of sources");
    s->at = more;
    more[s->n].text = text;
    more[s->n].path = strdup(path);
    if (!more[s->n].path)
        return err_no_memory(err, path, "the list of sources");
    s->n++;
    return 0;
}

static bool lies_in(const char *path, const char *folder)
{
    const size_t n = strlen(folder);
    return n && strncmp(path, folder, n) == 0 && (path[n] == '/' || folder[n - 1] == '/');
}

/* attnscope's own headers and CUDA's, whatever way they were found. */
static bool is_own(const struct runner_paths *paths, const char *path)
{
    char header[600], toolkit[600], real[PATH_MAX], below[700];
    if (runner_find_built(paths, "include/attnscope.h", header, sizeof header, NULL) == 0 && realpath(header, real)) {
        path_up(real);
        if (lies_in(path, real))
            return true;
    }
    build_gpu_toolkit(toolkit, sizeof toolkit);
    if (toolkit[0] && realpath(toolkit, real) && lies_in(path, real))
        return true;
    static const char *const folders[] = {"engine", "probes"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(below, sizeof below, "%s/%s", paths->root, folders[i]);
        if (lies_in(path, below))
            return true;
    }
    return lies_in(path, "/usr");
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct source_file *)a)->path, ((const struct source_file *)b)->path);
}

/* The folder that all of them lie in, without a slash at its end. */
static void narrow(char root[PATH_MAX], const char *path, bool first)
{
    if (first) {
        snprintf(root, PATH_MAX, "%s", path);
        return;
    }
    while (*root && strcmp(root, path) != 0 && !lies_in(path, root))
        path_up(root);
}

static void folder_of(const char *path, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.*s", path_folder(path) - 1, path);
}

bool sources_hold(const struct sources *s, const char *folder)
{
    for (size_t i = 0; i < s->n; i++)
        if (lies_in(s->at[i].path, folder))
            return true;
    return false;
}

/* Folders of headers count where a packed file lies in them: they have to have a place of their own. */
static void find_root(struct sources *s, const char *includes)
{
    char folder[PATH_MAX], word[PATH_MAX], real[PATH_MAX];
    for (size_t i = 0; i < s->n; i++) {
        folder_of(s->at[i].path, folder);
        narrow(s->root, folder, i == 0);
    }
    while (value_next(&includes, word, sizeof word))
        if (realpath(word, real) && sources_hold(s, real))
            narrow(s->root, real, false);
}

static void take_read(const struct bundle_subject *of, struct sources *s, const char *path, struct err *err)
{
    char real[PATH_MAX];
    if (err->code == ERR_NONE && realpath(path, real) && !is_own(of->paths, real))
        add_source(s, real, NULL, err);
}

int sources_of_build(const struct bundle_subject *of, struct sources *s, struct err *err)
{
    char real[PATH_MAX];
    struct err why = {0};
    if (!realpath(of->scenario->kernel, real))
        return err_errno(err, of->scenario->kernel, "cannot be packed");
    snprintf(s->kernel, sizeof s->kernel, "%s", real);
    if (add_source(s, real, NULL, err) != 0)
        return -1;
    for (size_t i = 0; i < of->n_reads; i++)
        take_read(of, s, of->reads[i], &why);
    if (why.code != ERR_NONE) {
        *err = why;
        return -1;
    }
    qsort(s->at, s->n, sizeof *s->at, by_path);
    find_root(s, of->scenario->include);
    return 0;
}

/* What a text may include, while it is looked for. */
struct looking {
    const struct runner_paths *paths;
    const struct scenario *scenario;
    struct sources *sources;
    struct err *err;
};

static bool take_named(struct looking *l, const char *folder, const char *name, size_t n)
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat status;
    const int length =
        snprintf(path, sizeof path, "%s%s%.*s", *name == '/' ? "" : folder, *name == '/' ? "" : "/", (int)n, name);
    if (length < 0 || (size_t)length >= sizeof path || !realpath(path, real) || stat(real, &status) != 0 ||
        !S_ISREG(status.st_mode))
        return false;
    if (!is_own(l->paths, real) && l->err->code == ERR_NONE)
        add_source(l->sources, real, NULL, l->err);
    return true;
}

/* name, with the quote or bracket before it: in the file's own folder, then where the scenario says. */
static void take_include(struct looking *l, const char *folder, const char *name, size_t n)
{
    const char *includes = l->scenario->include;
    char word[PATH_MAX];
    if (name[-1] == '"' && take_named(l, folder, name, n))
        return;
    while (value_next(&includes, word, sizeof word))
        if (take_named(l, word, name, n))
            return;
}

/* #include lines, and in a patch those that it adds. */
static void take_includes(struct looking *l, const char *folder, const char *text)
{
    for (const char *line = text; *line; line = strchrnul(line, '\n'), line += *line == '\n') {
        const char *at = line + (*line == '+');
        at += strspn(at, " \t");
        if (*at != '#')
            continue;
        at += 1 + strspn(at + 1, " \t");
        if (strncmp(at, "include", 7) != 0)
            continue;
        at += 7 + strspn(at + 7, " \t");
        const char *close = *at == '"' || *at == '<' ? strpbrk(at + 1, *at == '"' ? "\"\n" : ">\n") : NULL;
        if (close && *close != '\n' && close > at + 1)
            take_include(l, folder, at + 1, (size_t)(close - at - 1));
    }
}

/* ASC_SOURCES("merge.cu", ...): paths from the kernel's folder. */
static void take_sources(struct looking *l, const char *folder, const char *text)
{
    for (const char *at = text; (at = strstr(at, "ASC_SOURCES"));) {
        at += strlen("ASC_SOURCES");
        at += strspn(at, " \t\n");
        const char *end = *at == '(' ? strchr(at, ')') : NULL;
        for (const char *open = end ? strchr(at, '"') : NULL; open && open < end;) {
            const char *close = strchr(open + 1, '"');
            if (!close)
                break;
            take_named(l, folder, open + 1, (size_t)(close - open - 1));
            open = strchr(close + 1, '"');
        }
    }
}

int sources_of_text(const struct runner_paths *paths, const struct scenario *scenario, struct sources *s,
                    struct err *err)
{
    struct err why = {0};
    struct looking l = {paths, scenario, s, &why};
    char folder[PATH_MAX], real[PATH_MAX], *text;
    if (!realpath(scenario->kernel, real))
        return err_errno(err, scenario->kernel, "cannot be read");
    snprintf(s->kernel, sizeof s->kernel, "%s", real);
    int failed = add_source(s, real, NULL, err);
    folder_of(s->kernel, folder);
    if (!failed && scenario->patch[0] && cache_read_text(scenario->patch, "the patch", &text, err) == 0) {
        take_includes(&l, folder, text);
        free(text);
    }
    for (size_t i = 0; i < s->n && !failed && why.code == ERR_NONE; i++) { /* those that it finds are behind it */
        failed = cache_read_text(s->at[i].path, "a source", &text, err);
        if (failed)
            break;
        folder_of(s->at[i].path, folder);
        take_includes(&l, folder, text);
        if (i == 0)
            take_sources(&l, folder, text);
        free(text);
    }
    if (!failed && why.code != ERR_NONE) {
        *err = why;
        failed = -1;
    }
    if (failed)
        return -1;
    qsort(s->at, s->n, sizeof *s->at, by_path);
    find_root(s, scenario->include);
    return 0;
}

/* A path as it reads from this folder, without looking at files: those of a trace need not be here. */
static void settle(const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(folder, sizeof folder))
        folder[0] = '\0';
    snprintf(out, PATH_MAX, "%s", folder);
    for (const char *part = path, *end; *part; part = *end ? end + 1 : end) {
        end = strchrnul(part, '/');
        const size_t n = (size_t)(end - part), used = strlen(out);
        if (n == 2 && part[0] == '.' && part[1] == '.')
            path_up(out);
        else if (n && !(n == 1 && part[0] == '.'))
            snprintf(out + used, PATH_MAX - used, "/%.*s", (int)n, part);
    }
}

int sources_of_trace(const struct trace *t, struct sources *s, struct err *err)
{
    char path[PATH_MAX];
    if (!t->info.source || !t->info.source_name[0])
        return 0;
    settle(t->info.source_name, path);
    snprintf(s->kernel, sizeof s->kernel, "%s", path);
    int failed = add_source(s, path, t->info.source, err);
    for (size_t i = 0; i < t->info.n_sources && !failed; i++) {
        settle(t->info.sources[i].file, path);
        failed = add_source(s, path, t->info.sources[i].text, err);
    }
    if (failed)
        return -1;
    qsort(s->at, s->n, sizeof *s->at, by_path);
    find_root(s, "");
    return 0;
}

bool source_place(const struct sources *s, const char *path, char *out, size_t bytes)
{
    const size_t n = strlen(s->root);
    if (strcmp(path, s->root) != 0 && !lies_in(path, n ? s->root : "/"))
        return false;
    const int length = snprintf(out, bytes, SOURCES "%s", path + n);
    return length > 0 && (size_t)length < bytes;
}

int sources_pack(const struct sources *s, struct container *out, struct err *err)
{
    char name[PATH_MAX];
    for (size_t i = 0; i < s->n; i++) {
        if (!source_place(s, s->at[i].path, name, sizeof name))
            return err_set(err, ERR_INPUT, s->at[i].path, "has too long a path to be packed");
        if (s->at[i].text ? container_add_text(out, name, s->at[i].text, false, err)
                          : container_add_file(out, name, s->at[i].path, err))
            return -1;
    }
    return 0;
}

void sources_free(struct sources *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->at[i].path);
    free(s->at);
    *s = (struct sources){0};
}
