/* A KV cache that the kernel appends to (asc_problem.new_keys). */
#ifndef DEBUGGEE_CACHE_H
#define DEBUGGEE_CACHE_H

#include "engine/child/debuggee/array_list.h"
#include "engine/trace/placed.h"

/* What an array of K or V holds before the launch: the keys that lie in it, as `t` places them, turned where there is
   RoPE; nothing in the places of new ones. problem: with a trace's arrays. array: of never-written patterns. -1: memory
   ran out. */
int cache_fill(const struct placed *t, int array, void *cache);
/* K_NEW or V_NEW: the rows that are to be appended. */
void cache_new_rows(const struct asc_problem *problem, int array, void *rows);

/* What array K or V holds after a launch that came to its end, set against what it should: an event where a new row is
   elsewhere, missing or another, or anything else was written. rope_error: the kernel's convention. */
void cache_say(const struct asc_problem *problem, int array, double rope_error, const void *left, int socket);

#endif
