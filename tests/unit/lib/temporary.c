#include "tests/unit/lib/temporary.h"

#include <stdio.h>
#include <stdlib.h>

char *temporary(char *path, const char *name)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, TEMPORARY, "%s/attnscope-%s-XXXXXX", folder && *folder ? folder : "/tmp", name);
    return path;
}
