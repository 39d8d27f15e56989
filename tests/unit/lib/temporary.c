#include "tests/unit/lib/temporary.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[TEMPORARY / 2];
static pid_t owner;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    (void)remove(path);
    return 0;
}

/* What the test forks may end by exit() as well. */
static void remove_folder(void)
{
    if (getpid() == owner)
        (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool has_folder(void)
{
    if (owner)
        return true;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/attnscope-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        return false;
    owner = getpid();
    return atexit(remove_folder) == 0;
}

char *temporary(char *path, const char *name)
{
    if (!has_folder()) {
        perror(folder);
        exit(1);
    }
    snprintf(path, TEMPORARY, "%s/%s-XXXXXX", folder, name);
    return path;
}
