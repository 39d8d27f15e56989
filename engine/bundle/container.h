/* The container of a bundle: a zip file of plain files, whose bytes depend on names and contents alone. Reading trusts
   nothing: every name, kind and size is looked at before the first byte is unpacked. */
#ifndef BUNDLE_CONTAINER_H
#define BUNDLE_CONTAINER_H

#include "engine/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_NAME_BYTES 512
#define CONTAINER_ENTRIES_MAX 4096
#define CONTAINER_BYTES_MAX (UINT64_C(4000) << 20) /* of all files, unpacked; below what needs zip64 */

struct container_entry {
    char name[CONTAINER_NAME_BYTES];
    uint64_t bytes;
    char *text; /* owned: what it holds; NULL: what the file at `path` holds */
    char *path; /* owned */
    bool program;
    uint64_t at, number; /* of one that was read: minizip's unz64_file_pos */
};

struct container {
    struct container_entry *entries; /* owned, [n] */
    size_t n;
    void *zip; /* owned: one that was opened; NULL: one in the making */
    char path[512];
};

/* A name that may stand in a container: a relative path of plain parts, in UTF-8 without control characters. -1 with
   ERR_INPUT, where it is none. */
int container_check_name(const char *name, const char *where, struct err *err);

/* One in the making begins as zeros. The text is copied. */
int container_add_text(struct container *c, const char *name, const char *text, bool program, struct err *err);
int container_add_file(struct container *c, const char *name, const char *path, struct err *err);
/* Writes it whole or not at all, in the order of c->entries. */
int container_write(const struct container *c, const char *path, struct err *err);

bool container_is(const char *path); /* begins as a zip file does */
/* Opens a container and checks the list of its entries: a path that leaves the folder, a link or device, a name that is
   there twice or is both a file and a folder, more or larger files than the limits: ERR_INPUT. */
int container_open(const char *path, struct container *out, struct err *err);
const struct container_entry *container_find(const struct container *c, const char *name); /* or NULL */
/* Hands over an entry piece by piece; take returns -1 with errno where it cannot go on. */
int container_read(struct container *c, const struct container_entry *entry,
                   int (*take)(void *ctx, const void *bytes, size_t n), void *ctx, struct err *err);
/* *text is owned, and ends in NUL. ERR_INPUT where it is larger than most_bytes. */
int container_read_text(struct container *c, const struct container_entry *entry, size_t most_bytes, char **text,
                        struct err *err);
/* Every file, into a folder of the caller's own that is empty. */
int container_unpack(struct container *c, const char *folder, struct err *err);
void container_free(struct container *c); /* of either kind; zeros are legal */

#endif
