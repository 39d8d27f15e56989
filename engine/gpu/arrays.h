/* The arrays a kernel computes on, in device memory: inputs and outputs, each between two guard zones of never-written
   values. What lies there is NaN in every 16 and 32 bit type: a read outside an array poisons what is made of it, a
   write is found afterwards. */
#ifndef GPU_ARRAYS_H
#define GPU_ARRAYS_H

#include "engine/base/err.h"
#include "engine/child/debuggee/array_list.h"
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

struct arrays {
    unsigned char *memory[ARRAYS]; /* owned device memory: zone, array, zone; NULL: the problem has no such input */
    size_t bytes[ARRAYS];          /* of the array */
    struct asc_problem of_trace;   /* borrowed arrays: lengths */
    enum dtype o_dtype;
};

/* Repeats a pattern over device memory; bytes is even. */
cudaError_t device_fill(unsigned char *memory, size_t bytes, uint16_t pattern);

/* Copies the inputs of *problem, marks every element of outputs and workspace as never
   written, and points *problem to the copies. */
int arrays_make(struct arrays *a, const struct asc_kernel *kernel, const struct asc_plan *plan,
                struct asc_problem *problem, struct err *err);
/* Copies o and lse to host memory, as a trace has them. */
int arrays_publish(const struct arrays *a, void *o, void *lse, struct err *err);
/* Says what of a cache that the kernel appends to is not as it should be. */
void arrays_say_cache(const struct arrays *a, const struct asc_kernel *kernel, int socket);
/* 1 if something beside an output or the workspace was written; *name: which. Device memory must still be readable. */
bool arrays_overrun(const struct arrays *a, const char **name);
void arrays_free(struct arrays *a);

#endif
