/* Worker threads that work off one job at a time: every worker repeats step(ctx, worker) until there is nothing left.
   start, wait, stop and free belong to one thread at a time, and never to a step; pool_idle() may be asked anywhere.
   Asynchronous signals (resize, interrupt, a child's end) are left to the other threads of the program. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "engine/base/err.h"
#include <stdbool.h>

#define POOL_THREADS_MAX 1024

struct pool;

/* threads: 1 to POOL_THREADS_MAX, or 0 for as many as there are cores this process may use. */
int pool_new(int threads, struct pool **out, struct err *err);
/* Stops as pool_stop() does and ends the threads. NULL is legal. */
void pool_free(struct pool *p);

/* Gives every worker the job and returns at once. step(ctx, worker), worker in 0 .. pool_threads() - 1, does one piece
   of it and returns 0 where this worker finds nothing more to do. A job still under way is stopped first. */
void pool_start(struct pool *p, int (*step)(void *ctx, int worker), void *ctx);
/* Until every worker found nothing more to do. What the steps wrote is visible to the caller afterwards. */
void pool_wait(struct pool *p);
/* No further step begins; waits for those that run. The rest of the job is dropped. */
void pool_stop(struct pool *p);

bool pool_idle(const struct pool *p); /* 1: no worker has anything to do; what the steps wrote is visible then */
int pool_threads(const struct pool *p);

#endif
