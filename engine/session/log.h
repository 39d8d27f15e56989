/* Lines that compiler and kernel have said. */
#ifndef SESSION_LOG_H
#define SESSION_LOG_H

#include <stdbool.h>
#include <stddef.h>

#define LOG_LINES_MAX 10000

struct log {
    char **line; /* owned, [n]: the newest last */
    size_t n;
    size_t n_remarks;   /* of the first run's lines, from the first: the compiler's */
    bool fresh_remarks; /* which were said now, not in a build of before */
};

/* Of a kernel that prints without end the newest LOG_LINES_MAX are kept; a line that there is no memory for is lost. */
void log_add(struct log *log, const char *line);
void log_take(struct log *log, struct log *from); /* all of it; from is empty then */
void log_free(struct log *log);

#endif
