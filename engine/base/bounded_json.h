/* JSON from a file that may be hostile: bounded memory and depth, no duplicate keys, messages safe for a terminal. */
#ifndef BASE_BOUNDED_JSON_H
#define BASE_BOUNDED_JSON_H

#include "engine/base/err.h"

#include <jansson.h>
#include <stddef.h>

/* Parses n_bytes of text; NULL with ERR_INPUT where it is not one JSON value or holds more than 2^20 of them. */
json_t *bounded_json(const char *text, size_t n_bytes, const char *where, struct err *err);

#endif
