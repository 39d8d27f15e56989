/* What a run launched, whoever launched it: the runtime's launch functions are wrapped (build_gpu.c), so that a failure
   can name the kernel and set what it asked for against what the device allows, and that the parent is told what the
   kernels take.
 */
#ifndef GPU_LAUNCHES_H
#define GPU_LAUNCHES_H

#include "engine/trace/event.h"
#include "engine/trace/launch.h"
#include <cuda_runtime_api.h>
#include <stdbool.h>

struct launched {
    struct trace_launch facts;
    const void *function;                 /* borrowed: the kernel; NULL: nothing was launched */
    struct cudaFuncAttributes attributes; /* zeros where they are not known */
};

void launches_reset(void);
void launches_stage(bool wanted);           /* whether launches make room for the probes' windows (probes/staging.h) */
void launches_keep(size_t n);               /* forgets all but the first n */
size_t launches_count(void);                /* of those kept */
struct launched *launches_at(size_t i);     /* i < launches_count() */
const struct launched *launches_last(void); /* NULL: nothing was launched */

/* What ended a failed launch or kernel is: status is what a synchronization found afterwards.
 */
enum event_kind launches_stopped_by(cudaError_t status);

/* After a run that went well: how many blocks of each are resident on a multiprocessor. */
void launches_find_occupancy(void);
/* All of them as launches_read() takes it; not_measured: why counters are missing, or "". NULL without memory. */
json_t *launches_describe(const char *not_measured);

#endif
