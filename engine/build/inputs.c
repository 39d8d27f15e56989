#include "engine/build/inputs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    char *path; /* owned */
    struct timespec modified;
    off_t size;
    dev_t device;
    ino_t inode;
};

struct build_inputs {
    struct file *files; /* owned, [n] */
    size_t n;
    char signature[33];
    char compilers[2][600]; /* where they were found: another one of that name may come before it in PATH */
    char names[2][600];
};

static int look(const char *path, struct file *out)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return -1;
    out->modified = status.st_mtim;
    out->size = S_ISDIR(status.st_mode) ? 0 : status.st_size;
    out->device = status.st_dev;
    out->inode = status.st_ino;
    return 0;
}

static bool same(const struct file *a, const struct file *b)
{
    return a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec &&
           a->size == b->size && a->device == b->device && a->inode == b->inode;
}

/* Each path once; -1: it cannot be relied on. */
static int add(struct build_inputs *in, const char *path, size_t length)
{
    for (size_t i = 0; i < in->n; i++)
        if (strncmp(in->files[i].path, path, length) == 0 && !in->files[i].path[length])
            return 0;
    struct file *files = realloc(in->files, (in->n + 1) * sizeof *files);
    if (!files)
        return -1;
    in->files = files;
    struct file *file = &files[in->n];
    file->path = strndup(path, length);
    if (!file->path)
        return -1;
    if (look(file->path, file) != 0) {
        free(file->path);
        return -1;
    }
    in->n++;
    return 0;
}

/* A file, and the folder it stands in: a new file there may come before another one in the search. */
static int add_with_folder(struct build_inputs *in, const char *path, size_t length)
{
    size_t folder = length;
    while (folder > 0 && path[folder - 1] != '/')
        folder--;
    if (add(in, path, length) != 0)
        return -1;
    return folder > 1 ? add(in, path, folder - 1) : folder == 1 ? add(in, "/", 1) : add(in, ".", 1);
}

/* # 12 "file" 1 3: the compiler escapes quotes and backslashes in names, which then are not relied on. Nothing here
   looks for the end of the text, which is megabytes, from every line. */
static int add_markers(struct build_inputs *in, const char *text, const char *source)
{
    const char *const end = text + strlen(text);
    for (const char *line = text, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        if (next - line < 6 || (memcmp(line, "# ", 2) != 0 && memcmp(line, "#line ", 6) != 0))
            continue;
        const char *open = memchr(line, '"', (size_t)(next - line)), *name = open ? open + 1 : NULL;
        const char *close = open ? memchr(name, '"', (size_t)(next - name)) : NULL;
        if (!close)
            continue;
        const size_t length = (size_t)(close - name);
        if (memchr(name, '\\', length))
            return -1;
        if (length == 0 || name[0] == '<' || name[length - 1] == '/')
            continue; /* <built-in>, and the folder the compiler ran in */
        if (strlen(source) == length && memcmp(name, source, length) == 0)
            continue;
        if (add_with_folder(in, name, length) != 0)
            return -1;
    }
    return 0;
}

static int add_search_folders(struct build_inputs *in, const char *const *arguments, int n)
{
    for (int i = 1; i < n; i++) {
        const char *folder = NULL;
        if (strncmp(arguments[i], "-I", 2) == 0 && arguments[i][2])
            folder = arguments[i] + 2;
        else if (strcmp(arguments[i - 1], "-iquote") == 0 || strcmp(arguments[i - 1], "-isystem") == 0)
            folder = arguments[i];
        if (folder && add(in, folder, strlen(folder)) != 0)
            return -1;
    }
    /* A folder that is not there may come to be. */
    static const char *const variables[] = {"CPATH", "CPLUS_INCLUDE_PATH"};
    for (int i = 0; i < 2; i++) {
        const char *at = getenv(variables[i]);
        while (at && *at) {
            const size_t length = strcspn(at, ":");
            if (length && add(in, at, length) != 0)
                return -1;
            at += length + (at[length] == ':');
        }
    }
    return 0;
}

/* Where execvp() finds a program. */
static int find_program(const char *name, char *out, size_t size)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/'))
        return (size_t)snprintf(out, size, "%s", name) < size ? 0 : -1;
    while (path && *path) {
        const size_t n = strcspn(path, ":");
        if ((size_t)snprintf(out, size, "%.*s/%s", n ? (int)n : 1, n ? path : ".", name) < size &&
            access(out, X_OK) == 0)
            return 0;
        path += n + (path[n] == ':');
    }
    return -1;
}

void build_tool_identity(const char *name, char *out, size_t size)
{
    char path[600];
    struct file file;
    out[0] = '\0';
    if (find_program(name, path, sizeof path) == 0 && look(path, &file) == 0)
        snprintf(out, size, "%s %lld %lld.%09ld", path, (long long)file.size, (long long)file.modified.tv_sec,
                 file.modified.tv_nsec);
}

