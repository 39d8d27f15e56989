#include "engine/gpu/arrays.h"

#include "engine/base/dtype.h"
#include "engine/child/debuggee/cache.h"
#include "engine/child/debuggee/debuggee.h"
#include "engine/gpu/cuda_error.h"
#include <stdlib.h>
#include <string.h>

#define ZONE_BYTES ((size_t)256 * 1024) /* an index that is wrong by some rows still lands here */

static unsigned char *array_of(const struct arrays *a, int i)
{
    return a->memory[i] + ZONE_BYTES;
}

cudaError_t device_fill(unsigned char *memory, size_t bytes, uint16_t pattern)
{
    static uint16_t piece[ZONE_BYTES / sizeof pattern];
    const size_t first = bytes < sizeof piece ? bytes : sizeof piece;
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++)
        piece[i] = pattern;
    cudaError_t status = cudaMemcpy(memory, piece, first, cudaMemcpyHostToDevice);
    for (size_t done = first; done < bytes && status == cudaSuccess;) { /* what is there is doubled */
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
    if (status == cudaSuccess && debuggee_in_host_code())
        device_fill(*memory, bytes, UNWRITTEN_16);
    return status;
}

static int make(struct arrays *a, int i, const struct array_list *list, struct err *err)
{
    const size_t bytes = list->bytes[i], all = bytes + 2 * ZONE_BYTES;
    void *memory = NULL;
    cudaError_t status = cudaMalloc(&memory, all);
    if (status != cudaSuccess)
        return cuda_error_set(err, status, "no device memory for %s, %zu bytes", array_names[i], bytes);
    a->memory[i] = memory;
    a->bytes[i] = bytes;
    status = device_fill(a->memory[i], all, UNWRITTEN_16);
    if (status == cudaSuccess && i < ARRAY_O)
        status = cudaMemcpy(array_of(a, i), list->at[i], bytes, cudaMemcpyHostToDevice);
    return status == cudaSuccess ? 0 : cuda_error_set(err, status, "%s cannot be copied to the device", array_names[i]);
}

int arrays_make(struct arrays *a, const struct asc_kernel *kernel, const struct asc_plan *plan,
                struct asc_problem *problem, struct err *err)
{
    struct array_list list;
    void *at[ARRAYS] = {0};
    bool failed = false;
    memset(a, 0, sizeof *a);
    a->of_trace = *problem;
    a->o_dtype = (enum dtype)problem_o_dtype(problem, kernel->o_dtype);
    if (array_list_make(kernel, problem, plan, &list) != 0)
        return err_no_memory(err, "", "the arrays");
    for (int i = 0; i < ARRAYS && !failed; i++) {
        if (!list.bytes[i])
            continue;
        failed = make(a, i, &list, err) != 0;
        at[i] = failed ? NULL : array_of(a, i);
    }
    array_list_use(&list, at, problem);
    array_list_free(&list);
    if (failed)
        arrays_free(a);
    return failed ? -1 : 0;
}

int arrays_publish(const struct arrays *a, void *o, void *lse, struct err *err)
{
    const bool packed = array_list_packs_output(&a->of_trace);
    void *own = packed ? malloc(a->bytes[ARRAY_O] + 1) : o;
    if (!own)
        return err_no_memory(err, "", "the output");
    cudaError_t status = cudaMemcpy(own, array_of(a, ARRAY_O), a->bytes[ARRAY_O], cudaMemcpyDeviceToHost);
    if (packed && status == cudaSuccess)
        array_list_unpack_output(&a->of_trace, a->o_dtype, own, o);
    if (packed)
        free(own);
    if (status == cudaSuccess)
        status = cudaMemcpy(lse, array_of(a, ARRAY_LSE), a->bytes[ARRAY_LSE], cudaMemcpyDeviceToHost);
    return status == cudaSuccess ? 0 : cuda_error_set(err, status, "the output cannot be copied back");
}

void arrays_say_cache(const struct arrays *a, const struct asc_kernel *kernel, int socket)
{
    for (int i = ARRAY_K; i <= ARRAY_V && a->of_trace.new_keys; i++) {
        void *left = a->memory[i] ? malloc(a->bytes[i] + 1) : NULL;
        if (left && cudaMemcpy(left, array_of(a, i), a->bytes[i], cudaMemcpyDeviceToHost) == cudaSuccess)
            cache_say(&a->of_trace, i, (double)kernel->conventions.rope_error, left, socket);
        free(left);
    }
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
    for (int i = 0; i < ARRAYS && host && !found; i++) {
        if (!a->memory[i] || !array_list_writable(&a->of_trace, i))
            continue;
        found = !zone_intact(a->memory[i], host) || !zone_intact(array_of(a, i) + a->bytes[i], host);
        *name = array_names[i];
    }
    free(host);
    if (!found && a->of_trace.lie == ASC_STRIDED && (host = malloc(a->bytes[ARRAY_O] + 1))) {
        found = cudaMemcpy(host, array_of(a, ARRAY_O), a->bytes[ARRAY_O], cudaMemcpyDeviceToHost) == cudaSuccess &&
                array_list_wrote_between(&a->of_trace, a->o_dtype, host, UNWRITTEN_16);
        *name = array_names[ARRAY_O];
        free(host);
    }
    return found;
}

void arrays_free(struct arrays *a)
{
    for (int i = 0; i < ARRAYS; i++)
        if (a->memory[i])
            cudaFree(a->memory[i]);
    memset(a, 0, sizeof *a);
}
