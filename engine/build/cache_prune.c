/* Every edit of a kernel leaves another program behind: the cache keeps the newest and forgets the rest. */
#include "engine/build/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEX_CHARS 32 /* of a key */

struct entry {
    char name[256];
    time_t used;
};

/* Only what this cache makes itself: a user may have pointed it at a folder that holds more. */
static int is_ours(const char *name)
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
