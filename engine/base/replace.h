/* A file that is written whole or not at all: until replace_commit() its path holds what it held before, and a program
   that is killed leaves nothing beside it where the file system knows files without a name (O_TMPFILE). */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H

#include "engine/base/err.h"
#include <limits.h>
#include <stdio.h>

struct replacement {
    FILE *file;          /* owned: write to it; NULL: nothing is open */
    const char *path;    /* borrowed */
    char name[PATH_MAX]; /* of the new file beside path; "": it has none yet */
};

/* mode: permissions before the umask. ERR_SYSTEM. */
int replace_open(struct replacement *r, const char *path, unsigned mode, struct err *err);
/* Makes what was written durable and puts it at the path. -1: something could not be written, nothing has changed. */
int replace_commit(struct replacement *r, struct err *err);
void replace_drop(struct replacement *r); /* of one that was not committed; also after a failed replace_open() */

#endif
