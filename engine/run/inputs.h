/* The inputs of a run: filled, or read of files (docs/scenarios.md, [inputs]). */
#ifndef RUN_INPUTS_H
#define RUN_INPUTS_H

#include "engine/build/runner.h"
#include "engine/run/filled.h"
#include "engine/scenario/scenario.h"
#include "engine/trace/trace.h"

struct pool;

/* Zero-initialize; owned by the caller: inputs_free(). */
struct run_inputs {
    void *values[3]; /* Q, K, V in the problem's layout, of fill_dtype(); NULL: only codes are known */
    bool filled[3];  /* values are what fill_tensor() made, and nothing else */
    void *codes[3];  /* where the tensor holds codes */
    float *scales[3];
    float tensor_scale[3];      /* of scales that are e4m3; else 0 */
    float *sink, *alibi, *bias; /* where the problem has them */
    uint8_t *mask, *keep;
    int32_t *page_table;
};

/* What the scenario, whose types are settled, gives the kernel. progress is told what was rounded. pool: whose threads
   fill; NULL: the calling one does. before: what was filled for another run, and may serve again; NULL: nothing. */
int inputs_make(const struct scenario *scenario, struct pool *pool, struct filled *before,
                const struct runner_progress *progress, struct run_inputs *out, struct err *err);
/* Sets p's tensor scales, its pointers to scales, sinks, slopes and bias; Q, K and V are what trace_create() takes. */
struct trace_inputs inputs_of(const struct run_inputs *inputs, struct asc_problem *p);
/* Leaves what was filled to the next run of such a scenario. */
void inputs_keep(struct run_inputs *inputs, const struct scenario *scenario, struct filled *to);
void inputs_free(struct run_inputs *inputs);

#endif
