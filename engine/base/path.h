#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>
#include <string.h>

/* What stands behind the last slash of a path. */
static inline const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* How many bytes of a path are its folder, with the last slash; 0: it has none. */
static inline int path_folder(const char *path)
{
    return (int)(path_name(path) - path);
}

/* Cuts the last name and its slash off; false: there is no slash. */
static inline bool path_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

static inline bool path_ends_in(const char *path, const char *suffix)
{
    const size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

#endif
