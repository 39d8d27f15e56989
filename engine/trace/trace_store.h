/* Memory of live traces for the next run: the first touch of 1 GiB costs seconds, filling it anew a fraction of one.
   Holds one memfd that nobody uses, mapped as it was: to map it anew costs half as much as to fill it. Thread-safe, and
   lives until the last trace made with it is freed. */
#ifndef TRACE_TRACE_STORE_H
#define TRACE_TRACE_STORE_H

#include "engine/trace/trace.h"
#include <stdbool.h>

struct pool;

/* fillers: whose threads fill the traces made with it, borrowed and only used in trace_create_in(); NULL: the calling
   thread does. NULL without memory. */
struct trace_store *trace_store_new(struct pool *fillers);
void trace_store_free(struct trace_store *s); /* gives up one reference; NULL is legal */

/* trace_create(), in the memfd of an earlier trace of the same size where the store holds one: every byte of it is
   written anew, so that the trace equals one in a new memfd. A memfd of another size is given back to the system. Once
   it is freed the trace leaves its memfd to the store if its run came to its end or never began; of a run that was
   stopped, somebody may still be writing. s may be NULL. */
int trace_create_in(struct trace_store *s, const struct asc_problem *p, const struct asc_plan *plan,
                    const struct asc_conventions *conventions, const struct layout_types *types,
                    const int32_t (*slots)[3], int n_slots, const struct trace_inputs *inputs, struct trace **out,
                    struct err *err);

/* For trace_create_in() and trace_free(). */
struct pool *trace_store_fillers(const struct trace_store *s); /* s may be NULL */
struct trace_store *trace_store_hold(struct trace_store *s);   /* one reference more; s */
struct trace_memory {
    int fd;
    void *mapping; /* [n_bytes], read-only */
    size_t n_bytes;
};
/* *out is one of this size, the caller's; false: there is none. */
bool trace_store_take(struct trace_store *s, size_t n_bytes, struct trace_memory *out);
void trace_store_give(struct trace_store *s, const struct trace_memory *memory); /* takes it over */

#endif
