/* An attnscope-judge that serves: kept for one run after the other, since a CUDA context and pinned memory take longer
   than what it is asked. */
#ifndef RUN_GPU_PROCESS_H
#define RUN_GPU_PROCESS_H

#include "engine/build/runner.h"
#include <stdbool.h>

struct gpu_process;

/* Starts it, without waiting; what fails is said when it is asked. NULL: no memory. */
struct gpu_process *gpu_process_start(const char *program);
void gpu_process_stop(struct gpu_process *p); /* NULL is legal */

bool gpu_process_alive(const struct gpu_process *p); /* it can be asked */

/* Waits until its device is there: its name, borrowed. NULL: *err, one sentence. */
const char *gpu_process_device(struct gpu_process *p, const struct runner_progress *progress, struct err *err);

/* What the last work took there, seconds: inputs to the device; the rest, captured values among it. */
struct gpu_process_spent {
    double copying, judging;
};
struct gpu_process_spent gpu_process_spent(const struct gpu_process *p);

/* One work (judge/work.h) on the tensors of a trace's file. ERR_SYSTEM: one sentence; ERR_CANCELLED. After either it
   has ended, and is asked nothing more. */
int gpu_process_ask(struct gpu_process *p, const char *work, const char *trace, const struct runner_progress *progress,
                    struct err *err);

#endif
