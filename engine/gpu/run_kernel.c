#include "engine/child/debuggee/debuggee.h"
#include "engine/gpu/cuda_error.h"
#include "engine/gpu/launches.h"
#include "engine/gpu/run.h"

#include <stdio.h>

enum backend debuggee_backend(void)
{
    return BACKEND_GPU;
}

/* The context comes up with the process, so that no run pays for it. */
bool debuggee_checked(void)
{
    return false;
}

int debuggee_prepare(char *device, size_t size, char *why, size_t why_size)
{
    struct cudaDeviceProp properties;
    cudaError_t status = cudaFree(NULL);
    if (status == cudaSuccess)
        status = cudaGetDeviceProperties(&properties, 0);
    if (status != cudaSuccess) {
        cuda_error_text(status, why, why_size);
        return -1;
    }
    snprintf(device, size, "%.60s, sm_%d%d", properties.name, properties.major, properties.minor);
    return 0;
}

void *debuggee_array_new(size_t bytes, const void *from)
{
    void *array = NULL;
    if (cudaMalloc(&array, bytes) != cudaSuccess)
        return NULL;
    if (!from || cudaMemcpy(array, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess)
        return array;
    cudaFree(array);
    return NULL;
}

void debuggee_array_free(void *array)
{
    cudaFree(array);
}

void debuggee_arm(void) {}

/* A kernel on a GPU cannot be stopped from within its process: attnscope ends the process. */
void debuggee_cancel(void) {}

void debuggee_where(void) {} /* the stamps say it */

/* Launches, waits, and takes the time between two events around it. */
static int launch(const struct asc_kernel *kernel, const struct run *run, struct launch_result *result)
{
    cudaEvent_t begin = NULL, end = NULL;
    float ms = 0;
    launches_reset();
    cudaGetLastError();
    if (cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess) {
        run_say_stopped(cudaGetLastError(), result->text, sizeof result->text);
        return -1;
    }
    const struct run_events events = {begin, end};
    const int failed = run_once(kernel, run, &events, result->text, sizeof result->text);
    if (failed)
        result->stopped = launches_stopped_by(cudaDeviceSynchronize());
    if (!failed && cudaEventElapsedTime(&ms, begin, end) == cudaSuccess)
        result->seconds = 1e-3 * (double)ms;
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return failed;
}

static int launch_and_publish(const struct asc_kernel *kernel, int socket, struct run *run,
                              struct launch_result *result, struct err *err)
{
    const char *name;
    if (run_bind(run, err) != 0)
        return -1;
    if (launch(kernel, run, result) != 0) {
        run_publish(run, NULL); /* as far as the device still answers */
        return 0;               /* the result says why */
    }
    launches_find_occupancy();
    if (launches_count() == 1) /* what else took this time? */
        launches_at(0)->facts.seconds = result->seconds;
    if (arrays_overrun(&run->arrays, &name))
        array_list_say_overrun(name, socket);
    arrays_say_cache(&run->arrays, kernel, socket);
    if (arrays_publish(&run->arrays, run->o, run->lse, err) != 0 || run_publish(run, err) != 0)
        return -1;
    result->end = LAUNCH_COMPLETE;
    return 0;
}

void debuggee_launch(const struct asc_kernel *kernel, int socket, const struct launch_request *request,
                     struct launch_result *result)
{
    struct run run = {0};
    struct err err = {0};
    *result = (struct launch_result){0};
    launches_reset();
    if (run_prepare(&run, kernel, request, &err) != 0 || launch_and_publish(kernel, socket, &run, result, &err) != 0)
        snprintf(result->text, sizeof result->text, "%.80s%s%.400s", err.where, *err.where ? ": " : "", err.message);
    result->launches = launches_describe("");
    run_finish(&run, request);
}
