/* Floating-point traps and wild pointers in kernel code. */
#ifndef SIMT_TRAPS_H
#define SIMT_TRAPS_H

#include "engine/simt/worker.h"

/* Bytes of the stack that a worker's signal handlers run on: finding a source line reads debug information. */
#define TRAPS_STACK_BYTES ((size_t)256 * 1024)

uintptr_t traps_pc(const void *context); /* of a signal's context: the instruction it came at; 0: not known */
void traps_begin_launch(void);           /* installs the handlers; every line may be reported again */
void traps_on(void);                     /* for the calling thread; does nothing on machines without traps */
void traps_off(void);
void traps_rearm(struct worker *w); /* after a hit, at the next wait */
int traps_pause(void);              /* for code of ours in the midst of a kernel; the value is for traps_resume */
void traps_resume(int paused);
void traps_end(void) __attribute__((noreturn)); /* the process, after a fatal report */

#endif
