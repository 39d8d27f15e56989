/* Which backend a scenario runs on. */
#ifndef RUN_BACKEND_H
#define RUN_BACKEND_H

#include "engine/build/runner.h"
#include "engine/scenario/scenario.h"

/* What is asked for, enum scenario_backend: by the scenario, or by ATTNSCOPE_BACKEND where that leaves it open. */
int backend_wish(const struct scenario *scenario, int *out, struct err *err);

/* Fills the backend's part of *request (backend, gpu, debug); *gpu is what request->gpu then points to. A scenario that
   leaves it open runs on the GPU if a device answers and there is a compiler for it, else on the CPU; `note` (at most
   `size` bytes, may be "") says why a device that is there is not used. ERR_SYSTEM: a GPU is asked for and cannot be
   had. ERR_INPUT: ATTNSCOPE_BACKEND is none of auto, gpu, cpu. */
int backend_choose(const struct runner_paths *paths, const struct scenario *scenario, struct build_request *request,
                   struct gpu_device *gpu, char *note, size_t size, struct err *err);

#endif
