/* __shared__ memory: the thread-local storage of the worker thread that runs the block. */
#ifndef SIMT_SHARED_H
#define SIMT_SHARED_H

#include "engine/base/dtype.h"
#include <stddef.h>

/* Fills every shared variable of this program, and dynamic_bytes of dynamic shared memory, with SHARED_POISON. */
#define SHARED_POISON POISON_16
void shared_poison(size_t dynamic_bytes);

struct worker;
/* The 16 bytes at an address of which a matrix descriptor has the lower 18 bits. NULL: none of the block's. */
const unsigned char *shared_of_descriptor(const struct worker *w, uint32_t address);

#endif
