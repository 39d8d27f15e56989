/* Kernels that register host code of their own: their plan is a rehearsal of it, their launch is what it launches. */
#include "engine/base/dtype.h"
#include "engine/child/debuggee/debuggee.h"
#include "engine/trace/layout.h"
#include "engine/trace/live.h"

#include <stddef.h>

static struct asc_kernel hosted;
static char why[512];

/* With arrays of its own, which nobody fills: at the time of a plan there is no trace. */
static const char *plan(const struct asc_problem *problem, struct asc_plan *out)
{
    struct asc_problem p = *problem;
    const size_t queries = (size_t)p.batch * (size_t)p.heads * (size_t)p.q_len, d = (size_t)p.head_dim;
    const size_t keys = (size_t)p.batch * (size_t)p.kv_heads * (size_t)p.kv_len;
    const size_t bytes[] = {
        queries * d * dtype_bytes((enum dtype)p.dtype), keys * d * dtype_bytes((enum dtype)p.k_dtype),
        keys * d * dtype_bytes((enum dtype)p.v_dtype),
        queries * d * dtype_bytes((enum dtype)problem_o_dtype(&p, hosted.o_dtype)), queries * sizeof *p.lse};
    enum { N = sizeof bytes / sizeof *bytes };
    void *array[N] = {0};
    const char *sentence = NULL;
    for (int i = 0; i < N && !sentence; i++)
        if (!(array[i] = debuggee_array_new(bytes[i])))
            sentence = "there is no memory for its arrays";
    p.q = array[0];
    p.k = array[1];
    p.v = array[2];
    p.o = array[3];
    p.lse = array[4];
    debuggee_rehearse(true);
    if (!sentence && !asc_run_host(&hosted, &p, out, NULL, why, sizeof why))
        sentence = why;
    out->threads = debuggee_rehearse(false);
    for (int i = 0; i < N; i++)
        debuggee_array_free(array[i]);
    if (!sentence && !out->threads)
        sentence = "its host code launched nothing";
    return sentence;
}

static const char *launch(const struct asc_problem *problem, void *stream)
{
    return asc_run_host(&hosted, problem, NULL, stream, why, sizeof why) ? NULL : why;
}

void debuggee_host(struct asc_kernel *kernel)
{
    if (!kernel->run)
        return;
    hosted = *kernel;
    kernel->plan = plan;
    kernel->launch = launch;
}
