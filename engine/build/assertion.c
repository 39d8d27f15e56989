#include "engine/build/assertion.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ":12: " in [line, end): where the file's name ends. */
static const char *find_number(const char *line, const char *end)
{
    for (const char *c = line; c + 2 < end; c++) {
        if (*c != ':' || !isdigit((unsigned char)c[1]))
            continue;
        const char *digit = c + 1;
        while (digit < end && isdigit((unsigned char)*digit))
            digit++;
        if (digit < end && *digit == ':')
            return c;
    }
    return NULL;
}

int assertion_parse(const char *line, struct trace_event *event)
{
    static const char said[] = " Assertion `", failed[] = "failed";
    unsigned block[3], thread[3];
    const char *place = strstr(line, ": block: ["), *begin = place ? strstr(place, said) : NULL;
    if (!begin || sscanf(place, ": block: [%u,%u,%u], thread: [%u,%u,%u]", &block[0], &block[1], &block[2], &thread[0],
                         &thread[1], &thread[2]) != 6)
        return 0;
    begin += sizeof said - 1;
    const char *colon = find_number(line, place), *end = NULL;
    for (const char *at = begin; (at = strstr(at, failed)); at++)
        end = at;
    while (end && end > begin && strchr(" `'", end[-1]))
        end--;
    if (!colon || !end)
        return 0;
    trace_event_init(event);
    snprintf(event->kind, sizeof event->kind, "%s", event_name(EVENT_ASSERT));
    event->line = (int)strtol(colon + 1, NULL, 10);
    snprintf(event->file, sizeof event->file, "%.*s", (int)(colon - line), line);
    snprintf(event->text, sizeof event->text, "assertion `%.*s` failed in block (%u,%u,%u), thread (%u,%u,%u)",
             (int)(end - begin < 300 ? end - begin : 300), begin, block[0], block[1], block[2], thread[0], thread[1],
             thread[2]);
    return 1;
}
