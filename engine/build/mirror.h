/* A tree of links below the cache that stands for the whole file system, so that files in it can be replaced: a header
   is found by the folder of the one that includes it, whatever -I says, so a patched copy has to lie among all the
   others. Folders that a build reads are folders of the tree, everything beside them is a link. */
#ifndef BUILD_MIRROR_H
#define BUILD_MIRROR_H

#include "engine/base/err.h"
#include <stddef.h>

/* Makes the real folder `folder` one of the tree's own. 0: it was already, 1: it is now, -1. */
int mirror_add_folder(const char *root, const char *folder, struct err *err);
/* `text` in the place of a file, whose folder is the tree's own. */
int mirror_put(const char *root, const char *path, const char *text, struct err *err);
/* Names in what a compiler wrote become those of the user's files, below the current folder without it. Returns the new
   length. */
size_t mirror_rename(const char *root, char *text);

#endif
