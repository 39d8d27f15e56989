/* Kernels that register host code of their own: their plan is a rehearsal of it, their launch is what it launches. */
#include "engine/base/dtype.h"
#include "engine/child/debuggee/array_list.h"
#include "engine/child/debuggee/debuggee.h"
#include "engine/trace/layout.h"
#include "engine/trace/live.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct asc_kernel hosted;
static int32_t *states; /* of the trace of the next launch */
static char why[512];

static struct {
    bool inside, rehearsed; /* of the host code */
    pthread_t thread;
    jmp_buf left;
} host;

void __real_exit(int status) __attribute__((noreturn)); /* NOLINT(*-identifier): the linker's names */
void __wrap_exit(int status) __attribute__((noreturn)); /* NOLINT(*-identifier) */

bool debuggee_may_leave(void)
{
    return host.inside && pthread_equal(host.thread, pthread_self());
}

const char *asc_exit_sentence(int status); /* which standin/exit.h throws */

const char *asc_exit_sentence(int status)
{
    static char sentence[64];
    snprintf(sentence, sizeof sentence, "its host code called exit(%d)", status);
    return sentence;
}

/* Teaching code ends its program where it does not take something. What the compiler sees throws (simt_device.h,
   standin/exit.h); from a library destructors are skipped. */
void __wrap_exit(int status) /* NOLINT(*-identifier) */
{
    if (!debuggee_may_leave())
        __real_exit(status);
    snprintf(why, sizeof why, "%s", asc_exit_sentence(status));
    longjmp(host.left, 1);
}

bool debuggee_in_host_code(void)
{
    return debuggee_may_leave() && !host.rehearsed;
}

/* NULL, or the sentence of why. */
static const char *call(const struct asc_problem *problem, struct asc_plan *plan, void *stream)
{
    host.thread = pthread_self();
    if (setjmp(host.left)) {
        host.inside = false;
        return why;
    }
    host.inside = true;
    host.rehearsed = plan != NULL;
    const bool done = asc_run_host(&hosted, problem, plan, plan ? NULL : states, stream, why, sizeof why);
    host.inside = false;
    return done ? NULL : why;
}

/* With arrays of its own, which but for the lengths of sequences nobody fills: at the time of a plan there is no trace.
   What a scheduler on the host reads are sequences of the full length, and page 0. */
static const char *plan(const struct asc_problem *problem, struct asc_plan *out)
{
    struct asc_problem p = problem_bare(problem);
    const size_t entries = (size_t)p.batch * (size_t)asc_table_pages(&p);
    int32_t *lens[2] = {calloc((size_t)p.batch, sizeof(int32_t)), calloc((size_t)p.batch, sizeof(int32_t))};
    int32_t *table = calloc(entries + 1, sizeof *table);
    struct array_list list = {.of = p};
    void *at[ARRAYS] = {0};
    const char *sentence = lens[0] && lens[1] && table ? NULL : "there is no memory for its arrays";
    for (int b = 0; b < p.batch && !sentence; b++) {
        lens[0][b] = p.q_len;
        lens[1][b] = p.kv_len;
    }
    p.q_lens = p.has_q_lens ? lens[0] : NULL;
    p.kv_lens = p.has_kv_lens ? lens[1] : NULL;
    p.page_table = p.page_size ? table : NULL;
    if (!sentence && array_list_make(&hosted, &p, &(struct asc_plan){0}, &list) != 0)
        sentence = "there is no memory for its arrays";
    for (int i = 0; i < ARRAYS && !sentence; i++)
        if (list.bytes[i] && !(at[i] = debuggee_array_new(list.bytes[i], list.at[i])))
            sentence = "there is no memory for its arrays";
    debuggee_rehearse(true);
    if (!sentence) {
        array_list_use(&list, at, &p);
        sentence = call(&p, out, NULL);
    }
    out->threads = debuggee_rehearse(false);
    for (int i = 0; i < ARRAYS; i++)
        debuggee_array_free(at[i]);
    array_list_free(&list);
    free(lens[0]);
    free(lens[1]);
    free(table);
    if (!sentence && !out->threads)
        sentence = "its host code launched nothing";
    return sentence;
}

static const char *launch(const struct asc_problem *problem, void *stream)
{
    return call(problem, NULL, stream);
}

void debuggee_host_deals(int32_t *to)
{
    states = to;
}

/* Of the C++ library that a kernel is linked with. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-*) */
char *__cxa_demangle(const char *mangled, char *out, size_t *bytes, int *failed)
    __attribute__((weak)); /* NOLINT(*-identifier) */

/* What run.h calls where an instance is called that no file has which is linked. */
const char *asc_missing_sentence(const char *mangled);
void asc_missing_end(const char *sentence);
static int missing_calls;

const char *asc_missing_sentence(const char *mangled)
{
    static char sentence[384];
    char *name = __cxa_demangle ? __cxa_demangle(mangled, NULL, NULL, NULL) : NULL;
    char *end = name ? strrchr(name, ')') : NULL;
    for (int depth = 1; end && end > name && depth;) { /* its parameters are left out */
        end--;
        depth += (*end == ')') - (*end == '(');
    }
    if (end)
        *end = '\0';
    snprintf(sentence, sizeof sentence, "%.300s is called, and no file that is linked has it (ASC_SOURCES)",
             name ? name : mangled);
    free(name);
    missing_calls++;
    return sentence;
}

void asc_missing_end(const char *sentence)
{
    fprintf(stderr, "%s\n", sentence);
    abort();
}

static bool takes(enum dtype type)
{
    static const int head_dims[] = {64, 128, 32, 96, 256, 16};
    struct asc_problem p = {.batch = 1,
                            .heads = 1,
                            .kv_heads = 1,
                            .q_len = 128,
                            .kv_len = 128,
                            .layout = hosted.layouts & ASC_SUPPORTS(BHLD)   ? ASC_BHLD
                                      : hosted.layouts & ASC_SUPPORTS(BLHD) ? ASC_BLHD
                                                                            : ASC_THD,
                            .dtype = (int32_t)type,
                            .k_dtype = (int32_t)type,
                            .v_dtype = (int32_t)type,
                            .window_left = -1,
                            .window_right = -1};
    bool taken = false;
    for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims && !taken; i++) {
        struct asc_plan ignored = {0};
        const int missing = missing_calls;
        p.head_dim = p.head_dim_v = head_dims[i];
        p.scale = 1 / sqrtf((float)p.head_dim);
        taken = !plan(&p, &ignored) || missing_calls > missing; /* this build lacks its instance, no more */
    }
    return taken;
}

/* Which types it takes it knows itself: it is asked. What it prints of that is nobody's to read. */
static uint32_t types_taken(void)
{
    static const enum dtype asked[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32};
    uint32_t set = 0;
    fflush(NULL);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), out = dup(1), err = dup(2);
    if (nowhere >= 0) {
        dup2(nowhere, 1);
        dup2(nowhere, 2);
    }
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        set |= (uint32_t)takes(asked[i]) << asked[i];
    fflush(NULL);
    const int fds[] = {nowhere, out, err};
    if (out >= 0)
        dup2(out, 1);
    if (err >= 0)
        dup2(err, 2);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return set;
}

void debuggee_host(struct asc_kernel *kernel)
{
    if (kernel->run) {
        hosted = *kernel;
        kernel->plan = plan;
        kernel->launch = launch;
        kernel->dtypes = kernel->dtypes ? kernel->dtypes : types_taken();
    }
    kernel->dtypes = kernel->dtypes ? kernel->dtypes : 1u << DTYPE_F16;
}
