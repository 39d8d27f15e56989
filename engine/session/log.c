#include "engine/session/log.h"

#include <stdlib.h>
#include <string.h>

/* Room for n more lines, where the oldest make it. false without memory. */
static bool make_room(struct log *log, size_t n)
{
    if (log->n + n > LOG_LINES_MAX) {
        const size_t gone = log->n + n - LOG_LINES_MAX < log->n ? log->n + n - LOG_LINES_MAX : log->n;
        for (size_t i = 0; i < gone; i++)
            free(log->line[i]);
        log->n -= gone;
        if (gone)
            memmove(log->line, log->line + gone, log->n * sizeof *log->line);
    }
    char **line = realloc(log->line, (log->n + n) * sizeof *line);
    if (line)
        log->line = line;
    return line != NULL;
}

void log_add(struct log *log, const char *line)
{
    char *own = strdup(line);
    if (own && make_room(log, 1))
        log->line[log->n++] = own;
    else
        free(own);
}

void log_take(struct log *log, struct log *from)
{
    if (from->n && make_room(log, from->n)) {
        memcpy(log->line + log->n, from->line, from->n * sizeof *from->line);
        log->n += from->n;
        from->n = 0;
    }
    log->n_remarks += from->n_remarks;
    log->fresh_remarks |= from->fresh_remarks;
    log_free(from);
}

void log_free(struct log *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->line[i]);
    free(log->line);
    *log = (struct log){0};
}
