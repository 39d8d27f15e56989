#include "engine/base/path.h"
#include "engine/build/cache.h"
#include "engine/build/runner.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_root(const char *folder)
{
    char probe[PATH_MAX];
    int n = snprintf(probe, sizeof probe, "%s/probes/attnscope.h", folder);
    return n > 0 && (size_t)n < sizeof probe && access(probe, R_OK) == 0;
}

static int copy_path(char *to, size_t size, const char *what, const char *from, struct err *err)
{
    int n = snprintf(to, size, "%s", from);
    if (n < 0 || (size_t)n >= size)
        return err_set(err, ERR_SYSTEM, from, "the path of %s is longer than %zu bytes", what, size - 1);
    return 0;
}

static int find_root(struct runner_paths *paths, struct err *err)
{
    const char *given = getenv("ATTNSCOPE_ROOT");
    char folder[PATH_MAX];
    if (given && *given) {
        if (!is_root(given))
            return err_set(err, ERR_SYSTEM, given, "ATTNSCOPE_ROOT does not hold probes/attnscope.h");
        if (!realpath(given, folder))
            return err_errno(err, given, "ATTNSCOPE_ROOT");
        return copy_path(paths->root, sizeof paths->root, "attnscope's own files", folder, err);
    }
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n < 0)
        return err_errno(err, "/proc/self/exe", "cannot tell where attnscope is");
    folder[n] = '\0';
    /* In a source tree the files lie above the program; `make install` puts them beside bin/. */
    while (path_up(folder)) {
        char installed[PATH_MAX + 32];
        if (is_root(folder))
            return copy_path(paths->root, sizeof paths->root, "attnscope's own files", folder, err);
        snprintf(installed, sizeof installed, "%s/share/attnscope", folder);
        if (is_root(installed))
            return copy_path(paths->root, sizeof paths->root, "attnscope's own files", installed, err);
    }
    return err_set(err, ERR_SYSTEM, "",
                   "attnscope's files were not found above the program: set ATTNSCOPE_ROOT to the folder that contains "
                   "probes/attnscope.h");
}

/* Makes a folder and those above it; 0 if it can then be written. */
static int make_folder(const char *path)
{
    char part[PATH_MAX];
    int n = snprintf(part, sizeof part, "%s", path);
    if (n < 0 || (size_t)n >= sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (char *c = part + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = '\0';
        if (mkdir(part, 0755) && errno != EEXIST)
            return -1;
        *c = '/';
    }
    if (mkdir(part, 0755) && errno != EEXIST)
        return -1;
    return access(part, W_OK | X_OK);
}

static int find_cache(struct runner_paths *paths, struct err *err)
{
    char folder[PATH_MAX];
    const char *given = getenv("ATTNSCOPE_CACHE");
    if (given && *given) {
        if (make_folder(given))
            return err_errno(err, given, "ATTNSCOPE_CACHE cannot be written");
        if (!realpath(given, folder))
            return err_errno(err, given, "ATTNSCOPE_CACHE");
        return copy_path(paths->cache, sizeof paths->cache, "the cache", folder, err);
    }
    /* A source tree that was built keeps its own; an installed one has no build/. */
    snprintf(folder, sizeof folder, "%s/build", paths->root);
    const bool built = access(folder, W_OK | X_OK) == 0;
    snprintf(folder, sizeof folder, "%s/build/cache", paths->root);
    if (built && make_folder(folder) == 0)
        return copy_path(paths->cache, sizeof paths->cache, "the cache", folder, err);
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (xdg && *xdg == '/')
        snprintf(folder, sizeof folder, "%s/attnscope", xdg);
    else if (home && *home == '/')
        snprintf(folder, sizeof folder, "%s/.cache/attnscope", home);
    else
        return err_set(err, ERR_SYSTEM, folder, "no build folder is writable: set ATTNSCOPE_CACHE to a folder");
    if (make_folder(folder))
        return err_errno(err, folder, "no build folder is writable (ATTNSCOPE_CACHE sets another)");
    return copy_path(paths->cache, sizeof paths->cache, "the cache", folder, err);
}

int runner_find_paths(struct runner_paths *paths, struct err *err)
{
    *paths = (struct runner_paths){0};
    if (find_root(paths, err) || find_cache(paths, err) || cache_check_owner(paths->cache, paths->root, err)) {
        *paths = (struct runner_paths){0};
        return -1;
    }
    return 0;
}

const char *runner_short_path(const char *path)
{
    char folder[512];
    if (!getcwd(folder, sizeof folder))
        return path;
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

int runner_find_built(const struct runner_paths *paths, const char *name, char *path, size_t size, struct err *err)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    path_up(exe);
    static const char *const beside[] = {"", "../", "../lib/attnscope/"};
    for (int i = 0; i < 4; i++) {
        int length = i < 3 ? snprintf(path, size, "%s/%s%s", exe, beside[i], name)
                           : snprintf(path, size, "%s/build/%s", paths->root, name);
        if (length > 0 && (size_t)length < size && access(path, R_OK) == 0)
            return 0;
    }
    return err_set(err, ERR_SYSTEM, path, "is not built: run `make`");
}
