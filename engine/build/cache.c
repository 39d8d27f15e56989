#include "engine/build/cache.h"

#include "engine/base/leftovers.h"
#include "engine/base/replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define TEXT_MAX (64u << 20)
#define WORK_PREFIX "work."
#define LOCKS "being-made" /* a file of which one byte is locked for each program */
#define ORPHAN_AGE_S 10.0

struct cache_key {
    XXH3_state_t *state; /* owned */
};

struct cache_key *cache_key_new(void)
{
    struct cache_key *key = calloc(1, sizeof *key);
    if (!key)
        return NULL;
    key->state = XXH3_createState();
    if (!key->state || XXH3_128bits_reset(key->state) == XXH_ERROR) {
        cache_key_finish(key, NULL);
        return NULL;
    }
    return key;
}

void cache_key_add(struct cache_key *key, const void *bytes, size_t n)
{
    const uint64_t length = n;
    XXH3_128bits_update(key->state, &length, sizeof length);
    XXH3_128bits_update(key->state, bytes, n);
}

void cache_key_add_text(struct cache_key *key, const char *text)
{
    cache_key_add(key, text, strlen(text));
}

int cache_key_add_file(struct cache_key *key, const char *path, struct err *err)
{
    char bytes[65536];
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_errno(err, path, "cannot read");
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0)
        cache_key_add(key, bytes, n);
    int failed = ferror(f) ? err_errno(err, path, "cannot read") : 0;
    fclose(f);
    return failed;
}

