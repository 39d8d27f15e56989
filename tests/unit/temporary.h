/* Where a test's files go: below TMPDIR, which tests/run empties behind each program, whatever that came to. */
#ifndef TEST_TEMPORARY_H
#define TEST_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>

enum { TEMPORARY = 256 };

/* A template for mkstemp() or mkdtemp(); path, [TEMPORARY]. */
static char *temporary(char *path, const char *name)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, TEMPORARY, "%s/attnscope-%s-XXXXXX", folder && *folder ? folder : "/tmp", name);
    return path;
}

#endif
