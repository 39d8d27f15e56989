/* What a run launched: ASC_LAUNCH says so before each launch (asc_launching() of abi.h), so that a failure can name the
   kernel, and set what it asked for against what the device allows. */
#ifndef GPU_LAUNCHES_H
#define GPU_LAUNCHES_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#define LAUNCHES_MAX 64 /* kept; a run of more goes on, unrecorded */

struct launched {
    char name[192];       /* demangled, without its parameters: "v2b_scalar<__half, 64>" */
    const void *function; /* borrowed: the kernel */
    unsigned grid[3], block[3];
    size_t dynamic_bytes; /* of shared memory */
    struct cudaFuncAttributes attributes;
};

void launches_reset(void);
size_t launches_count(void);                  /* of those kept */
const struct launched *launches_at(size_t i); /* i < launches_count() */
const struct launched *launches_last(void);   /* NULL: ASC_LAUNCH has launched nothing */

#endif
