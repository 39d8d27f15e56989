/* A scenario's patch, applied by patch(1) to a copy of the kernel. patch(1) is given that one file and a folder of its
   own: it follows no name in the diff, and writes nothing beside the kernel or where attnscope runs. */
#ifndef BUILD_PATCH_H
#define BUILD_PATCH_H

#include "engine/base/err.h"

/* *out, the caller's, is the kernel's text with the patch applied. Offsets are allowed, fuzz is not. ERR_INPUT names
   the hunk that does not fit ("x.patch:12: hunk 2 of 3: expected `...`, found `...` in line 40"), ERR_SYSTEM a patch(1)
   that is missing. */
int patch_apply(const char *kernel, const char *patch, char **out, struct err *err);

/* Refuses what patch(1) passes over or takes for a script of ed: all but a unified diff of one file whose hunks have
   the lines that their headers count. *hunks: how many. `name` is for messages. */
int patch_check(const char *diff, const char *name, int *hunks, struct err *err);

#endif
