/* Where Q, K, V and O lie in the arrays that a kernel gets, which is what a trace has only where nothing is said of
   pages, strides, left padding and sequences one behind the other. */
#ifndef TRACE_PLACED_H
#define TRACE_PLACED_H

#include "engine/trace/layout.h"

struct placed {
    const struct asc_problem *p;
    struct problem_tensor of; /* as the trace has it */
    bool packed;              /* sequences one behind the other: with THD */
    bool paged;
    struct asc_strides to; /* of the kernel's array, in elements; with pages of a page in the place of a batch */
    int64_t first;         /* element of the array that the tensor begins at */
    int64_t elements;      /* of the array */
};

/* The problem has its lengths, and its page table where it has pages. */
struct placed placed_of(const struct asc_problem *p, enum problem_tensor_id id);
/* The element that row `row` of a sequence's head begins at; begin: of its first row, counted through the sequences. */
int64_t placed_at(const struct placed *t, int64_t begin, int batch, int head, int row);
/* Rows before the first key of a sequence. */
int placed_left_pad(const struct placed *t, int batch);
/* Calls copy(ctx, trace's element, kernel's element) for each row of each head of each sequence. */
void placed_each_row(const struct placed *t, void (*copy)(void *ctx, int64_t in_trace, int64_t of_kernel), void *ctx);
bool placed_as_in_trace(const struct placed *t);

#endif
