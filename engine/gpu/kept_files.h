/* Memory files that serve again, as those of traces do: mapped and pinned, so that the copy engine writes into them
   itself: 1.7 GB in 31 ms on an H200's host, in the place of 100 to 140 by way of other pinned memory. To pin them
   takes longer than one copy gains, so it is done between two requests, and from the second file on. */
#ifndef GPU_KEPT_FILES_H
#define GPU_KEPT_FILES_H

#include "engine/base/guardian.h"

#include <sys/types.h>

enum { KEPT_FILES = 10 }; /* a session's last eight runs, the next one, and one that is gone */
struct kept_files {
    struct kept_file {
        unsigned char *mapping; /* owned, pinned; NULL: none */
        size_t bytes;
        dev_t device; /* which file it is */
        ino_t inode;
    } at[KEPT_FILES]; /* the newest first */
    int seen;         /* memory files */
};

/* Pieces of the device memory at `from` into a file that is kept, in the current context. false: it is not kept, or
   that went wrong, and nothing follows for what the file holds. */
bool kept_files_fill(struct kept_files *k, uint64_t from, const struct values_piece *pieces, uint32_t n, int fd);
/* Keeps a file that was filled, if it is one of memory; those of another size are of a shape that is gone. */
void kept_files_add(struct kept_files *k, int fd);
void kept_files_free(struct kept_files *k);

#endif
