#include "engine/trace/event.h"

#include <string.h>

static const struct {
    const char *name, *meaning;
    int mistake;
} kinds[] = {
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

int event_is_mistake(const char *name)
{
    const int kind = event_from_name(name);
    return kind >= 0 && kinds[kind].mistake;
}

int event_from_name(const char *name)
{
    for (int i = 0; i < EVENT_KINDS; i++)
        if (name && strcmp(kinds[i].name, name) == 0)
            return i;
    return -1;
}
