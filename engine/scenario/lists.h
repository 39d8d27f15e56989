/* Lists of files (lists.c). All errors are ERR_INPUT, err->where being the list or the tensor. */
#ifndef SCENARIO_LISTS_H
#define SCENARIO_LISTS_H

#include "engine/base/array_file.h"
#include "engine/scenario/scenario.h"

/* Lengths that nobody states go: those of files and traces are taken anew. */
void scenario_forget_lengths(struct scenario *s);
/* Lengths of the sequences that are taken, of a trace's problem or of lists; -1: no memory, or *err. */
int scenario_take_trace_lengths(struct scenario *s, const struct asc_problem *of);
int scenario_take_lists(struct scenario *s, struct err *err);

/* Makes q, k or v (INPUT_Q ..), whose rows lie as lists say, an array [batch, rows, heads, head_dim], with its values
   or without; *gathered: it was none before. heads_first: a page is [heads, rows, head_dim]. */
int scenario_gather(const struct scenario *s, enum input_id i, bool heads_first, bool values, struct array *a,
                    bool *gathered, struct err *err);
/* Rows of a page of k, as the file has it; 0: there are no pages. */
int scenario_page_rows(const struct scenario *s, const struct array *k, bool heads_first);

#endif
