/* attnscope's side of the guardian (engine/base/guardian.h), which runner.h starts and stops. */
#ifndef CHILD_GUARDIAN_H
#define CHILD_GUARDIAN_H

#include "engine/base/guardian.h"
#include "engine/build/runner.h"

/* Room for the values of a live trace, never written. ERR_SYSTEM: why there is none, one sentence. A kernel's process
   that opened an earlier room has closed it, or ended. */
int guardian_take(struct guardian *g, const struct trace *t, unsigned char handle[GUARDIAN_HANDLE_BYTES],
                  struct err *err);
/* Pieces [n] of what was written there, into the file. */
int guardian_copy(struct guardian *g, const struct values_piece *pieces, uint32_t n, int fd, struct err *err);
/* All of it, into the live trace. */
int guardian_bring(struct guardian *g, const struct trace *t, struct err *err);

#endif
