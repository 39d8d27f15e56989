/* The safetensors format as published (github.com/huggingface/safetensors, "Format"): 8 bytes with the header's length,
   little-endian; the header, JSON; the data of all tensors, in order, without holes, to the end of the file. */
#ifndef BASE_SAFETENSORS_H
#define BASE_SAFETENSORS_H

#include "engine/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_HEADER_MAX 100000000u /* bytes of JSON; readers refuse more */
#define SAFETENSORS_DIMS_MAX 8

struct safetensors_tensor {
    const char *name;
    const char *dtype; /* "F16" */
    int n_dims;
    uint64_t shape[SAFETENSORS_DIMS_MAX];
    uint64_t offset, bytes; /* of its data, from the start of the file */
};

struct safetensors_text {
    const char *key, *value;
};

struct safetensors; /* a parsed header */

/* Parses and checks the header of a file held in memory; every tensor it then names lies inside n_bytes. The bytes are
   not needed afterwards. ERR_INPUT says what is wrong; path is where. */
int safetensors_parse(const void *file, size_t n_bytes, const char *path, struct safetensors **out, struct err *err);
void safetensors_free(struct safetensors *s); /* NULL is legal */

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name); /* or NULL */
const struct safetensors_tensor *safetensors_only(const struct safetensors *s); /* the only one there is, or NULL */
const char *safetensors_metadata(const struct safetensors *s, const char *key); /* or NULL */

/* The first bytes of a file: length and header. Tensors lie in the order given, offset and bytes are filled in from
   dtype and shape. The data then begins at a multiple of 8. *out is owned by the caller. */
int safetensors_header(struct safetensors_tensor *tensors, size_t n_tensors, const struct safetensors_text *metadata,
                       size_t n_metadata, unsigned char **out, size_t *n_bytes, struct err *err);

#endif
