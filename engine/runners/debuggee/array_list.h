/* The arrays a kernel computes on, of either backend: their names, bytes and the pointers of a problem. */
#ifndef DEBUGGEE_ARRAY_LIST_H
#define DEBUGGEE_ARRAY_LIST_H

#include "probes/abi.h"
#include <stddef.h>

/* Inputs, of which a problem may lack the terms, then outputs. */
enum { ARRAY_Q, ARRAY_K, ARRAY_V, ARRAY_SINK, ARRAY_ALIBI, ARRAY_BIAS, ARRAY_O, ARRAY_LSE, ARRAYS };

struct array_list {
    const void *at[ARRAYS]; /* borrowed: where the problem has it; NULL: it has none */
    size_t bytes[ARRAYS];
};

extern const char *const array_names[ARRAYS];

struct array_list array_list_of(const struct asc_kernel *kernel, const struct asc_problem *problem);
/* The problem's arrays are these from now on. */
void array_list_use(void *const at[ARRAYS], struct asc_problem *problem);

/* The event that a kernel wrote beside the array. */
void array_list_say_overrun(const char *name, int socket);

#endif
