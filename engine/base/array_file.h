/* An array in a file that another program wrote: .npy, one of an .npz (NumPy, numpy.lib.format), a tensor of a
   .safetensors. Told apart by content. */
#ifndef BASE_ARRAY_FILE_H
#define BASE_ARRAY_FILE_H

#include "engine/base/dtype.h"
#include "engine/base/err.h"

#define ARRAY_DIMS_MAX 8
#define ARRAY_NAME_BYTES 600

struct array {
    char name[ARRAY_NAME_BYTES]; /* "FILE" or "FILE:ARRAY", for messages */
    char type[32];               /* as the file says it: "<f2", "BF16" */
    int dtype;                   /* enum dtype; -1: bits of no type of ours, `item` bytes each */
    bool bits;                   /* unsigned integers or raw bytes: may stand for any type of this width */
    bool pairs;                  /* an element is half a byte, the first of two in its low half */
    size_t item;                 /* bytes of an element, or of two */
    int n_dims;
    int64_t length[ARRAY_DIMS_MAX], stride[ARRAY_DIMS_MAX]; /* both in elements; lengths are at least 1 */
    const void *data;                                       /* aligned for its type; NULL: only the head was read */
    const void *mapping;                                    /* owned, of file_map_open() */
    void *copy;                                             /* owned */
};

/* spec: FILE, or FILE:ARRAY, which an .npz or a .safetensors of several arrays needs. values: false reads what is known
   without them. ERR_INPUT says what is wrong, err->where being the array. */
int array_open(const char *spec, bool values, struct array *out, struct err *err);
/* Bytes are two elements each from now on, which lie along the last dimension. */
int array_take_pairs(struct array *a, struct err *err);
/* -1 with *err where the file has changed since. */
int array_check(const struct array *a, struct err *err);
void array_close(struct array *a); /* an empty one is legal */

/* How many bytes of the spec are the file: all, where there is such a file, else what stands before the last colon. */
size_t array_file_bytes(const char *spec);
/* Whether a file of several has an array of this name. -1 with *err: it cannot be read. */
int array_has(const char *file, const char *name, bool *has, struct err *err);
/* "[1, 8, 512, 64]" */
const char *array_shape(const struct array *a, char out[160]);

#endif
