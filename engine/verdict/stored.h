/* Where o or lse is stored that does not stand in memory where it belongs. */
#ifndef VERDICT_STORED_H
#define VERDICT_STORED_H

#include "engine/trace/trace.h"
#include <stdbool.h>
#include <stddef.h>

/* Looks up what the probes recorded, row by row, in what a complete run left in memory, and says where the rows went,
   where one rule tells it of all that are found: "row r is stored where row r + 64 belongs". Columns likewise, within
   their row. False: none does. */
bool stored_words(const struct trace *t, enum asc_channel ch, char *out, size_t bytes);

#endif
