/* The live trace as the GPU sees it: the memfd's pages, pinned and mapped, so that probes write into them and nobody
   copies. Pinning costs 0.33 s a GiB, so the last trace stays pinned and serves the next run if it is the same file. */
#ifndef GPU_PINNED_H
#define GPU_PINNED_H

#include "engine/base/err.h"
#include <stddef.h>
#include <sys/types.h>

struct pinned {
    unsigned char *host; /* owned: the whole file, mapped */
    size_t n_bytes;
    unsigned char *device; /* the same bytes for the GPU */
    dev_t file_device;     /* which file this is */
    ino_t file;
};

/* Maps and pins the file behind fd, or keeps what is pinned if it is that file. fd stays the caller's. */
int pinned_hold(struct pinned *p, int fd, struct err *err);
void pinned_release(struct pinned *p); /* a zeroed one is legal */

#endif
