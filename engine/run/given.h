/* What a run was asked about before anything was quantized: the inputs behind its codes, or those that its launch makes
   into codes. */
#ifndef RUN_GIVEN_H
#define RUN_GIVEN_H

#include "engine/verdict/case.h"
#include <stdbool.h>

/* The run as if it had been asked about what its codes were made from, with nothing recorded but its output: *out is a
   view that borrows all of t and is never freed. false: nothing is quantized, or those values are not known. */
bool unquantized_view(const struct trace *t, struct trace *out);

/* A view of the run as if it had been given those, with nothing recorded: borrows all of t and is never freed. false
   where they are not known, and it is given the values of its codes. */
bool given_view(const struct trace *t, struct trace *out);

/* Both cases of a slot: of what was given, and of the run. -1: no memory. */
struct given_case {
    struct trace view;
    struct slot_case given, run;
};
int given_case_make(const struct trace *t, int slot, struct given_case *out);
void given_case_free(struct given_case *g);

#endif
