/* Inside of a child, shared by its life (child.c) and its run (child_run.c). */
#ifndef CHILD_CHILD_H
#define CHILD_CHILD_H

#include "engine/base/leftovers.h"
#include "engine/base/wire.h"
#include "engine/build/runner.h"
#include "engine/trace/trace.h"
#include <stdbool.h>
#include <sys/types.h>

struct child {
    pid_t pid; /* -1: ended and reaped */
    struct wire wire;
    int status; /* once it has ended: as of waitpid(), -1 unknown */
    int log_fd; /* owned: the reading end of its stdout and stderr; -1 after their end */
    int last_id;
    struct child_hello hello;
    enum memory_kind memory;
    struct guardian *guardian; /* borrowed, or NULL */
    char program[600];
    char log_line[4096];
    size_t n_log_line;
    uint64_t log_bytes; /* of this run, as far as they were read */
    char early[4096];   /* lines that it printed before somebody listened, the first ones; NUL-terminated */
    char mark[LEFTOVERS_MARK_BYTES]; /* of its environment, and of all that it starts */
    struct trace_event assertion;    /* the first device-side assert that was printed; kind "": none */
};

int child_end(struct child *c, double wait_s); /* waits, kills, reaps; the status as of waitpid(), -1 unknown */
void child_describe_end(int status, char *text, size_t size); /* "was ended by signal 9 (Killed)" */
/* Hands finished lines of the kernel's output to progress->log, of each run the first CHILD_LOG_BYTES; at_end also one
   without a newline, and how much more there was. */
#define CHILD_LOG_BYTES (16u << 20)
void child_pass_log(struct child *c, const struct runner_progress *progress, bool at_end);
/* Ends what the kernel started and left running, and says so to progress->log. */
void child_end_descendants(struct child *c, const struct runner_progress *progress);
int child_wait(struct child *c, int wait_ms); /* until there is something to read */
/* A device-side assert, as the CUDA driver prints it on the process's stderr:
   `file.cu:12: void k(int): block: [1,0,0], thread: [32,0,0] Assertion `i < n` failed.` (CUDA C++ Programming Guide,
   "Assertion"). 1: it is one; *event then has kind "assert", file, line and a text. */
bool assertion_parse(const char *line, struct trace_event *event);

#endif
