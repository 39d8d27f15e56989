#include "engine/runners/cpu/report.h"

#include <string.h>

/* libbacktrace's interface as of gcc 12 (backtrace.h, unchanged since 4.8); the header itself stands in gcc's private
   folder, where other compilers and the analysers do not look. */
struct backtrace_state;
typedef void backtrace_error_fn(void *ctx, const char *message, int error);
typedef int backtrace_frame_fn(void *ctx, uintptr_t pc, const char *file, int line, const char *function);
struct backtrace_state *backtrace_create_state(const char *program, int threaded, backtrace_error_fn *on_error,
                                               void *ctx);
int backtrace_pcinfo(struct backtrace_state *state, uintptr_t pc, backtrace_frame_fn *on_frame,
                     backtrace_error_fn *on_error, void *ctx);
int backtrace_full(struct backtrace_state *state, int skip, backtrace_frame_fn *on_frame, backtrace_error_fn *on_error,
                   void *ctx);

struct found {
    uintptr_t from;   /* frames further in than this are the signal's; 0: past them */
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

/* Code of the program, not of a library that was built with debug information of its own. */
static int is_program(uintptr_t pc)
{
    /* From the linker. NOLINTNEXTLINE(bugprone-reserved-identifier) */
    extern const char __executable_start[], etext[];
    return pc >= (uintptr_t)__executable_start && pc < (uintptr_t)etext;
}

static int on_frame(void *ctx, uintptr_t pc, const char *file, int line, const char *function)
{
    struct found *found = ctx;
    (void)function;
    if (found->from && pc != found->from)
        return 0;
    found->from = 0;
    if (!file || !line || !is_program(pc))
        return 0;
    if (!locate_is_foreign(file))
        found->users = 1;
    else if (found->file || !strstr(file, "/cpu/include/"))
        return 0;
    found->file = file;
    found->line = line;
    return found->users;
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

int locate_user_line(uintptr_t pc, const char **file, int *line)
{
    struct found found = {0};
    if (state)
        backtrace_pcinfo(state, pc, on_frame, on_error, &found);
    if (state && !found.users) { /* in a library: ask the callers */
        struct found outer = {.from = pc};
        backtrace_full(state, 0, on_frame, on_error, &outer);
        if (outer.users || !found.file)
            found = outer;
    }
    *file = found.file;
    *line = found.line;
    return found.file ? 0 : -1;
}
