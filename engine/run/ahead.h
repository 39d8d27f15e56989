/* A build that a run will ask for later, made meanwhile: whatever asks for it finds it in the cache. */
#ifndef RUN_AHEAD_H
#define RUN_AHEAD_H

#include "engine/run/record.h"

struct build_ahead;

/* Starts it in a thread of its own, and copies the scenario (its lists stay borrowed). last: borrowed until its end, an
   earlier build, which stands if nothing has changed; may be NULL. NULL: it is built when it is asked for, which then
   also says what is wrong with it. */
struct build_ahead *build_ahead_start(const struct runner_paths *paths, const struct scenario *scenario,
                                      enum probes probes, const struct build *last);
/* Waits for its end; wanted false: and brings it about. NULL is legal. */
void build_ahead_end(struct build_ahead *ahead, bool wanted);

#endif
