#include "engine/trace/event.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
    bool mistake;
} kinds[] = {
    {"", "", false},
#define EVENT(id, name, mistake, meaning) {name, meaning, mistake},
#include "engine/trace/events.def"
#undef EVENT
};

const char *event_name(enum event_kind kind)
{
    return kinds[kind].name;
}

const char *event_meaning(enum event_kind kind)
{
    return kinds[kind].meaning;
}

bool event_is_mistake(enum event_kind kind)
{
    return kinds[kind].mistake;
}

bool event_is_of_numbers(enum event_kind kind)
{
    return kind == EVENT_FP_INVALID || kind == EVENT_FP_DIVIDE || kind == EVENT_FP_OVERFLOW;
}

enum event_kind event_from_name(const char *name)
{
    for (int i = 1; i < EVENT_KINDS; i++)
        if (name && strcmp(kinds[i].name, name) == 0)
            return (enum event_kind)i;
    return EVENT_NONE;
}

_Static_assert(EVENT_KINDS <= 64, "every kind of event has a bit of a set");

void event_set_words(event_set set, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 1; i < EVENT_KINDS && used < bytes; i++)
        if (set & EVENT_BIT(i))
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? "," : "", kinds[i].name);
}
