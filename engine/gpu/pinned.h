/* The live trace as the GPU sees it: the memfd's pages, pinned and mapped, all of them or those before the values, so
   that probes write into them and nobody copies. Pinning costs 0.33 s a GiB, and a rerun writes into the file that the
   run before the last one had (the last one is still shown): so the last two files stay pinned, as long as they are of
   one size. A pinned file takes memory also where nobody else holds it any more. */
#ifndef GPU_PINNED_H
#define GPU_PINNED_H

#include "engine/base/err.h"
#include <stddef.h>
#include <sys/types.h>

struct pinned {
    unsigned char *host; /* the whole file, mapped */
    size_t n_bytes, pinned_bytes;
    unsigned char *device; /* the same bytes for the GPU */
    dev_t file_device;     /* which file this is */
    ino_t file;
};

/* Maps the file behind fd and pins its first n bytes, or finds it pinned. *out is borrowed until the next call; fd
   stays the caller's. Only the thread that launches calls it. */
int pinned_hold(int fd, size_t n, struct pinned *out, struct err *err);
void pinned_drop(const struct pinned *p); /* this file will not come again; one that is not held is legal */

#endif
