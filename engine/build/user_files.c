#include "engine/build/user_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* 1: the flags behind a marker's name say that a file begins (1) and that it is no system header (3). */
static int enters(const char *flags, const char *end)
{
    int begins = 0;
    for (; flags < end; flags++) {
        if (*flags == '3')
            return 0;
        begins |= *flags == '1';
    }
    return begins;
}

static int begins_with(const char *path, size_t n, const char *folder)
{
    const size_t length = strlen(folder);
    return n > length && memcmp(path, folder, length) == 0;
}

void user_files_tell(const char *text, const char *const *own_folders, void (*reads)(void *ctx, const char *path),
                     void *ctx)
{
    const char *const end = text + strlen(text);
    for (const char *line = text, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        if (next - line < 6 || memcmp(line, "# ", 2) != 0)
            continue;
        const char *open = memchr(line, '"', (size_t)(next - line)), *name = open ? open + 1 : NULL;
        const char *close = open ? memchr(name, '"', (size_t)(next - name)) : NULL;
        const size_t n = close ? (size_t)(close - name) : 0;
        /* The compiler escapes quotes and backslashes in names: such a file is not told. */
        if (!n || n >= PATH_MAX || memchr(name, '\\', n) || *name == '<' || !enters(close + 1, next) ||
            begins_with(name, n, "/usr/"))
            continue;
        int own = 0;
        for (const char *const *folder = own_folders; *folder && !own; folder++)
            own = begins_with(name, n, *folder);
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.*s", (int)n, name);
        if (!own)
            reads(ctx, path);
    }
}
