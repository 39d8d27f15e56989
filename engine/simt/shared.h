/* __shared__ memory: the thread-local storage of the worker thread that runs the block. */
#ifndef SIMT_SHARED_H
#define SIMT_SHARED_H

#include "engine/base/dtype.h"
#include <stddef.h>
#include <stdint.h>

/* Fills every shared variable of this program, and dynamic_bytes of dynamic shared memory, with SHARED_POISON. */
#define SHARED_POISON POISON_16
void shared_poison(size_t dynamic_bytes);

struct worker;
/* The 16 bytes at an address of which a matrix descriptor has the lower 18 bits. NULL: none of the block's. */
const unsigned char *shared_of_descriptor(const struct worker *w, uint32_t address);

/* The place of a shared address, in whichever block of the cluster it is. An address that is none ends the process; one
   in a block that has left is an event. */
void *shared_in(uint64_t address, size_t bytes, size_t align, const char *what, const char *file, int line,
                struct worker **block);
/* The address as the block itself has it. */
uint64_t shared_local(uint64_t address);
/* The event alone. */
void shared_reaches(const struct worker *block, const char *what, const char *file, int line);
/* The block of the cluster that has this memory; NULL: none. */
struct worker *shared_block_of(const void *p);

#endif
