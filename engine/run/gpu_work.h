/* A work of attnscope-judge: the file that it and attnscope map (judge/work.h). */
#ifndef RUN_GPU_WORK_H
#define RUN_GPU_WORK_H

#include "engine/build/runner.h"
#include "engine/judge/work.h"
#include "engine/run/gpu_process.h"
#include "engine/trace/trace.h"
#include "engine/verdict/case.h"

/* Of a head, whose q tiles differ in their rows alone. */
struct head {
    struct slot_case c;
    int32_t place[3];
    bool made;
};

struct gpu_work {
    int fd;
    struct judge_work *work; /* mapped */
    size_t bytes;
};

/* Makes the work of n q tiles. wanted: end; n_values, not 0 where values are asked for; and of captured stages
   captured, n_orders and n_verdicts, whose arrays are the caller's to fill. gpu_work_close() in any case. */
int gpu_work_open(const struct trace *t, const int32_t *types, int32_t (*places)[3], int64_t n,
                  const struct judge_work *wanted, struct gpu_work *job, struct err *err);
void gpu_work_close(struct gpu_work *job);
void *gpu_work_part(const struct gpu_work *job, int64_t offset);

/* process: who serves; NULL: the program is started for this one. */
int gpu_work_run(const char *program, struct gpu_process *process, const struct trace *t, const struct gpu_work *job,
                 const struct runner_progress *progress, struct err *err);

#endif
