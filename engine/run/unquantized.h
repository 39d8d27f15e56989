/* What quantizing costs: a run on codes, or one that quantizes its inputs itself, seen from the values that were given.
 */
#ifndef RUN_UNQUANTISED_H
#define RUN_UNQUANTISED_H

#include "engine/trace/trace.h"

/* The run as if it had been asked about what its codes were made from, with nothing recorded but its output: *out is a
   view that borrows all of t and is never freed. 0: nothing is quantized, or those values are not known. */
int unquantized_view(const struct trace *t, struct trace *out);

#endif
