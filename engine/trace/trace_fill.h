/* What a live trace holds before its run, as far as it is large: the inputs, and the never-written pattern wherever the
   run may write. */
#ifndef TRACE_TRACE_FILL_H
#define TRACE_TRACE_FILL_H

#include "engine/base/err.h"
#include "engine/base/pool.h"
#include "engine/trace/trace.h"

/* mapping: the whole memory file fd, writable. pool: whose threads do it; NULL: the calling one does.
   ERR_SYSTEM where there is no space: every page is made before it is written, so that no store raises SIGBUS, here or
   later. */
int trace_fill(int fd, unsigned char *mapping, const struct layout *l, const struct trace_inputs *inputs,
               struct pool *pool, struct err *err);

#endif
