#include "engine/runners/debuggee/debuggee.h"
#include "engine/runners/debuggee/say.h"
#include "engine/runners/gpu/arrays.h"
#include "engine/runners/gpu/cuda_error.h"
#include "engine/runners/gpu/launches.h"
#include "engine/runners/gpu/pinned.h"
#include "probes/live.h"
#include "probes/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The trace of the run under way. */
static struct pinned pinned;

/* One run's own. */
struct run {
    void *trace; /* owned: the live trace, mapped */
    size_t n_bytes;
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_device probes;
    void *o, *lse; /* where the outputs go, in the pinned mapping */
    struct arrays arrays;
    void *fed;  /* owned device memory: the fed trace; NULL: nothing is fed */
    void *slot; /* owned device memory: every block looks itself up there */
};

const char *debuggee_backend(void)
{
    return "gpu";
}

/* The context comes up with the process, so that no run pays for it. */
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

void debuggee_arm(void) {}

/* A kernel on a GPU can not be stopped from within its process: attnscope ends the process. */
void debuggee_cancel(void) {}

static size_t output_bytes(const struct asc_kernel *kernel, const struct asc_problem *problem)
{
    const int dtype = kernel->o_dtype >= 0 ? kernel->o_dtype : problem->dtype;
    return (size_t)problem->batch * (size_t)problem->heads * (size_t)problem->q_len * (size_t)problem->head_dim *
           dtype_bytes((enum dtype)dtype);
}

/* The same place for the GPU, in the pinned pages. */
static void *on_device(const struct run *run, const void *host)
{
    return pinned.device + ((const unsigned char *)host - (const unsigned char *)run->trace);
}

static int to_device(const void *from, size_t bytes, const char *what, void **out, struct err *err)
{
    cudaError_t status = cudaMalloc(out, bytes);
    if (status == cudaSuccess)
        status = cudaMemcpy(*out, from, bytes, cudaMemcpyHostToDevice);
    return status == cudaSuccess ? 0 : cuda_error_set(err, status, "no device memory for %s, %zu bytes", what, bytes);
}

/* The fed trace is only read: a copy in device memory, at the same offsets. */
static int take_fed(struct run *run, const struct launch_request *request, struct err *err)
{
    void *mapping = NULL;
    size_t n_bytes = 0;
    if (request->feed_fd < 0)
        return 0;
    if (live_feed(request->feed_fd, run->trace, request->fed_channels, &run->probes, &mapping, &n_bytes, err) != 0)
        return -1;
    const int failed = to_device(mapping, n_bytes, "the fed values", &run->fed, err);
    munmap(mapping, n_bytes);
    run->probes.fed = run->fed;
    return failed;
}

static int prepare(struct run *run, const struct asc_kernel *kernel, const struct launch_request *request,
                   struct err *err)
{
    if (trace_attach(request->fd, &run->problem, &run->plan, &run->probes, &run->trace, &run->n_bytes, err) != 0 ||
        pinned_hold(request->fd, &pinned, err) != 0 || take_fed(run, request, err) != 0)
        return -1;
    struct asc_device *probes = &run->probes;
    const size_t slots = (size_t)probes->batch * (size_t)probes->heads * (size_t)probes->q_tiles * sizeof *probes->slot;
    if (to_device(probes->slot, slots, "the slot index", &run->slot, err) != 0)
        return -1;
    run->o = pinned.host + ((unsigned char *)run->problem.o - (unsigned char *)run->trace);
    run->lse = pinned.host + ((unsigned char *)run->problem.lse - (unsigned char *)run->trace);
    probes->slot = run->slot;
    probes->dropped = on_device(run, probes->dropped);
    probes->mistyped = on_device(run, probes->mistyped);
    probes->unfed = on_device(run, probes->unfed);
    probes->trace = pinned.device;
    return arrays_make(&run->arrays, &run->problem, output_bytes(kernel, &run->problem), err);
}

static void finish(struct run *run)
{
    arrays_free(&run->arrays);
    if (run->fed)
        cudaFree(run->fed);
    if (run->slot)
        cudaFree(run->slot);
    if (run->trace)
        munmap(run->trace, run->n_bytes);
}

static void say_overrun(const char *name, int socket)
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

static void say_stopped(cudaError_t status, struct launch_result *result)
{
    const struct launched *last = launches_last();
    char words[256];
    cuda_error_text(status, words, sizeof words);
    snprintf(result->text, sizeof result->text, "%s stopped: %s", last ? last->name : "the kernel", words);
}

/* Launches, waits, and takes the time between two events around it. */
static int launch(const struct asc_kernel *kernel, const struct run *run, struct launch_result *result)
{
    cudaEvent_t begin = NULL, end = NULL;
    float ms = 0;
    launches_reset();
    cudaGetLastError();
    if (cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess) {
        say_stopped(cudaGetLastError(), result);
        return -1;
    }
    cudaEventRecord(begin, NULL);
    const char *failure = kernel->launch(&run->problem, NULL);
    cudaEventRecord(end, NULL);
    const cudaError_t launched = cudaGetLastError(), status = cudaDeviceSynchronize();
    if (failure)
        snprintf(result->text, sizeof result->text, "%s", failure);
    else if (launched != cudaSuccess)
        snprintf(result->text, sizeof result->text, "%s", asc_launch_failure((int)launched));
    else if (status != cudaSuccess)
        say_stopped(status, result);
    else if (cudaEventElapsedTime(&ms, begin, end) == cudaSuccess)
        result->seconds = 1e-3 * (double)ms;
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return failure || launched != cudaSuccess || status != cudaSuccess ? -1 : 0;
}

static int launch_and_publish(const struct asc_kernel *kernel, int socket, struct run *run,
                              struct launch_result *result, struct err *err)
{
    const char *name;
    const int status = asc_bind(&run->probes);
    if (status)
        return status < 0 ? err_set(err, ERR_RUN, "", "the probes of this build can not feed")
                          : cuda_error_set(err, (cudaError_t)status, "the probes can not be bound to the trace");
    if (launch(kernel, run, result) != 0)
        return 0; /* the result says why */
    if (arrays_overrun(&run->arrays, &name))
        say_overrun(name, socket);
    if (arrays_publish(&run->arrays, run->o, run->lse, err) != 0)
        return -1;
    result->status = "complete";
    return 0;
}

void debuggee_launch(const struct asc_kernel *kernel, int socket, const struct launch_request *request,
                     struct launch_result *result)
{
    struct run run = {0};
    struct err err = {0};
    *result = (struct launch_result){.status = "failed"};
    if (prepare(&run, kernel, request, &err) != 0 || launch_and_publish(kernel, socket, &run, result, &err) != 0)
        snprintf(result->text, sizeof result->text, "%.80s%s%.400s", err.where, *err.where ? ": " : "", err.message);
    finish(&run);
    close(request->fd);
    if (request->feed_fd >= 0)
        close(request->feed_fd);
}
