/* Kernels that register host code of their own: their plan is a rehearsal of it, their launch is what it launches. */
#include "engine/base/dtype.h"
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

/* Teaching code ends its program where it does not take something. */
void __wrap_exit(int status) /* NOLINT(*-identifier) */
{
    if (!host.inside || !pthread_equal(host.thread, pthread_self()))
        __real_exit(status);
    snprintf(why, sizeof why, "its host code called exit(%d)", status);
    longjmp(host.left, 1);
}

bool debuggee_in_host_code(void)
{
    return host.inside && !host.rehearsed && pthread_equal(host.thread, pthread_self());
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

/* What a scheduler on the host reads: sequences of the full length one behind the other, page 0. -1: no memory. */
static int fill_numbers(const struct asc_problem *p, int32_t **lens, int32_t **ends)
{
    const size_t n = (size_t)p->batch + 1;
    for (int i = 0; i < 2; i++) {
        const int32_t length = i ? p->kv_len : p->q_len;
        lens[i] = malloc(n * sizeof(int32_t));
        ends[i] = malloc(n * sizeof(int32_t));
        if (!lens[i] || !ends[i])
            return -1;
        for (size_t b = 0; b < n; b++) {
            lens[i][b] = length;
            ends[i][b] = (int32_t)b * length;
        }
    }
    return 0;
}

/* With arrays of its own, which but for the lengths of sequences nobody fills: at the time of a plan there is no trace.
 */
static const char *plan(const struct asc_problem *problem, struct asc_plan *out)
{
    struct asc_problem p = *problem;
    const size_t queries = (size_t)p.batch * (size_t)p.heads * (size_t)p.q_len;
    const size_t d = (size_t)p.head_dim, d_v = (size_t)p.head_dim_v;
    const size_t rows = p.page_size ? (size_t)p.pages * (size_t)p.page_size : (size_t)p.batch * (size_t)p.kv_len;
    const size_t keys = rows * (size_t)p.kv_heads, numbers = ((size_t)p.batch + 1) * sizeof(int32_t);
    const size_t entries = (size_t)p.batch * (size_t)asc_table_pages(&p);
    int32_t *lens[2] = {NULL}, *ends[2] = {NULL}, *table = calloc(entries + 1, sizeof *table);
    const char *sentence = fill_numbers(&p, lens, ends) != 0 || !table ? "there is no memory for its arrays" : NULL;
    const struct {
        size_t bytes;
        const void *from;
    } arrays[] = {{queries * d * dtype_bytes((enum dtype)p.dtype), NULL},
                  {keys * d * dtype_bytes((enum dtype)p.k_dtype), NULL},
                  {p.v_in_k ? 0 : keys * d_v * dtype_bytes((enum dtype)p.v_dtype), NULL},
                  {queries * d_v * dtype_bytes((enum dtype)problem_o_dtype(&p, hosted.o_dtype)), NULL},
                  {queries * sizeof *p.lse, NULL},
                  {p.has_q_lens ? numbers : 0, lens[0]},
                  {p.has_kv_lens ? numbers : 0, lens[1]},
                  {p.layout == ASC_THD ? numbers : 0, ends[0]},
                  {p.layout == ASC_THD && !p.page_size ? numbers : 0, ends[1]},
                  {entries * sizeof(int32_t), table}};
    enum { N = sizeof arrays / sizeof *arrays };
    void *array[N] = {0};
    for (int i = 0; i < N && !sentence; i++)
        if (arrays[i].bytes && !(array[i] = debuggee_array_new(arrays[i].bytes, arrays[i].from)))
            sentence = "there is no memory for its arrays";
    p.q = array[0];
    p.k = array[1];
    p.v = p.v_in_k ? array[1] : array[2];
    p.o = array[3];
    p.lse = array[4];
    p.q_lens = array[5];
    p.kv_lens = array[6];
    p.cu_seqlens_q = array[7];
    p.cu_seqlens_k = array[8];
    p.page_table = array[9];
    p.total_q = p.batch * p.q_len;
    p.total_k = p.batch * p.kv_len;
    debuggee_rehearse(true);
    if (!sentence)
        sentence = call(&p, out, NULL);
    out->threads = debuggee_rehearse(false);
    for (int i = 0; i < N; i++)
        debuggee_array_free(array[i]);
    for (int i = 0; i < 2; i++) {
        free(lens[i]);
        free(ends[i]);
    }
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
        p.head_dim = p.head_dim_v = head_dims[i];
        p.scale = 1 / sqrtf((float)p.head_dim);
        taken = !plan(&p, &ignored);
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
