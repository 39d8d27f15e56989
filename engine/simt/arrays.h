/* The arrays a kernel computes on: inputs it may only read, outputs, each between two guard zones, so that an access
   outside them ends at the line that made it. They are not the trace's: what a kernel does wrong cannot hurt that. */
#ifndef SIMT_ARRAYS_H
#define SIMT_ARRAYS_H

#include "engine/base/err.h"
#include "engine/child/debuggee/array_list.h"
#include "engine/simt/guarded.h"
#include "engine/simt/simt.h"

struct arrays {
    struct simt_region region[ARRAYS]; /* name, begin, bytes; 0 bytes: the problem has no such input */
    struct guarded memory[ARRAYS];     /* owned */
    struct asc_problem of_trace;       /* borrowed arrays: where o and lse go, and lengths */
};

/* Copies the inputs, fills outputs and workspace with ARRAY_POISON_16, and points the problem to the copies. */
int arrays_make(struct arrays *a, const struct asc_kernel *kernel, const struct asc_plan *plan,
                struct asc_problem *problem, struct err *err);
/* Copies o and lse into the trace, where nobody wrote an element as such a one. */
void arrays_publish(const struct arrays *a);
/* Says what of a cache that the kernel appends to is not as it should be. */
void arrays_say_cache(const struct arrays *a, const struct asc_kernel *kernel, int socket);
/* 1 if the bytes between an output, or the workspace, and its guard zones were written; *name: which. */
bool arrays_overrun(const struct arrays *a, const char **name);
void arrays_free(struct arrays *a);

#endif
