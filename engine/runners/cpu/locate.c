#include "engine/runners/cpu/report.h"

#include <backtrace.h>
#include <string.h>

struct found {
    const char *file; /* borrowed from libbacktrace, which keeps it */
    int line;
    int users; /* the user's own, not merely the first known */
};

/* Headers that a kernel's operations live in are not where the user looks. */
int locate_is_foreign(const char *file)
{
    static const char *const ours[] = {"engine/runners/cpu/", "engine/base/", "probes/attnscope.h"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strstr(file, ours[i]))
            return 1;
    return !strncmp(file, "/usr/include/", 13) || !strncmp(file, "/usr/lib/", 9);
}

static int on_frame(void *ctx, uintptr_t pc, const char *file, int line, const char *function)
{
    struct found *found = ctx;
    (void)pc;
    (void)function;
    if (!file)
        return 0;
    if (locate_is_foreign(file)) {
        if (!found->file && strstr(file, "/cpu/include/")) {
            found->file = file;
            found->line = line;
        }
        return 0;
    }
    found->file = file;
    found->line = line;
    found->users = 1;
    return 1;
}

static void on_error(void *ctx, const char *message, int error)
{
    (void)ctx;
    (void)message;
    (void)error;
}

static struct backtrace_state *state; /* owned for good: libbacktrace has no way to free it */

void locate_init(void)
{
    if (!state)
        state = backtrace_create_state(NULL, 1, on_error, NULL);
}

int locate_user_line(const char **file, int *line)
{
    struct found found = {0};
    if (state)
        backtrace_full(state, 0, on_frame, on_error, &found);
    *file = found.file;
    *line = found.line;
    return found.file ? 0 : -1;
}
