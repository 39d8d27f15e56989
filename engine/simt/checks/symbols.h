/* The __shared__ arrays of the program by name, from its own symbol table: thread-local symbols. */
#ifndef CHECKS_SYMBOLS_H
#define CHECKS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct symbol {
    size_t offset, bytes; /* in the thread-local block */
    const char *name;     /* borrowed */
};
struct symbols {
    size_t n, dynamic_offset;
    struct symbol *at; /* by offset */
};

/* Reads them once; shared_begin: the calling thread's block. What cannot be read is one array without a name. */
void symbols_read(uintptr_t shared_begin, size_t shared_bytes);
const struct symbols *symbols_get(void);

/* "byte 512 of dynamic shared memory", "byte 4 behind the end of tile". */
void symbols_describe(uintptr_t address, size_t dynamic_bytes, char *text, size_t size);

#endif
