/* Memory for jansson, which takes no NULL: where an allocation fails it reads a sound text as invalid, drops what it
   was given, or frees what was never allocated (2.14). */
#ifndef BASE_JSON_MEMORY_H
#define BASE_JSON_MEMORY_H

#include <jansson.h>
#include <stddef.h>

/* Once, before anything else of jansson: where the system has no memory left, a reserve serves it. Where that is used
   up as well, the program says so and ends with this status. */
void json_memory_begin(int status);

/* Ends the program as when the reserve is used up: for a part of a report that cannot be made, rather than leave it
 * out. */
_Noreturn void end_without_memory(void);

/* What json_dumps() gives, to be freed with free(). NULL without memory. */
char *json_memory_dumps(const json_t *json, size_t flags);

#endif