void cache_key_finish(struct cache_key *key, char hex[33])
{
    if (!key)
        return;
    if (hex) {
        XXH128_hash_t hash = XXH3_128bits_digest(key->state);
        snprintf(hex, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    }
    XXH3_freeState(key->state);
    free(key);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    remove(path);
    return 0;
}

void cache_remove_folder(const char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Locks a folder for as long as the descriptor is open; -1: somebody else has it, or it cannot be had. */
static int lock_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Folders whose builders were killed. One that is a moment old may not be locked yet. */
static void remove_orphans(const char *cache)
{
    DIR *d = opendir(cache);
    if (!d)
        return;
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        char folder[800];
        struct stat info;
        if (strncmp(entry->d_name, WORK_PREFIX, strlen(WORK_PREFIX)) != 0 ||
            strlen(entry->d_name) != strlen(WORK_PREFIX "XXXXXX") ||
            fstatat(dirfd(d), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(info.st_mode) ||
            difftime(time(NULL), info.st_mtime) < ORPHAN_AGE_S)
            continue;
        const int n = snprintf(folder, sizeof folder, "%s/%s", cache, entry->d_name);
        const int lock = n > 0 && (size_t)n < sizeof folder ? lock_folder(folder) : -1;
        if (lock < 0)
            continue;
        cache_remove_folder(folder);
        close(lock);
    }
    closedir(d);
}

int cache_make_work(const char *cache, struct cache_work *work, struct err *err)
{
    work->lock = -1;
    remove_orphans(cache);
    const int n = snprintf(work->folder, sizeof work->folder, "%s/" WORK_PREFIX "XXXXXX", cache);
    if (n < 0 || (size_t)n >= sizeof work->folder)
        return err_set(err, ERR_SYSTEM, cache, "the path of the cache is too long");
    if (!mkdtemp(work->folder))
        return err_errno(err, cache, "cannot create a build folder");
    leftovers_add_path(work->folder);
    work->lock = lock_folder(work->folder); /* without locks the folder is removed by this program alone */
    return 0;
}

void cache_drop_work(struct cache_work *work)
{
    cache_remove_folder(work->folder);
    leftovers_remove_path(work->folder);
    if (work->lock >= 0)
        close(work->lock);
    work->lock = -1;
}

int cache_open_locks(const char *cache)
{
    char path[700];
    const int n = snprintf(path, sizeof path, "%s/" LOCKS, cache);
    return n < 0 || (size_t)n >= sizeof path ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

bool cache_is_being_made(int locks, const char hex[33])
{
    char first[16] = "";
    memcpy(first, hex, 15); /* 60 bits of the key are an offset; two keys of one offset wait for each other, no more */
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = strtoll(first, NULL, 16), .l_len = 1};
    return fcntl(locks, F_OFD_SETLK, &byte) != 0 && (errno == EAGAIN || errno == EACCES);
}

int cache_keep(const char *file, const char *path, struct err *err)
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    failed = failed || rename(file, path) != 0;
    return failed ? err_errno(err, path, "cannot write the debuggee to the cache") : 0;
}

int cache_check_owner(const char *cache, const char *root, struct err *err)
{
    struct stat info, own;
    if (stat(cache, &info) != 0)
        return err_errno(err, cache, "cannot be inspected");
    if (info.st_uid != geteuid() && info.st_uid != 0 && (stat(root, &own) != 0 || own.st_uid != info.st_uid))
        return err_set(err, ERR_SYSTEM, cache,
                       "belongs to another user, who could place programs there for attnscope to run: set "
                       "ATTNSCOPE_CACHE to a folder of your own");
    /* With a group for each user, the group's right is the user's own. */
    if ((info.st_mode & S_IWOTH) || ((info.st_mode & S_IWGRP) && info.st_gid != getegid()))
        return err_set(err, ERR_SYSTEM, cache,
                       "is writable by others, who could place programs there for attnscope to run: chmod go-w it, or "
                       "set ATTNSCOPE_CACHE to a folder of your own");
    return 0;
}

int cache_read_text(const char *path, const char *what, char **text, struct err *err)
{
    struct stat info;
    *text = NULL;
    FILE *f = fopen(path, "rbe");
    if (!f && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return err_set(err, ERR_INPUT, path, "cannot read %s: %s", what, strerror(errno));
    if (!f)
        return err_errno(err, path, "cannot read %s", what);
    int failed = 0;
    if (fstat(fileno(f), &info) || !S_ISREG(info.st_mode))
        failed = err_set(err, ERR_INPUT, path, "%s is not a regular file", what);
    else if (info.st_size > (off_t)TEXT_MAX)
        failed = err_set(err, ERR_INPUT, path, "%s is larger than %u MiB", what, TEXT_MAX >> 20);
    size_t size = failed ? 0 : (size_t)info.st_size;
    if (!failed && !(*text = malloc(size + 1)))
        failed = err_errno(err, path, "memory for %s", what);
    if (!failed) {
        size_t n = fread(*text, 1, size, f);
        (*text)[n] = '\0';
        if (ferror(f))
            failed = err_errno(err, path, "cannot read %s", what);
        else if (strlen(*text) != n)
            failed = err_set(err, ERR_INPUT, path, "%s is not text: it holds a NUL byte", what);
    }
    fclose(f);
    if (failed) {
        free(*text);
        *text = NULL;
    }
    return failed;
}

int cache_write_text(const char *folder, const char *name, const char *text, struct err *err)
{
    char path[700];
    struct replacement r;
    if (mkdir(folder, 0755) && errno != EEXIST)
        return err_errno(err, folder, "cannot create the folder");
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_set(err, ERR_SYSTEM, folder, "the path is too long for %s", name);
    if (replace_open(&r, path, 0644, err) != 0)
        return -1;
    fputs(text, r.file); /* replace_commit() says what failed */
    return replace_commit(&r, err);
}

/* Every edit of a kernel leaves another program behind: the cache keeps the newest and forgets the rest. */

#define HEX_CHARS 32 /* of a key */

struct entry {
    char name[256];
    time_t used;
};

/* Only what this cache makes itself: a user may have pointed it at a folder that holds more. */
static bool is_ours(const char *name)
{
    size_t n = strlen(name);
    return n > HEX_CHARS + 1 && name[n - HEX_CHARS - 1] == '-' &&
           strspn(name + n - HEX_CHARS, "0123456789abcdef") == HEX_CHARS;
}

static int by_age(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return (x->used < y->used) - (x->used > y->used); /* newest first */
}

static size_t list(DIR *d, struct entry **entries)
{
    size_t n = 0, room = 0;
    for (struct dirent *item = readdir(d); item; item = readdir(d)) {
        struct stat info;
        if (!is_ours(item->d_name) || fstatat(dirfd(d), item->d_name, &info, AT_SYMLINK_NOFOLLOW))
            continue;
        if (n == room) {
            struct entry *more = realloc(*entries, (room = 2 * room + 64) * sizeof *more);
            if (!more)
                break; /* some stay a while longer */
            *entries = more;
        }
        snprintf((*entries)[n].name, sizeof(*entries)[n].name, "%s", item->d_name);
        (*entries)[n++].used = info.st_mtime;
    }
    return n;
}

void cache_prune(const char *cache, size_t keep, double min_age_s)
{
    struct entry *entries = NULL;
    DIR *d = opendir(cache);
    if (!d)
        return;
    size_t n = list(d, &entries);
    if (n > keep)
        qsort(entries, n, sizeof *entries, by_age);
    for (size_t i = keep; i < n; i++) {
        char path[800];
        if (difftime(time(NULL), entries[i].used) < min_age_s)
            continue; /* another attnscope may be about to start it */
        snprintf(path, sizeof path, "%s/%s", cache, entries[i].name);
        if (unlink(path) && errno == EISDIR)
            cache_remove_folder(path);
        snprintf(path + strlen(path), sizeof path - strlen(path), "%s", CACHE_WORDS);
        unlink(path);
    }
    free(entries);
    closedir(d);
}

void cache_touch(const char *path)
{
    utimensat(AT_FDCWD, path, NULL, 0); /* a cache that cannot be written need not be pruned either */
}
