#include "engine/build/mirror.h"

#include "engine/base/path.h"
#include "engine/build/cache.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Links to all of a folder that the tree's has not. What cannot be read is not there. */
static void fill(const char *folder, const char *own)
{
    char from[PATH_MAX], to[PATH_MAX];
    DIR *d = opendir(*folder ? folder : "/");
    for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const int n = snprintf(from, sizeof from, "%s/%s", folder, entry->d_name);
        const int n_to = snprintf(to, sizeof to, "%s/%s", own, entry->d_name);
        if (n > 0 && n_to > 0 && (size_t)n < sizeof from && (size_t)n_to < sizeof to)
            (void)!symlink(from, to); /* where it is there, it is right */
    }
    if (d)
        closedir(d);
}

/* 1: the folder was a link, or missing. */
static int make_own(const char *own, struct err *err)
{
    struct stat info;
    if (lstat(own, &info) == 0 && S_ISDIR(info.st_mode))
        return 0;
    unlink(own);
    if (mkdir(own, 0755) != 0 && errno != EEXIST)
        return err_errno(err, own, "cannot create the folder");
    return 1;
}

int mirror_add_folder(const char *root, const char *folder, struct err *err)
{
    char part[PATH_MAX], own[PATH_MAX];
    int made = 0;
    for (size_t n = 0;; n += 1 + strcspn(folder + n + 1, "/")) {
        snprintf(part, sizeof part, "%.*s", (int)n, folder);
        const int length = snprintf(own, sizeof own, "%s%s", root, part);
        if (length < 0 || (size_t)length >= sizeof own)
            return err_set(err, ERR_SYSTEM, folder, "the path is too long for a patched copy");
        made = make_own(own, err);
        if (made < 0)
            return -1;
        fill(part, own);
        if (!folder[n] || !folder[n + 1])
            return made;
    }
}

int mirror_put(const char *root, const char *path, const char *text, struct err *err)
{
    static const char name[] = ".patched";
    char from[PATH_MAX], to[PATH_MAX];
    struct stat info;
    /* By a rename, which replaces a link where writing would follow it. */
    snprintf(from, sizeof from, "%s/%s", root, name);
    const int n = snprintf(to, sizeof to, "%s%s", root, path);
    if (n < 0 || (size_t)n >= sizeof to)
        return err_set(err, ERR_SYSTEM, path, "the path is too long for a patched copy");
    if (cache_write_text(root, name, text, err) != 0)
        return -1;
    if (rename(from, to) == 0 || (lstat(to, &info) == 0 && S_ISREG(info.st_mode))) /* another attnscope was faster */
        return 0;
    return err_errno(err, to, "cannot write the patched copy");
}

size_t mirror_rename(const char *root, char *text)
{
    char folder[PATH_MAX];
    const size_t n_root = strlen(root), n_folder = getcwd(folder, sizeof folder - 1) ? strlen(folder) : 0;
    char *to = text;
    folder[n_folder] = '/';
    for (const char *at = text; *at;) {
        if (strncmp(at, root, n_root) != 0 || at[n_root] != '/') {
            *to++ = *at++;
            continue;
        }
        at += n_root;
        if (n_folder > 1 && strncmp(at, folder, n_folder + 1) == 0)
            at += n_folder + 1;
    }
    *to = '\0';
    return (size_t)(to - text);
}
