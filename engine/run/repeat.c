#include "engine/run/repeat.h"

#include <math.h>
#include <xxhash.h>

static uint64_t outputs_of(const struct trace *t)
{
    const struct asc_problem *p = &t->problem;
    const uint64_t rows = (uint64_t)p->batch * (uint64_t)p->heads * (uint64_t)p->q_len;
    enum dtype type;
    const void *o = trace_tensor(t, 'o', &type);
    const uint64_t hash = XXH3_64bits(o, rows * (uint64_t)p->head_dim * dtype_bytes(type));
    const void *lse = trace_tensor(t, 'L', &type);
    return XXH3_64bits_withSeed(lse, rows * dtype_bytes(type), hash);
}

double repeat_error_given(const struct repeat_result *r)
{
    return isnan(r->error.unquantized.rms) ? r->error.largest : r->error.unquantized.largest;
}

int repeat_measure(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario, int runs,
                   const struct runner_progress *progress, struct repeat_result *out, struct err *err)
{
    struct trace *t = NULL;
    uint64_t first = 0;
    *out = (struct repeat_result){0};
    int failed = record_open(r, paths, scenario, PROBES_NONE, 0, progress, &t, err);
    for (int i = 0; i < runs && !failed; i++) {
        failed = child_run(r->child, t, scenario->limit_s, progress, err) != 0;
        if (failed)
            break;
        const uint64_t outputs = outputs_of(t);
        if (i == 0) {
            first = outputs;
            out->limit = t->plan.error_limit;
            failed = output_error_judge(t, progress, &out->error, err) != 0;
        }
        out->runs++;
        out->differing += outputs != first;
    }
    trace_free(t);
    return failed ? -1 : 0;
}
