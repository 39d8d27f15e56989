/* Element types of tensors. Valid as C and C++. */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
#define DTYPE(id, safetensors, bytes, name) DTYPE_##id,
#include "engine/base/dtypes.def"
#undef DTYPE
    DTYPE_COUNT
};

#ifdef __cplusplus
extern "C" {
#endif

size_t dtype_bytes(enum dtype t);
bool dtype_is_code(enum dtype t);            /* 1: e4m3, e5m2, e2m1, u8, s8, whose values take a scale */
bool dtype_is_step_code(enum dtype t);       /* 1: u8, s8, whose values are whole numbers from -128 to 127 */
const char *dtype_name(enum dtype t);        /* "f16" */
const char *dtype_safetensors(enum dtype t); /* "F16" */
int dtype_from_name(const char *name);       /* enum dtype, or -1; NULL is no name */

/* Bytes that n elements take in a kernel's array, where two codes of e2m1 share a byte, the first in its low half. */
static inline size_t dtype_packed(enum dtype t, size_t n_bytes)
{
    return t == DTYPE_E2M1 ? (n_bytes + 1) / 2 : n_bytes;
}

/* Element i of an array of type t, as float64 (exact for every type but I64 beyond 2^53). */
double dtype_load(enum dtype t, const void *array, size_t i);
/* Rounds to nearest even into t, e8m0 down to a power of two; FP8 and e2m1 saturate; integers truncate, clamp to their
 * range and take NaN as 0. */
void dtype_store(enum dtype t, void *array, size_t i, double value);

/* The distance of neighboring numbers of type t around x, |x| being between the smallest normal number and the largest
   one; below, that of subnormal numbers. 1 for integers; NaN where x is no finite number. */
double dtype_ulp(enum dtype t, double x);

/* The larger of two errors; one that is no number is larger than all others, where fmax() drops it. */
double error_larger(double a, double b);

/* "Uninitialized": the same 16 bits repeated, NaN in f16, bf16, f32 and f64 alike (0x7FFx is the least that f64
   asks for), distinct from the executor's shared-memory poison and from what arithmetic returns for NaN (0x7FFF...,
   0x7FC0..., 0x7FF8...). 8-bit and integer types have no room for one. */
#define UNWRITTEN_16 0x7FF5u
#define UNWRITTEN_32 0x7FF57FF5u
#define UNWRITTEN_64 UINT64_C(0x7FF57FF57FF57FF5)
/* As what memory of the CPU executor begins, repeated: a signalling NaN as f32 and bf16, a NaN as f16. Arithmetic
   quiets such a one, so that nothing computed is taken for what nobody wrote; the first stands in shared memory, the
   second in the outputs and the workspace, the third in registers that a wgmma under way is to write. */
#define POISON_16 0x7FA0u
#define ARRAY_POISON_16 0x7FA5u
#define UNFINISHED_16 0x7FAAu
/* In places of a kernel's inputs that hold no row: between rows, behind a sequence in its last page, in pages of
   nobody. A probe that comes by such an element has captured it. */
#define UNUSED_16 0x7FAFu
bool dtype_has_unwritten(enum dtype t);
/* What memory of type t holds before a run, two bytes of it, repeated: the pattern above, the NaN code 7F of both FP8
   formats, 0 in integers. */
uint16_t dtype_unwritten_pattern(enum dtype t);
/* A range of a file that begins with it. */
struct unwritten_part {
    uint64_t begin, end;
    uint16_t pattern;
    uint16_t unused[3]; /* 0 */
};
bool dtype_is_unwritten(enum dtype t, const void *array, size_t i);
/* The pattern of these five that a NaN comes from, as it is, quieted, or converted from a narrower type: x86 arithmetic
   keeps it, a GPU's does not. 0: none. */
uint16_t dtype_nobodys(enum dtype t, const void *array, size_t i);

#ifdef __cplusplus
}
#endif
#endif
