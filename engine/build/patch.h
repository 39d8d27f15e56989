/* A scenario's patch, a unified diff, applied to copies as patch(1) applies it without fuzz: where g++ is, patch(1)
   need not be. Nothing is written. */
#ifndef BUILD_PATCH_H
#define BUILD_PATCH_H

#include "engine/base/err.h"
#include <stddef.h>

#define PATCH_FILES_MAX 16

/* One file of a diff. */
struct patch_file {
    char name[256]; /* as its line +++ has it */
    int line;       /* of that line */
    size_t begin, end;
    int hunks;
};
struct patch {
    char path[512];
    char *text; /* owned */
    struct patch_file file[PATCH_FILES_MAX];
    int n;
};
int patch_read(const char *path, struct patch *out, struct err *err);
void patch_free(struct patch *patch); /* an empty one is legal */
/* The first file of that name, without folders; -1: there is none. */
int patch_find(const struct patch *patch, const char *path);
/* *out, the caller's, is the text of the file at `path` with what the patch says of its file i. */
int patch_apply_to(const struct patch *patch, int i, const char *path, char **out, struct err *err);

/* *out, the caller's, is the kernel's text with the patch applied. Offsets are allowed, fuzz is not. ERR_INPUT names
   the hunk that does not fit ("x.patch:12: hunk 2 of 3: expected `...`, found `...` in line 40"). A patch of one file
   is the kernel's, whatever its name; of several the one that has its name. */
int patch_apply(const char *kernel, const char *patch, char **out, struct err *err);

/* Refuses all but a unified diff whose hunks have the lines that
   their headers count. patch->text is read, patch->path is for messages. */
int patch_check(struct patch *patch, struct err *err);

#endif
