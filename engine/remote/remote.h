/* A run on another machine: sources go there, a trace comes back. What runs there is attnscope itself, `attnscope
   serve`, started by ssh, which is given no word of the user's but the destination.

   A conversation is a JSON object a line, with bytes behind those that announce them:
     there   {"attnscope": VERSION, "abi": N}
     here    {"lanes": TEXT, "files": [{"name", "bytes", "hash"}, ...]}
     there   {"want": [index, ...]}                 whose hash it does not know
     here    the bytes of these files
     there   {"step": N, "done": X, "total": X}, {"log": TEXT}, {"remarks": N, "cached": BOOL}   while it builds and
   runs there   {"code": NAME, "where": TEXT, "message": TEXT, "seconds": X, "bytes": N}, and a trace of so many bytes
   The end of what it reads tells the other side to stop; it then still sends what was recorded. */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include "engine/build/runner.h"
#include "engine/scenario/scenario.h"

#include <jansson.h>

/* record() of run/record.h at scenario->on. ERR_SYSTEM: it cannot be reached, has no attnscope or another version, or
   the connection was lost. */
int remote_record(const struct runner_paths *paths, const struct scenario *scenario,
                  const struct runner_progress *progress, struct trace **out, struct err *err);

/* The other end, on these descriptors. `run` is record() with a recorder of its own. */
typedef int remote_run(const struct runner_paths *paths, const struct scenario *scenario,
                       const struct runner_progress *progress, struct trace **out, struct err *err);
int remote_serve(const struct runner_paths *paths, int in, int out, remote_run *run, struct err *err);

#endif
