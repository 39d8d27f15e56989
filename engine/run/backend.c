#include "engine/run/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int backend_wish(const struct scenario *scenario, int *out, struct err *err)
{
    static const char *const names[] = {"auto", "gpu", "cpu"};
    const char *given = getenv("ATTNSCOPE_BACKEND");
    *out = scenario->checks ? SCENARIO_BACKEND_CPU : scenario->backend;
    if (*out != SCENARIO_BACKEND_AUTO || !given || !*given)
        return 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(given, names[i]) == 0) {
            *out = i;
            return 0;
        }
    return err_set(err, ERR_INPUT, "ATTNSCOPE_BACKEND", "expected auto, gpu or cpu, found '%s'", given);
}

int backend_choose(const struct runner_paths *paths, const struct scenario *scenario, struct build_request *request,
                   struct gpu_device *gpu, char *note, size_t size, struct err *err)
{
    struct err why = {0};
    int wanted;
    snprintf(note, size, "%s", "");
    if (backend_wish(scenario, &wanted, err) != 0)
        return -1;
    request->backend = BACKEND_CPU;
    request->checks = scenario->checks;
    request->gpu = NULL;
    request->debug = scenario->debug == SCENARIO_DEBUG_FULL ? GPU_FULL : GPU_LINEINFO;
    if (wanted == SCENARIO_BACKEND_CPU)
        return 0;
    const int no_device = device_find(paths, gpu, &why), no_compiler = !no_device && build_gpu_ready(paths, &why);
    if (!no_device && !no_compiler) {
        request->backend = BACKEND_GPU;
        request->gpu = gpu;
        return 0;
    }
    if (wanted == SCENARIO_BACKEND_GPU) {
        *err = why;
        return -1;
    }
    if (no_compiler)
        snprintf(note, size, "%s is not used: %s%s%s", gpu->name, why.where, *why.where ? ": " : "", why.message);
    return 0;
}
