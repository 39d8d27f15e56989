/* A device-side assert, as the CUDA driver prints it on the process's stderr. */
#ifndef BUILD_ASSERTION_H
#define BUILD_ASSERTION_H

#include "engine/trace/trace.h"

/* `file.cu:12: void k(int): block: [1,0,0], thread: [32,0,0] Assertion `i < n` failed.` (CUDA C++ Programming Guide,
   "Assertion"). 1: it is one; *event then has kind "assert", file, line and a text. */
int assertion_parse(const char *line, struct trace_event *event);

#endif
