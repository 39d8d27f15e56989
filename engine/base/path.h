#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <string.h>

/* What stands behind the last slash of a path. */
static inline const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
