/* The arrays a kernel computes on, of either backend: their names, bytes and the pointers of a problem. */
#ifndef DEBUGGEE_ARRAY_LIST_H
#define DEBUGGEE_ARRAY_LIST_H

#include "probes/abi.h"
#include <stddef.h>

/* Inputs, of which a problem may lack terms and scales, then outputs, then what a plan may lack. */
enum {
    ARRAY_Q,
    ARRAY_K,
    ARRAY_V,
    ARRAY_SINK,
    ARRAY_ALIBI,
    ARRAY_BIAS,
    ARRAY_Q_SCALE,
    ARRAY_K_SCALE,
    ARRAY_V_SCALE,
    ARRAY_O,
    ARRAY_LSE,
    ARRAY_WORKSPACE,
    ARRAYS
};
#define WORKSPACE_ALIGN 256u /* asc_problem.workspace */

struct array_list {
    const void *at[ARRAYS]; /* borrowed: where the problem has it; NULL: it has none, or nothing is copied from there */
    size_t bytes[ARRAYS];   /* 0: there is none */
    int dtype[ARRAYS];      /* enum dtype; -1: unknown */
};

extern const char *const array_names[ARRAYS];

struct array_list array_list_of(const struct asc_kernel *kernel, const struct asc_problem *problem,
                                const struct asc_plan *plan);
/* The problem's arrays are these from now on. */
void array_list_use(void *const at[ARRAYS], struct asc_problem *problem);

/* The event that a kernel wrote beside the array. */
void array_list_say_overrun(const char *name, int socket);

#endif
