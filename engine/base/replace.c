#include "engine/base/replace.h"

#include "engine/base/leftovers.h"
#include "engine/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MAX 100 /* two saves at a time have two of them */

/* The folder of a path, with its last slash; "." where there is none. */
static int folder_of(const char *path, char folder[PATH_MAX])
{
    const size_t n = (size_t)path_folder(path);
    if (n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, n ? path : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    return 0;
}

static int next_name(struct replacement *r, int i)
{
    const int n = snprintf(r->name, sizeof r->name, "%s.partial-%ld-%d", r->path, (long)getpid(), i);
    if (n > 0 && (size_t)n < sizeof r->name)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* A file with a name beside the path, for file systems that want one. */
static int open_named(struct replacement *r, unsigned mode)
{
    int fd = -1;
    for (int i = 0; fd < 0 && i < NAMES_MAX; i++) {
        if (next_name(r, i) != 0)
            break;
        fd = open(r->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0)
        r->name[0] = '\0';
    else
        leftovers_add_path(r->name);
    return fd;
}

int replace_open(struct replacement *r, const char *path, unsigned mode, struct err *err)
{
    char folder[PATH_MAX];
    *r = (struct replacement){.path = path};
    if (folder_of(path, folder) != 0)
        return err_errno(err, path, "cannot be written");
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
        fd = open_named(r, mode);
    r->file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (r->file)
        return 0;
    err_errno(err, path, "cannot be written");
    if (fd >= 0)
        close(fd);
    replace_drop(r);
    return -1;
}

/* Gives a file without a name one beside the path: linkat() replaces nothing, rename() does. */
static int give_name(struct replacement *r)
{
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fileno(r->file));
    for (int i = 0; i < NAMES_MAX; i++) {
        if (next_name(r, i) != 0)
            break;
        if (linkat(AT_FDCWD, open_file, AT_FDCWD, r->name, AT_SYMLINK_FOLLOW) == 0) {
            leftovers_add_path(r->name);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    r->name[0] = '\0';
    return -1;
}

/* Makes the rename durable. The file itself is complete by now, so a file system that cannot do this is no failure. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const int fd = folder_of(path, folder) == 0 ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

int replace_commit(struct replacement *r, struct err *err)
{
    int failed = ferror(r->file) || fflush(r->file) != 0 || fsync(fileno(r->file)) != 0;
    failed = failed || (!r->name[0] && give_name(r) != 0);
    int why = errno;
    if (fclose(r->file) != 0 && !failed) {
        failed = 1;
        why = errno;
    }
    r->file = NULL;
    if (!failed && rename(r->name, r->path) != 0) {
        failed = 1;
        why = errno;
    }
    if (failed) {
        replace_drop(r);
        errno = why;
        return err_errno(err, r->path, "cannot be written");
    }
    leftovers_remove_path(r->name);
    sync_folder(r->path);
    return 0;
}

void replace_drop(struct replacement *r)
{
    if (r->file)
        fclose(r->file);
    r->file = NULL;
    if (!r->name[0])
        return;
    unlink(r->name);
    leftovers_remove_path(r->name);
    r->name[0] = '\0';
}
