#include "engine/runners/debuggee/array_list.h"

#include "engine/base/dtype.h"
#include "engine/runners/debuggee/say.h"
#include <stdio.h>

const char *const array_names[ARRAYS] = {"Q", "K", "V", "the sinks", "the ALiBi slopes", "the bias", "O", "LSE"};

struct array_list array_list_of(const struct asc_kernel *kernel, const struct asc_problem *problem)
{
    const struct asc_problem *p = problem;
    const int o_dtype = kernel->o_dtype >= 0 ? kernel->o_dtype : p->dtype;
    const size_t rows = (size_t)p->batch * (size_t)p->heads * (size_t)p->q_len;
    const size_t keys = (size_t)p->batch * (size_t)p->kv_heads * (size_t)p->kv_len;
    const size_t row_bytes = (size_t)p->head_dim * dtype_bytes((enum dtype)p->dtype);
    const size_t head_bytes = (size_t)p->heads * sizeof(float);
    return (struct array_list){.at = {p->q, p->k, p->v, p->sink, p->alibi, p->bias, p->o, p->lse},
                               .bytes = {rows * row_bytes, keys * row_bytes, keys * row_bytes, head_bytes, head_bytes,
                                         asc_bias_count(p) * sizeof(float),
                                         rows * (size_t)p->head_dim * dtype_bytes((enum dtype)o_dtype),
                                         rows * sizeof(float)}};
}

void array_list_use(void *const at[ARRAYS], struct asc_problem *problem)
{
    problem->q = at[ARRAY_Q];
    problem->k = at[ARRAY_K];
    problem->v = at[ARRAY_V];
    problem->sink = at[ARRAY_SINK];
    problem->alibi = at[ARRAY_ALIBI];
    problem->bias = at[ARRAY_BIAS];
    problem->o = at[ARRAY_O];
    problem->lse = at[ARRAY_LSE];
}

void array_list_say_overrun(const char *name, int socket)
{
    struct say s;
    char text[64];
    snprintf(text, sizeof text, "the kernel wrote outside %s", name);
    say_begin(&s, WIRE_EVENT);
    say_text(&s, "kind", "address");
    say_integer(&s, "line", 0);
    say_text(&s, "file", NULL);
    say_text(&s, "text", text);
    say_end(&s, socket);
}
