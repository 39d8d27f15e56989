/* What host code has allocated: see allocated.c. simt_runtime.h declares simt_allocate() and simt_release(). */
#ifndef SIMT_ALLOCATED_H
#define SIMT_ALLOCATED_H

#include "engine/simt/include/simt_runtime.h"
#include "engine/simt/simt.h"

/* The next of them, NULL: the first; NULL behind the last. From a launch and its signal handlers. */
const struct simt_region *allocated_after(const struct simt_region *region);
/* Whether the bytes around one were written since this was asked last, and which: its name. */
bool allocated_overrun(char *name, size_t size);

/* Whether what tensors hold in the host's memory can be reached: not while kernels run. */
void allocated_reach_host(bool reached);

#endif
