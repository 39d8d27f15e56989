/* The arrays a kernel computes on, of either backend: their names, bytes and the pointers of a problem. */
#ifndef DEBUGGEE_ARRAY_LIST_H
#define DEBUGGEE_ARRAY_LIST_H

#include "engine/base/dtype.h"
#include "probes/abi.h"
#include <stdbool.h>
#include <stddef.h>

/* Inputs, of which a problem may lack all but the first three, then outputs, then what a plan may lack. */
enum {
    ARRAY_Q,
    ARRAY_K,
    ARRAY_V,
    ARRAY_SINK,
    ARRAY_ALIBI,
    ARRAY_BIAS,
    ARRAY_MASK,
    ARRAY_KEEP,
    ARRAY_Q_SCALE,
    ARRAY_K_SCALE,
    ARRAY_V_SCALE,
    ARRAY_Q_LENS,
    ARRAY_KV_LENS,
    ARRAY_CU_SEQLENS_Q,
    ARRAY_CU_SEQLENS_K,
    ARRAY_PAGE_TABLE,
    ARRAY_LEFTPAD_K,
    ARRAY_CACHE_LENS,
    ARRAY_K_NEW,
    ARRAY_V_NEW,
    ARRAY_ROPE_COS,
    ARRAY_ROPE_SIN,
    ARRAY_O,
    ARRAY_LSE,
    ARRAY_WORKSPACE,
    ARRAYS
};
#define WORKSPACE_ALIGN 256u /* asc_problem.workspace */

struct array_list {
    struct asc_problem of;  /* what it was made of */
    const void *at[ARRAYS]; /* borrowed: where the problem has it; NULL: it has none, or nothing is copied from there */
    size_t bytes[ARRAYS];   /* 0: there is none */
    int dtype[ARRAYS];      /* enum dtype; -1: unknown */
    void *made[ARRAYS];     /* owned: what lies otherwise than in a trace, and `at` points to */
    int in[ARRAY_V + 1];    /* of q, k and v: the array that holds it, another one or itself; and where in there */
    size_t offset[ARRAY_V + 1];
    int32_t total_q, total_k;
};

extern const char *const array_names[ARRAYS];

/* problem: with a trace's arrays, which are [batch] and padded. The list has what the kernel gets in their place: with
   THD one sequence behind the other, in pages, or strided. NULL in the place of q, k and v: arrays of NaN. -1: memory
   ran out. Else to be ended by array_list_free(). */
int array_list_make(const struct asc_kernel *kernel, const struct asc_problem *problem, const struct asc_plan *plan,
                    struct array_list *list);
void array_list_free(struct array_list *list);
/* What nobody's elements hold: NaN, in bytes that of e4m3 and e5m2. */
void array_list_nan(unsigned char *at, size_t bytes, size_t item);
/* Whether a kernel may write an array: the outputs, and K and V where it appends to them. */
static inline bool array_list_writable(const struct asc_problem *problem, int array)
{
    return array >= ARRAY_O || (problem->new_keys && (array == ARRAY_K || array == ARRAY_V));
}
/* The problem's arrays are these from now on. */
void array_list_use(const struct array_list *list, void *const at[ARRAYS], struct asc_problem *problem);

/* Whether o lies otherwise than in a trace; from the kernel's to the trace's, rows behind a sequence left alone. */
bool array_list_packs_output(const struct asc_problem *problem);
void array_list_unpack_output(const struct asc_problem *problem, enum dtype dtype, const void *from, void *to);

/* Whether anything was written between the rows of an o that holds this pattern wherever nothing was; of types without
   one: no. */
bool array_list_wrote_between(const struct asc_problem *problem, enum dtype dtype, const void *o, uint16_t pattern);

/* The event that a kernel wrote beside the array. */
void array_list_say_overrun(const char *name, int socket);

#endif
