/* One CUDA thread's machine state: a stack and a stack pointer. */
#ifndef SIMT_FIBER_H
#define SIMT_FIBER_H

#include <stddef.h>

/* Stack of one CUDA thread; below it lies the guard, large so that a big local array lands in it. */
#define FIBER_STACK_BYTES ((size_t)256 * 1024)
#define FIBER_GUARD_BYTES ((size_t)64 * 1024)
#define FIBER_BYTES (FIBER_STACK_BYTES + FIBER_GUARD_BYTES)

/* Saves the callee-saved registers on the running stack, its pointer in *from, and goes on at `to`. */
void fiber_switch(void **from, void *to);

/* Maps n stacks side by side, lowest byte of the first guard returned; NULL with errno. */
unsigned char *fiber_stacks_map(unsigned n);
void fiber_stacks_unmap(unsigned char *stacks, unsigned n);

/* What to switch to so that fiber i runs entry(), which must not return. */
void *fiber_start(unsigned char *stacks, unsigned i, void (*entry)(void));

#endif
