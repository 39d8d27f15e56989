#include "engine/gpu/arrays.h"

#include "engine/base/dtype.h"
#include "engine/child/debuggee/debuggee.h"
#include "engine/gpu/cuda_error.h"
#include <stdlib.h>
#include <string.h>

#define ZONE_BYTES ((size_t)256 * 1024) /* an index that is wrong by some rows still lands here */

static unsigned char *array_of(const struct arrays *a, int i)
{
    return a->memory[i] + ZONE_BYTES;
}

/* A zone of never-written values in host memory, the caller's. */
static uint16_t *make_zone(void)
{
    uint16_t *zone = malloc(ZONE_BYTES);
    for (size_t i = 0; zone && i < ZONE_BYTES / sizeof *zone; i++)
        zone[i] = UNWRITTEN_16;
    return zone;
}

/* All of it becomes never-written: one zone from the host, then what is there is doubled. */
static cudaError_t fill(unsigned char *memory, size_t bytes, const uint16_t *zone)
{
    cudaError_t status = cudaMemcpy(memory, zone, ZONE_BYTES, cudaMemcpyHostToDevice);
    for (size_t done = ZONE_BYTES; done < bytes && status == cudaSuccess;) {
        const size_t n = done < bytes - done ? done : bytes - done;
        status = cudaMemcpy(memory + done, memory, n, cudaMemcpyDeviceToDevice);
        done += n;
    }
    return status;
}

/* The linker's --wrap puts this in the place of the runtime's: what the kernel's host code allocates is never written,
   as the run's own arrays are. */
cudaError_t __real_cudaMalloc(void **, size_t);            /* NOLINT(*-identifier) */
cudaError_t __wrap_cudaMalloc(void **, size_t);            /* NOLINT(*-identifier) */
cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes) /* NOLINT(*-identifier) */
{
    const cudaError_t status = __real_cudaMalloc(memory, bytes);
    uint16_t *zone = status == cudaSuccess && debuggee_in_host_code() ? make_zone() : NULL;
    if (zone && bytes >= ZONE_BYTES)
        fill(*memory, bytes, zone);
    else if (zone)
        cudaMemcpy(*memory, zone, bytes, cudaMemcpyHostToDevice);
    free(zone);
    return status;
}

static int make(struct arrays *a, int i, const struct array_list *list, const uint16_t *zone, struct err *err)
{
    const size_t bytes = list->bytes[i], all = bytes + 2 * ZONE_BYTES;
    void *memory = NULL;
    cudaError_t status = cudaMalloc(&memory, all);
    if (status != cudaSuccess)
        return cuda_error_set(err, status, "no device memory for %s, %zu bytes", array_names[i], bytes);
    a->memory[i] = memory;
    a->bytes[i] = bytes;
    status = fill(a->memory[i], all, zone);
    if (status == cudaSuccess && i < ARRAY_O)
        status = cudaMemcpy(array_of(a, i), list->at[i], bytes, cudaMemcpyHostToDevice);
    return status == cudaSuccess ? 0 : cuda_error_set(err, status, "%s cannot be copied to the device", array_names[i]);
}

int arrays_make(struct arrays *a, const struct asc_kernel *kernel, const struct asc_plan *plan,
                struct asc_problem *problem, struct err *err)
{
    const struct array_list list = array_list_of(kernel, problem, plan);
    void *at[ARRAYS] = {0};
    uint16_t *zone = make_zone();
    bool failed = false;
    memset(a, 0, sizeof *a);
    if (!zone)
        return err_no_memory(err, "", "a guard zone");
    for (int i = 0; i < ARRAYS && !failed; i++) {
        if (!list.bytes[i])
            continue;
        failed = make(a, i, &list, zone, err) != 0;
        at[i] = failed ? NULL : array_of(a, i);
    }
    free(zone);
    if (failed) {
        arrays_free(a);
        return -1;
    }
    array_list_use(at, problem);
    return 0;
}

int arrays_publish(const struct arrays *a, void *o, void *lse, struct err *err)
{
    cudaError_t status = cudaMemcpy(o, array_of(a, ARRAY_O), a->bytes[ARRAY_O], cudaMemcpyDeviceToHost);
    if (status == cudaSuccess)
        status = cudaMemcpy(lse, array_of(a, ARRAY_LSE), a->bytes[ARRAY_LSE], cudaMemcpyDeviceToHost);
    return status == cudaSuccess ? 0 : cuda_error_set(err, status, "the output cannot be copied back");
}

static bool zone_intact(const unsigned char *device, uint16_t *host)
{
    if (cudaMemcpy(host, device, ZONE_BYTES, cudaMemcpyDeviceToHost) != cudaSuccess)
        return true; /* not known to be broken */
    for (size_t i = 0; i < ZONE_BYTES / sizeof *host; i++)
        if (host[i] != UNWRITTEN_16)
            return false;
    return true;
}

bool arrays_overrun(const struct arrays *a, const char **name)
{
    uint16_t *host = malloc(ZONE_BYTES);
    bool found = false;
    for (int i = ARRAY_O; i < ARRAYS && host && !found; i++) {
        if (!a->memory[i])
            continue;
        found = !zone_intact(a->memory[i], host) || !zone_intact(array_of(a, i) + a->bytes[i], host);
        *name = array_names[i];
    }
    free(host);
    return found;
}

void arrays_free(struct arrays *a)
{
    for (int i = 0; i < ARRAYS; i++)
        if (a->memory[i])
            cudaFree(a->memory[i]);
    memset(a, 0, sizeof *a);
}
