#include "engine/child/debuggee/array_list.h"

#include "engine/base/dtype.h"
#include "engine/child/debuggee/say.h"
#include "engine/trace/event.h"
#include "engine/trace/layout.h"
#include <stdio.h>

const char *const array_names[ARRAYS] = {
    [ARRAY_Q] = "Q",
    [ARRAY_K] = "K",
    [ARRAY_V] = "V",
    [ARRAY_SINK] = "the sinks",
    [ARRAY_ALIBI] = "the ALiBi slopes",
    [ARRAY_BIAS] = "the bias",
    [ARRAY_Q_SCALE] = "the scales of Q",
    [ARRAY_K_SCALE] = "the scales of K",
    [ARRAY_V_SCALE] = "the scales of V",
    [ARRAY_O] = "O",
    [ARRAY_LSE] = "LSE",
    [ARRAY_WORKSPACE] = "the workspace",
};

static size_t scale_bytes(const struct asc_problem *p, const float *scale, int heads, int rows)
{
    return scale ? (size_t)p->batch * (size_t)heads * (size_t)asc_scale_groups(p, rows) * sizeof *scale : 0;
}

struct array_list array_list_of(const struct asc_kernel *kernel, const struct asc_problem *problem,
                                const struct asc_plan *plan)
{
    const struct asc_problem *p = problem;
    const size_t rows = (size_t)p->batch * (size_t)p->heads * (size_t)p->q_len, d = (size_t)p->head_dim;
    const size_t keys = (size_t)p->batch * (size_t)p->kv_heads * (size_t)p->kv_len;
    const size_t head_bytes = (size_t)p->heads * sizeof(float);
    return (struct array_list){
        .at = {p->q, p->k, p->v, p->sink, p->alibi, p->bias, p->q_scale, p->k_scale, p->v_scale},
        .bytes = {[ARRAY_Q] = rows * d * dtype_bytes((enum dtype)p->dtype),
                  [ARRAY_K] = keys * d * dtype_bytes((enum dtype)p->k_dtype),
                  [ARRAY_V] = keys * d * dtype_bytes((enum dtype)p->v_dtype),
                  [ARRAY_SINK] = p->sink ? head_bytes : 0,
                  [ARRAY_ALIBI] = p->alibi ? head_bytes : 0,
                  [ARRAY_BIAS] = asc_bias_count(p) * sizeof(float),
                  [ARRAY_Q_SCALE] = scale_bytes(p, p->q_scale, p->heads, p->q_len),
                  [ARRAY_K_SCALE] = scale_bytes(p, p->k_scale, p->kv_heads, p->kv_len),
                  [ARRAY_V_SCALE] = scale_bytes(p, p->v_scale, p->kv_heads, p->kv_len),
                  [ARRAY_O] = rows * d * dtype_bytes((enum dtype)problem_o_dtype(p, kernel->o_dtype)),
                  [ARRAY_LSE] = rows * sizeof(float),
                  [ARRAY_WORKSPACE] = (size_t)plan->workspace_bytes},
        .dtype = {p->dtype, p->k_dtype, p->v_dtype, DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32,
                  problem_o_dtype(p, kernel->o_dtype), DTYPE_F32, -1}};
}

void array_list_use(void *const at[ARRAYS], struct asc_problem *problem)
{
    problem->q = at[ARRAY_Q];
    problem->k = at[ARRAY_K];
    problem->v = at[ARRAY_V];
    problem->sink = at[ARRAY_SINK];
    problem->alibi = at[ARRAY_ALIBI];
    problem->bias = at[ARRAY_BIAS];
    problem->q_scale = at[ARRAY_Q_SCALE];
    problem->k_scale = at[ARRAY_K_SCALE];
    problem->v_scale = at[ARRAY_V_SCALE];
    problem->o = at[ARRAY_O];
    problem->lse = at[ARRAY_LSE];
    problem->workspace = at[ARRAY_WORKSPACE];
}

void array_list_say_overrun(const char *name, int socket)
{
    struct say s;
    char text[64];
    snprintf(text, sizeof text, "the kernel wrote outside %s", name);
    say_begin(&s, WIRE_EVENT);
    say_text(&s, "kind", event_name(EVENT_ADDRESS));
    say_integer(&s, "line", 0);
    say_text(&s, "file", NULL);
    say_text(&s, "text", text);
    say_end(&s, socket);
}
