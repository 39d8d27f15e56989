/* `attnscope keep`: the other end of libattnscope-capture (engine/base/keep.h). */
#ifndef CHILD_KEEP_H
#define CHILD_KEEP_H

#include "engine/build/runner.h"

/* Serves the process at the other end of `socket` until it is gone. 0. */
int keep_serve(const struct runner_paths *paths, int socket);

/* The probe lines of these files and of those that they include by a quoted name beside them, as the text has them:
   ASC_RECORD... and ASC_CUTE... with the name of a channel. *out is owned by the caller. */
int keep_probe_lines(const char *const *files, size_t n_files, const struct asc_plan *plan, struct trace_site **out,
                     size_t *n, struct err *err);

#endif
