#include "engine/base/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *path, const char *key, unsigned long long *out)
{
    char line[128];
    bool known = false;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!known && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) {
            char *end = NULL;
            *out = strtoull(line + strlen(key), &end, 10);
            known = end != line + strlen(key); /* a control group without a limit says "max" */
        }
    fclose(file);
    return known;
}

int memory_check(uint64_t bytes, const char *where, const char *advice, struct err *err)
{
    unsigned long long free_kib, limit, used;
    if (!read_number("/proc/meminfo", "MemAvailable:", &free_kib))
        return 0;
    if (read_number("/sys/fs/cgroup/memory.max", "", &limit) &&
        read_number("/sys/fs/cgroup/memory.current", "", &used)) {
        const unsigned long long rest_kib = limit > used ? (limit - used) / 1024 : 0;
        free_kib = rest_kib < free_kib ? rest_kib : free_kib;
    }
    if (bytes / 1024 <= free_kib)
        return 0;
    return err_set(err, ERR_SYSTEM, where, "takes %llu MiB, only %llu MiB of memory are free; %s",
                   (unsigned long long)(bytes >> 20), free_kib >> 10, advice);
}
