#include "engine/simt/report.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

#define LINE_SEARCH_BYTES 64u

struct found {
    struct simt_stack *stack;
    uintptr_t below;  /* frames further in than this one, and it, are known already; 0: past them */
    uintptr_t at;     /* `below`, met */
    const char *body; /* borrowed from libbacktrace, which keeps it; NULL: unknown */
    bool ended;       /* the body is there */
};

/* Headers that a kernel's operations live in are not where the user looks. */
static bool is_foreign(const char *file)
{
    static const char *const ours[] = {"engine/simt/",    "engine/base/", "/include/attnscope", "probes/attnscope",
                                       "probes/record.h", "probes/abi.h", "probes/staging.h",   "probes/packed.h",
                                       "/include/c++/",   "/local/cuda",  "/lib/clang/",        "include/cute/",
                                       "include/cutlass/"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strstr(file, ours[i]))
            return true;
    return !strncmp(file, "/usr/include/", 13) || !strncmp(file, "/usr/lib/", 9);
}

/* Code of the program, not of a library that was built with debug information of its own. */
static bool is_program(uintptr_t pc)
{
    /* From the linker. NOLINTNEXTLINE(bugprone-reserved-identifier) */
    extern const char __executable_start[], etext[];
    return pc >= (uintptr_t)__executable_start && pc < (uintptr_t)etext;
}

static int on_frame(void *ctx, uintptr_t pc, const char *file, int line, const char *function)
{
    struct found *found = ctx;
    struct simt_stack *stack = found->stack;
    if (found->below) {
        if (pc != found->below && !found->at)
            return 0;
        found->at = found->below;
        if (pc == found->below)
            return 0;
        found->below = 0;
    }
    if (!file || line <= 0 || !is_program(pc) || is_foreign(file))
        return 0;
    stack->at[stack->n < SIMT_FRAMES ? stack->n++ : SIMT_FRAMES - 1] = (struct simt_frame){function, file, line};
    found->ended = found->body && function && !strcmp(function, found->body);
    return found->ended;
}

/* The kernel's body is what holds ASC_AT: around that stand only functions of its header. */
static int on_body(void *ctx, uintptr_t pc, const char *file, int line, const char *function)
{
    const char **body = ctx;
    (void)pc;
    (void)line;
    if (!file || is_foreign(file))
        return 0;
    *body = function;
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

static const char *without_dots(const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path;
}

static bool same_file(const char *a, const char *b)
{
    a = without_dots(a);
    b = without_dots(b);
    const size_t n_a = strlen(a), n_b = strlen(b), n = n_a < n_b ? n_a : n_b;
    return !strcmp(a + n_a - n, b + n_b - n); /* one of them may be relative */
}

/* What the compiler says of the place is exact; the line table knows who called. */
static void agree(const struct locate *what, struct simt_stack *out)
{
    if (!what->file || is_foreign(what->file))
        return;
    struct simt_frame *first = &out->at[0];
    if (!out->n || !same_file(first->file, what->file) || (what->pc && first->line != what->line))
        *out = (struct simt_stack){.n = 1};
    first->file = what->file;
    first->line = what->line;
}

void locate_stack(const struct locate *what, struct simt_stack *out)
{
    struct found found = {.stack = out};
    out->n = 0;
    uintptr_t pc = what->exact || !what->pc ? what->pc : what->pc - 1;
    if (state && what->body)
        backtrace_pcinfo(state, what->body - 1, on_body, on_error, &found.body);
    /* Code that a compiler has merged has no line: it has that of what stands before. */
    for (uint32_t back = 0; state && pc && !out->n && back < (what->exact ? 1 : LINE_SEARCH_BYTES); back++)
        backtrace_pcinfo(state, pc - back, on_frame, on_error, &found);
    for (int i = 0; state && i < what->n_callers && !found.ended; i++)
        backtrace_pcinfo(state, (uintptr_t)what->callers[i] - 1, on_frame, on_error, &found);
    if (state && what->is_running && !found.ended) {
        found.below = pc;
        backtrace_full(state, 0, on_frame, on_error, &found);
    }
    agree(what, out);
}

struct simt_frame locate_call(const struct simt_stack *stack)
{
    return stack->n ? stack->at[stack->n - 1] : (struct simt_frame){0};
}

/* Behind template arguments that begin at `at`, "I...E" (Itanium C++ ABI, 5.1). NULL: it is not understood. */
static const char *skip_arguments(const char *at)
{
    int depth = 0;
    do {
        if (*at >= '1' && *at <= '9') {
            char *rest;
            const unsigned long n = strtoul(at, &rest, 10);
            if (n > strlen(rest))
                return NULL;
            at = rest + n;
        } else if (*at == 'L' && at[1] != '_') { /* a literal: its type, its digits */
            at++;
            if (*at >= '1' && *at <= '9') { /* of an enumeration */
                char *rest;
                const unsigned long n = strtoul(at, &rest, 10);
                if (n > strlen(rest))
                    return NULL;
                at = rest + n;
            }
            at += strcspn(at, "E");
            if (!*at++)
                return NULL;
        } else if (*at == 'S' || *at == 'T') { /* stands for what was there: S_, S0_, T_, or St, Sa, ... */
            at++;
            if (*at == '_' || (*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z'))
                at += strcspn(at, "_");
            if (!*at++)
                return NULL;
        } else if (*at == 'A') { /* an array: its length */
            at += strcspn(at, "_");
        } else if (*at == 'D' && at[1]) { /* types of two letters */
            at += 2;
        } else {
            depth += (*at && strchr("INXJFZ", *at)) || strncmp(at, "Ul", 2) == 0; /* a lambda: Ul...E */
            depth -= *at == 'E';
            if (!*at++)
                return NULL;
        }
    } while (depth);
    return at;
}

void locate_name(const char *function, char *name, size_t size)
{
    const char *at = function ? function : "", *best = at;
    size_t n = strncmp(at, "operator", 8) != 0 ? strcspn(at, "<") : strlen(at);
    if (strncmp(at, "_ZZ", 3) == 0 && strstr(at, "clE")) { /* a lambda's, as debug information names it elsewhere */
        best = "operator()";
        n = strlen(best);
    } else if (strncmp(at, "_Z", 2) == 0) {
        n = 0;
        at += 2 + strspn(at + 2, "ZLNKVRO"); /* a static one's L, a nested name's N and what it qualifies */
        while (at && *at) {
            char *rest;
            if (*at == 'I') {
                at = skip_arguments(at);
            } else if (strncmp(at, "St", 2) == 0) {
                at += 2;
            } else if (*at == 'L') {
                at++;
            } else {
                const unsigned long length = *at >= '1' && *at <= '9' ? strtoul(at, &rest, 10) : 0;
                if (!length || length > strlen(rest))
                    break;
                best = rest;
                n = length;
                at = rest + length;
            }
        }
    }
    snprintf(name, size, "%.*s", (int)n, best);
}
