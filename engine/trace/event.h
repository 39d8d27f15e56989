/* Kinds of events: what may happen during a run beside values. */
#ifndef TRACE_EVENT_H
#define TRACE_EVENT_H

enum event_kind {
#define EVENT(id, name, mistake, meaning) EVENT_##id,
#include "engine/trace/events.def"
#undef EVENT
    EVENT_KINDS
};
const char *event_name(enum event_kind kind); /* "race" */
const char *event_meaning(enum event_kind kind);
int event_is_mistake(const char *name); /* 1: of a kernel that is wrong, whatever its values are */
int event_from_name(const char *name);  /* enum event_kind, or -1 */

#endif
