/* Device memory into a file. */
#ifndef GPU_COPY_OUT_H
#define GPU_COPY_OUT_H

#include "engine/base/guardian.h"

enum { COPIERS = 4 };
struct copy_room {
    void *piece[COPIERS]; /* owned pinned memory; NULL: not yet */
};

/* Writes pieces [n] of the device memory at `from` to the file, in this context. What it makes in *room serves again.
   0, or -1 with one sentence in why[size]. */
int copy_out(struct copy_room *room, void *context, uint64_t from, const struct values_piece *pieces, uint32_t n,
             int fd, char *why, size_t size);
void copy_room_free(struct copy_room *room);

#endif