/* The compiler, and g++, which nvcc calls and which links. */
static int add_compilers(struct build_inputs *in, const char *compiler)
{
    const char *const names[2] = {compiler, "g++"};
    for (int i = 0; i < 2; i++) {
        if ((size_t)snprintf(in->names[i], sizeof in->names[i], "%s", names[i]) >= sizeof in->names[i] ||
            find_program(names[i], in->compilers[i], sizeof in->compilers[i]) != 0 ||
            add(in, in->compilers[i], strlen(in->compilers[i])) != 0)
            return -1;
    }
    return 0;
}

/* Whether nothing is younger than `began` less a tick of the file system's clock, 10 ms at most, and then some. */
static bool settled(const struct build_inputs *in, const struct timespec *began)
{
    struct timespec limit = *began;
    limit.tv_nsec -= 50000000;
    if (limit.tv_nsec < 0) {
        limit.tv_nsec += 1000000000;
        limit.tv_sec--;
    }
    for (size_t i = 0; i < in->n; i++) {
        const struct timespec *t = &in->files[i].modified;
        if (t->tv_sec > limit.tv_sec || (t->tv_sec == limit.tv_sec && t->tv_nsec >= limit.tv_nsec))
            return false;
    }
    return true;
}

struct build_inputs *build_inputs_new(const char *text, const char *source, const char *const *arguments, int n,
                                      const char *library, const char *signature, const struct timespec *began)
{
    struct build_inputs *in = calloc(1, sizeof *in);
    if (!in)
        return NULL;
    snprintf(in->signature, sizeof in->signature, "%s", signature);
    if (add_markers(in, text, source) != 0 || add_search_folders(in, arguments, n) != 0 ||
        add_compilers(in, arguments[0]) != 0 || add(in, library, strlen(library)) != 0 || !settled(in, began)) {
        build_inputs_free(in);
        return NULL;
    }
    return in;
}

struct build_inputs *build_inputs_copy(const struct build_inputs *inputs)
{
    struct build_inputs *copy = inputs ? malloc(sizeof *copy) : NULL;
    if (!copy)
        return NULL;
    *copy = *inputs;
    copy->n = 0;
    copy->files = calloc(inputs->n + 1, sizeof *copy->files);
    for (size_t i = 0; copy->files && i < inputs->n; i++) {
        copy->files[i] = inputs->files[i];
        copy->files[i].path = strdup(inputs->files[i].path);
        if (!copy->files[i].path)
            break;
        copy->n++;
    }
    if (copy->n != inputs->n) {
        build_inputs_free(copy);
        return NULL;
    }
    return copy;
}

void build_inputs_free(struct build_inputs *inputs)
{
    if (!inputs)
        return;
    for (size_t i = 0; i < inputs->n; i++)
        free(inputs->files[i].path);
    free(inputs->files);
    free(inputs);
}

bool build_inputs_unchanged(const struct build_inputs *inputs, const char *signature)
{
    char found[600];
    struct file now;
    if (!inputs || strcmp(inputs->signature, signature) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        if (find_program(inputs->names[i], found, sizeof found) != 0 || strcmp(found, inputs->compilers[i]) != 0)
            return false;
    for (size_t i = 0; i < inputs->n; i++)
        if (look(inputs->files[i].path, &now) != 0 || !same(&now, &inputs->files[i]))
            return false;
    return true;
}

/* Whether the flags behind a marker's name say that a file begins (1) and that it is no system header (3). */
static bool enters(const char *flags, const char *end)
{
    bool begins = false;
    for (; flags < end; flags++) {
        if (*flags == '3')
            return false;
        begins |= *flags == '1';
    }
    return begins;
}

static bool begins_with(const char *path, size_t n, const char *folder)
{
    const size_t length = strlen(folder);
    return n > length && memcmp(path, folder, length) == 0;
}

void user_files_tell(const char *text, const char *const *own_folders, void (*reads)(void *ctx, const char *path),
                     void *ctx)
{
    const char *const end = text + strlen(text);
    for (const char *line = text, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        if (next - line < 6 || memcmp(line, "# ", 2) != 0)
            continue;
        const char *open = memchr(line, '"', (size_t)(next - line)), *name = open ? open + 1 : NULL;
        const char *close = open ? memchr(name, '"', (size_t)(next - name)) : NULL;
        const size_t n = close ? (size_t)(close - name) : 0;
        /* The compiler escapes quotes and backslashes in names: such a file is not told. */
        if (!n || n >= PATH_MAX || memchr(name, '\\', n) || *name == '<' || !enters(close + 1, next) ||
            begins_with(name, n, "/usr/"))
            continue;
        int own = 0;
        for (const char *const *folder = own_folders; *folder && !own; folder++)
            own = begins_with(name, n, *folder);
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.*s", (int)n, name);
        if (!own)
            reads(ctx, path);
    }
}
