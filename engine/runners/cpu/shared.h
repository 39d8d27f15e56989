/* __shared__ memory: the thread-local storage of the worker thread that runs the block. */
#ifndef CPU_SHARED_H
#define CPU_SHARED_H

#include <stddef.h>

/* Fills every shared variable of this program, and dynamic_bytes of dynamic shared memory, with SHARED_POISON: a
   signalling NaN as f32 and bf16, a NaN as f16, and not the trace's never-written pattern. */
#define SHARED_POISON 0x7FA0u
void shared_poison(size_t dynamic_bytes);

#endif
