/* Events that say that the kernel is wrong, whatever its values are: races, bad addresses, diverged barriers. */
#ifndef VERDICT_REPORTS_H
#define VERDICT_REPORTS_H

#include "engine/verdict/judgement.h"
#include <stdbool.h>

size_t reports_count(const struct trace *t);
bool reports_placed(const struct trace *t);                     /* of some the tile is known */
const struct trace_event *reports_first(const struct trace *t); /* NULL: none */
/* The first one at this (batch, head, q tile) and kv tile (-1: any); NULL: none. */
const struct trace_event *reports_at(const struct trace *t, const int32_t place[3], int kv);
/* What a screen shows whose cursor is there: a report of this tile, else the first one, else the first event, or NULL.
 */
const struct trace_event *reports_shown(const struct trace *t, const int32_t place[3], int kv);
/* "race (2), never-waited (1)", a kind where it first comes; "": none. */
void reports_words(const struct trace *t, char *out, size_t bytes);
/* A place as one names it: of what was done the outermost frame, which is the kernel's body where that is known. */
struct event_place {
    const char *file; /* borrowed from the event */
    int line;         /* 0: not known */
};
struct event_place event_call(const struct trace_event *e);
struct event_place event_other_call(const struct trace_event *e); /* of what it collides with */
/* "kernels/x.cu:12 and :40": both sides of a collision; "": no line is known. short_names: without folders, and of what
   a function did alone where the kernel called it. */
#define EVENT_LINES_BYTES 1400
void event_lines(const struct trace_event *e, int short_names, char *out, size_t bytes);
/* What it did to a value that it explains: "race between its operands and its probe, x.cu:12". */
void event_reason(const struct trace_event *e, char *out, size_t bytes);
/* What happened between the probe before this channel's and its own: a mistake, or where its values are no numbers
   (unreal) a floating-point event; or a copy of it that is not waited for. in_slot: whether the channel is bad in a
   slot. The mistake first, then the earlier line; NULL: none. */
const struct trace_event *reports_between(const struct trace *t, enum asc_channel ch,
                                          bool (*in_slot)(const void *ctx, int slot), const void *ctx, bool unreal);
/* What may have spoiled an input before it was loaded, where nothing else is known: NULL: nothing. */
const struct trace_event *reports_before_inputs(const struct trace *t, enum asc_channel ch);
/* One that orders of threads may bring out, in a slot where the channel is bad: an unfinished copy or a race rather
 * than another. NULL: none.
 */
const struct trace_event *reports_in_slots(const struct trace *t, enum asc_channel ch,
                                           bool (*in_slot)(const void *ctx, int slot), const void *ctx);
/* What became of K or V of the keys that the kernel appends, if this key of a slot is one of them; NULL: nothing, or of
   no other channel. */
const struct trace_event *reports_of_cache(const struct trace *t, enum asc_channel ch, int slot, int key);
/* A stage whose record a probe has spoiled that reads what another thread writes: its own, where all that is made of it
   is right by the inputs; or that of an operand, where the stage is. Says so, and returns 1 + the event's number; 0: it
   is none. */
int reports_misrecorded(const struct summary *summary, const struct trace *t, enum asc_channel ch, char *out,
                        size_t bytes);
/* Whether the event's thread worked on this q tile, and on this kv tile as far as either is known (kv -1: any). */
bool event_is_at(const struct trace_event *e, const int32_t place[3], int kv);

#endif
