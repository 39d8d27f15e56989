#include "engine/runners/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define TEXT_MAX (64u << 20)

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
        return err_errno(err, path, "can not read");
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0)
        cache_key_add(key, bytes, n);
    int failed = ferror(f) ? err_errno(err, path, "can not read") : 0;
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

int cache_make_work(const char *cache, char *folder, size_t size, struct err *err)
{
    int n = snprintf(folder, size, "%s/work.XXXXXX", cache);
    if (n < 0 || (size_t)n >= size)
        return err_set(err, ERR_SYSTEM, cache, "the path of the cache is too long");
    if (!mkdtemp(folder))
        return err_errno(err, cache, "no folder for a build can be made");
    return 0;
}

void cache_drop_work(const char *folder)
{
    DIR *d = opendir(folder);
    if (d) {
        for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                unlinkat(dirfd(d), entry->d_name, 0);
        closedir(d);
    }
    rmdir(folder);
}

int cache_read_text(const char *path, const char *what, char **text, struct err *err)
{
    struct stat info;
    *text = NULL;
    FILE *f = fopen(path, "rbe");
    if (!f && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return err_set(err, ERR_INPUT, path, "can not read %s: %s", what, strerror(errno));
    if (!f)
        return err_errno(err, path, "can not read %s", what);
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
            failed = err_errno(err, path, "can not read %s", what);
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
    char path[700], temporary[740];
    if (mkdir(folder, 0777) && errno != EEXIST)
        return err_errno(err, folder, "the folder can not be made");
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_set(err, ERR_SYSTEM, folder, "the path is too long for %s", name);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, path, "can not be written");
    FILE *f = fdopen(fd, "w");
    if (!f) {
        err_errno(err, path, "can not be written");
        close(fd);
        unlink(temporary);
        return -1;
    }
    int failed = fputs(text, f) < 0;
    failed |= fchmod(fd, 0644) != 0;
    failed |= fclose(f) != 0;
    if (failed || rename(temporary, path)) {
        err_errno(err, path, "can not be written");
        unlink(temporary);
        return -1;
    }
    return 0;
}
