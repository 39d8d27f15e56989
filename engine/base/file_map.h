/* Files mapped read-only, though another program may cut them or write to them meanwhile (rsync --inplace, a copy over
   them). A read behind the new end of a file is SIGBUS: its handler puts zeros there, so that the program goes on, and
   file_map_check() says what happened before anybody believes what was read. */
#ifndef BASE_FILE_MAP_H
#define BASE_FILE_MAP_H

#include "engine/base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* Maps a whole regular file that is not empty. Until file_map_close(). */
int file_map_open(const char *path, const unsigned char **bytes, size_t *n_bytes, struct err *err);
void file_map_close(const void *bytes); /* NULL is legal */

/* -1 with *err where the file of this mapping has changed since; of bytes that are no mapped file 0. NULL: where any
   has changed while it was mapped. */
int file_map_check(const void *bytes, struct err *err);

/* For who takes SIGBUS over: true if the address was of a mapped file, which may be read again now. Of a handler. */
bool file_map_repair(const void *address);

#endif
