/* A small problem with everything that a trace can hold, and a live trace of it. */
#ifndef TEST_SMALL_TRACE_H
#define TEST_SMALL_TRACE_H

#include "engine/trace/conventions.h"
#include "engine/trace/trace.h"

/* Heads 4 over 2, lengths with tails, two of the twelve q tiles recorded, in an order of their own. */
extern const struct asc_problem small;
extern const struct asc_plan small_plan;
extern const struct asc_conventions small_conventions;
extern const int32_t small_slots[2][3];
extern const float small_sink[4], small_alibi[4], small_bias[4 * 10 * 13];
struct layout_types small_types(void);
struct trace *make_small(void);

#endif
