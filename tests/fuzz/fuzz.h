/* Fuzz targets: each file fuzz_*.c has LLVMFuzzerTestOneInput() as libFuzzer wants it. Built with clang they are
   libFuzzer programs (make fuzz), built with any compiler driver.c is their main(): it replays a corpus, and changes
   its files at random where there is no libFuzzer. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "engine/session/session.h"
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* Opens a trace as the commands do: judges it, writes text, JSON and three views, and steps about. choice: which views
   and steps. Ends the process where what it shows is not what it may be. */
void fuzz_trace_file(const char *path, unsigned choice);

/* A file that a target writes its input into and opens by its path below /proc. Ends the process where it cannot. */
const char *fuzz_file(const uint8_t *data, size_t size);

#endif
