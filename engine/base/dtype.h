/* Element types of tensors. Valid as C and C++ (kernels see it through attnscope.h). */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

enum dtype {
#define DTYPE(id, safetensors, bytes, name) id,
#include "engine/base/dtypes.def"
#undef DTYPE
    DTYPE_COUNT
};

#ifdef __cplusplus
extern "C" {
#endif

size_t dtype_bytes(enum dtype t);
const char *dtype_name(enum dtype t);             /* "f16" */
const char *dtype_safetensors(enum dtype t);      /* "F16" */
int dtype_from_name(const char *name);            /* enum dtype, or -1 */

/* Element i of an array of type t, as float64 (exact for every type but I64 beyond 2^53). */
double dtype_load(enum dtype t, const void *array, size_t i);
/* Rounds to nearest even into t; FP8 saturates; integers truncate. */
void dtype_store(enum dtype t, void *array, size_t i, double value);

/* "Nobody wrote this": a NaN pattern, the same 16 bits repeated, distinct from the executor's shared-memory poison.
   8-bit and integer types have no room for one. */
#define UNWRITTEN_16 0x7FA5u
#define UNWRITTEN_32 0x7FA57FA5u
#define UNWRITTEN_64 0x7FA57FA57FA57FA5u
int dtype_has_unwritten(enum dtype t);
int dtype_is_unwritten(enum dtype t, const void *array, size_t i);

#ifdef __cplusplus
}
#endif
#endif
