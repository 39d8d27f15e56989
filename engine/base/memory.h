#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include "engine/base/err.h"
#include <stdint.h>

/* Whether so much memory is free: the kernel overcommits and kills somebody later, so ask first. ERR_SYSTEM, "where:
   takes N MiB, only M MiB of memory are free; advice". An unreadable /proc decides nothing. */
int memory_check(uint64_t bytes, const char *where, const char *advice, struct err *err);

#endif
