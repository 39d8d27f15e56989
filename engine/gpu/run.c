#include "engine/gpu/run.h"

#include "engine/gpu/cuda_error.h"
#include "engine/gpu/launches.h"
#include "engine/trace/live.h"
#include "engine/trace/trace.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The same place in the mapping that is pinned, from where the copy engine takes it as it is. NULL stays NULL. */
static const void *to_pinned(const struct run *run, const void *host)
{
    return host ? run->pinned.host + ((const unsigned char *)host - (const unsigned char *)run->trace) : NULL;
}

/* The same place for the GPU, in the pinned pages. */
static void *on_device(const struct run *run, const void *host)
{
    return run->pinned.device + ((const unsigned char *)host - (const unsigned char *)run->trace);
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

static const struct layout *layout_of(const struct run *run)
{
    return &((const struct live_header *)run->trace)->layout;
}

/* Never written, as the file is. */
static cudaError_t fill_values(const struct run *run)
{
    struct unwritten_part parts[ASC_ALL_CHANNELS];
    const struct layout *l = layout_of(run);
    const int n = layout_unwritten(l, parts);
    cudaError_t status = cudaSuccess;
    for (int i = 0; i < n && status == cudaSuccess; i++)
        status = device_fill(run->values + (parts[i].begin - l->values_offset), parts[i].end - parts[i].begin,
                             parts[i].pattern);
    return status;
}

/* Device memory for the values, of this process or the guardian's; none where they go into the pinned trace. */
static int take_values(struct run *run, const struct launch_request *request, struct err *err)
{
    const struct layout *l = layout_of(run);
    const size_t bytes = l->total_bytes - l->values_offset;
    size_t available = 0, all = 0;
    void *memory = NULL;
    if (!bytes || request->memory == MEMORY_PINNED)
        return 0;
    if (request->memory == MEMORY_GUARD) {
        cudaIpcMemHandle_t handle;
        _Static_assert(sizeof handle == sizeof request->handle, "it travels as bytes");
        memcpy(&handle, request->handle, sizeof handle);
        const cudaError_t status = cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
        if (status != cudaSuccess)
            return cuda_error_set(err, status, "the guardian's device memory cannot be opened");
        run->opened = true;
        run->values = memory;
        return 0;
    }
    if (request->memory == MEMORY_AUTO &&
        (cudaMemGetInfo(&available, &all) != cudaSuccess || bytes > available - available / 10))
        return 0;
    cudaError_t status = cudaMalloc(&memory, bytes);
    run->values = memory;
    if (status == cudaSuccess)
        status = fill_values(run);
    return status == cudaSuccess ? 0 : cuda_error_set(err, status, "no device memory for the values, %zu bytes", bytes);
}

int run_prepare(struct run *run, const struct asc_kernel *kernel, const struct launch_request *request, struct err *err)
{
    if (trace_attach(request->fd, &run->problem, &run->plan, &run->probes, &run->trace, &run->n_bytes, err) != 0 ||
        take_values(run, request, err) != 0 ||
        pinned_hold(request->fd, run->opened ? layout_of(run)->values_offset : run->n_bytes, &run->pinned, err) != 0 ||
        take_fed(run, request, err) != 0 || debuggee_deal(kernel, &run->problem, &run->plan, run->trace, err) != 0)
        return -1;
    struct asc_device *probes = &run->probes;
    const size_t slots = (size_t)probes->batch * (size_t)probes->heads * (size_t)probes->q_tiles * sizeof *probes->slot;
    if (to_device(probes->slot, slots, "the slot index", &run->slot, err) != 0)
        return -1;
    struct asc_problem *p = &run->problem;
    p->q = to_pinned(run, p->q);
    p->k = to_pinned(run, p->k);
    p->v = to_pinned(run, p->v);
    p->sink = to_pinned(run, p->sink);
    p->alibi = to_pinned(run, p->alibi);
    p->bias = to_pinned(run, p->bias);
    p->mask = to_pinned(run, p->mask);
    p->keep = to_pinned(run, p->keep);
    p->q_scale = to_pinned(run, p->q_scale);
    p->k_scale = to_pinned(run, p->k_scale);
    p->v_scale = to_pinned(run, p->v_scale);
    run->o = (void *)(uintptr_t)to_pinned(run, p->o);
    run->lse = (void *)(uintptr_t)to_pinned(run, p->lse);
    probes->slot = run->slot;
    probes->dropped = on_device(run, probes->dropped);
    probes->mistyped = on_device(run, probes->mistyped);
    probes->unfed = on_device(run, probes->unfed);
    probes->trace = probes->stamps = run->pinned.device;
    if (run->values)
        probes->trace = run->values - layout_of(run)->values_offset;
    launches_stage(!run->values);
    return arrays_make(&run->arrays, kernel, &run->plan, &run->problem, err);
}

int run_bind(const struct run *run, struct err *err)
{
    const int status = asc_bind(&run->probes);
    if (status)
        return status < 0 ? err_set(err, ERR_RUN, "", "this build's probes cannot feed")
                          : cuda_error_set(err, (cudaError_t)status, "the probes cannot be bound to the trace");
    return 0;
}

/* A first pass, or a measurement: its file is not filled again, and may be a good part of the memory there is. */
static bool records_nothing(const struct asc_device *probes)
{
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        if (probes->channel[ch].dtype >= 0)
            return false;
    return true;
}

int run_publish(const struct run *run, struct err *err)
{
    const struct layout *l = layout_of(run);
    if (!run->values || run->opened)
        return 0;
    const cudaError_t status = cudaMemcpy(run->pinned.host + l->values_offset, run->values,
                                          l->total_bytes - l->values_offset, cudaMemcpyDeviceToHost);
    return status == cudaSuccess ? 0 : cuda_error_set(err, status, "the values cannot be copied out");
}

void run_finish(struct run *run, const struct launch_request *request)
{
    if (records_nothing(&run->probes))
        pinned_drop(&run->pinned);
    arrays_free(&run->arrays);
    if (run->opened)
        cudaIpcCloseMemHandle(run->values);
    else if (run->values)
        cudaFree(run->values);
    if (run->fed)
        cudaFree(run->fed);
    if (run->slot)
        cudaFree(run->slot);
    if (run->trace)
        munmap(run->trace, run->n_bytes);
    close(request->fd);
    if (request->feed_fd >= 0)
        close(request->feed_fd);
}

void run_say_stopped(cudaError_t status, char *text, size_t size)
{
    const struct launched *last = launches_last();
    char words[256];
    cuda_error_text(status, words, sizeof words);
    snprintf(text, size, "%s stopped: %s", last ? last->facts.kernel : "the kernel", words);
}

int run_once(const struct asc_kernel *kernel, const struct run *run, const struct run_events *events, char *text,
             size_t size)
{
    cudaGetLastError();
    if (events)
        cudaEventRecord(events->begin, NULL);
    const char *failure = kernel->launch(&run->problem, NULL);
    if (events)
        cudaEventRecord(events->end, NULL);
    const cudaError_t launched = cudaGetLastError(), status = cudaDeviceSynchronize();
    if (failure)
        snprintf(text, size, "%s", failure);
    else if (launched != cudaSuccess)
        snprintf(text, size, "%s", asc_launch_failure((int)launched));
    else if (status != cudaSuccess)
        run_say_stopped(status, text, size);
    return failure || launched != cudaSuccess || status != cudaSuccess ? -1 : 0;
}
