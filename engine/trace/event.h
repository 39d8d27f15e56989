/* Kinds of events: what may happen during a run beside values. */
#ifndef TRACE_EVENT_H
#define TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
    EVENT_NONE,
#define EVENT(id, name, mistake, meaning) EVENT_##id,
#include "engine/trace/events.def"
#undef EVENT
    EVENT_KINDS
};
const char *event_name(enum event_kind kind); /* "race"; "" for EVENT_NONE */
const char *event_meaning(enum event_kind kind);
bool event_is_mistake(enum event_kind kind);       /* of a kernel that is wrong, whatever its values are */
bool event_is_of_numbers(enum event_kind kind);    /* a floating-point trap */
enum event_kind event_from_name(const char *name); /* EVENT_NONE: it is none of them; name may be NULL */
/* A set of kinds, and its names: "race,bounds". */
typedef uint64_t event_set;
#define EVENT_BIT(kind) ((event_set)1 << (kind))
#define EVENT_SET_BYTES 320
void event_set_words(event_set set, char *out, size_t bytes);

#endif
