#include "engine/gpu/launches.h"

#include "engine/base/occupancy.h"
#include "engine/gpu/cuda_error.h"
#include "probes/abi.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct launched launched[LAUNCHES_MAX];
    size_t n;
    struct launched last;
    char sentence[640];
} run;

/* Of the C++ runtime, which every debuggee links (Itanium C++ ABI, "Demangler API"). */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *size, int *status); /* NOLINT(*-identifier) */

/* "void (anonymous namespace)::k<float, 64>(Params<float>)" becomes "k<float, 64>". */
static void plain_name(const char *demangled, char *name, size_t size)
{
    static const char hidden[] = "(anonymous namespace)::", nothing[] = "void ";
    size_t n = 0;
    int depth = 0;
    if (strncmp(demangled, nothing, sizeof nothing - 1) == 0)
        demangled += sizeof nothing - 1;
    while (*demangled && n + 1 < size) {
        if (strncmp(demangled, hidden, sizeof hidden - 1) == 0) {
            demangled += sizeof hidden - 1;
            continue;
        }
        if (*demangled == '(' && depth == 0)
            break;
        depth += (*demangled == '<') - (*demangled == '>');
        name[n++] = *demangled++;
    }
    name[n] = '\0';
}

static void name_of(const char *spelled, const void *kernel, char *name, size_t size)
{
    const char *mangled = NULL;
    char *demangled = NULL;
    int status = 0;
    if (cudaFuncGetName(&mangled, kernel) == cudaSuccess && mangled)
        demangled = __cxa_demangle(mangled, NULL, NULL, &status);
    if (demangled)
        plain_name(demangled, name, size);
    else
        snprintf(name, size, "%s", mangled ? mangled : spelled);
    free(demangled);
}

void launches_reset(void)
{
    run.n = 0;
    run.last.function = NULL;
}

void launches_keep(size_t n)
{
    run.n = n < run.n ? n : run.n;
}

size_t launches_count(void)
{
    return run.n;
}

struct launched *launches_at(size_t i)
{
    return &run.launched[i];
}

const struct launched *launches_last(void)
{
    return run.last.function ? &run.last : NULL;
}

/* Names and attributes cost more than a launch: they are asked for once for each kernel. */
static void describe(struct launched *l, const char *spelled, const void *kernel)
{
    static struct launched known;
    if (known.function != kernel) {
        launch_init(&known.facts);
        known.function = kernel;
        name_of(spelled, kernel, known.facts.kernel, sizeof known.facts.kernel);
        memset(&known.attributes, 0, sizeof known.attributes);
        if (cudaFuncGetAttributes(&known.attributes, kernel) == cudaSuccess) {
            known.facts.registers = known.attributes.numRegs;
            known.facts.static_shared_bytes = (int32_t)known.attributes.sharedSizeBytes;
            known.facts.local_bytes = (int32_t)known.attributes.localSizeBytes;
        }
        cudaGetLastError(); /* not the launch's */
    }
    *l = known;
}

void asc_launching(const char *spelled, const void *kernel, const unsigned grid[3], const unsigned block[3],
                   size_t dynamic_bytes)
{
    struct launched *l = &run.last;
    describe(l, spelled, kernel);
    l->facts.dynamic_shared_bytes = dynamic_bytes <= INT32_MAX ? (int32_t)dynamic_bytes : INT32_MAX;
    for (int i = 0; i < 3; i++) {
        l->facts.grid[i] = grid[i] <= INT32_MAX ? (int32_t)grid[i] : INT32_MAX;
        l->facts.block[i] = block[i] <= INT32_MAX ? (int32_t)block[i] : INT32_MAX;
    }
    if (run.n < LAUNCHES_MAX)
        run.launched[run.n++] = *l;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

static int limit(enum cudaDeviceAttr attribute)
{
    int value = 0, device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess)
        cudaGetLastError();
    return value;
}

static void find_occupancy(struct launched *l, const struct occupancy_device *device)
{
    struct trace_launch *facts = &l->facts;
    const struct occupancy_block block = {.threads = facts->block[0] * facts->block[1] * facts->block[2],
                                          .registers = facts->registers,
                                          .shared_bytes = (int)launch_shared_bytes(facts)};
    int resident = 0, blocks[OCCUPANCY_LIMITS];
    if (facts->registers < 0 ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, l->function, block.threads,
                                                      (size_t)facts->dynamic_shared_bytes) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    facts->resident_blocks = resident;
    facts->resident_warps = resident * ((block.threads + 31) / 32);
    facts->warp_slots = device->warps;
    occupancy_blocks(device, &block, blocks);
    occupancy_limited_by(blocks, resident, facts->limited_by, sizeof facts->limited_by);
}

void launches_find_occupancy(void)
{
    const struct occupancy_device device = {
        .warps = limit(cudaDevAttrMaxThreadsPerMultiProcessor) / 32,
        .blocks = limit(cudaDevAttrMaxBlocksPerMultiprocessor),
        .registers = limit(cudaDevAttrMaxRegistersPerMultiprocessor),
        .shared_bytes = limit(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
        .reserved_shared_bytes = limit(cudaDevAttrReservedSharedMemoryPerBlock),
    };
    for (size_t i = 0; i < run.n; i++)
        find_occupancy(&run.launched[i], &device);
}

json_t *launches_describe(const char *not_measured)
{
    struct trace_launch facts[LAUNCHES_MAX];
    struct trace_launches launches = {.at = facts, .n = run.n};
    for (size_t i = 0; i < run.n; i++)
        facts[i] = run.launched[i].facts;
    snprintf(launches.not_measured, sizeof launches.not_measured, "%s", not_measured);
    return launches_json(&launches);
}

static size_t shared_bytes(const struct launched *l)
{
    return l->attributes.sharedSizeBytes + (size_t)l->facts.dynamic_shared_bytes;
}

static size_t shared_limit(void)
{
    return (size_t)limit(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

/* An error of a running kernel poisons the context, every call returns it again; a refused launch leaves no trace. */
enum event_kind launches_stopped_by(cudaError_t status)
{
    const struct launched *l = launches_last();
    switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
        return EVENT_ADDRESS;
    case cudaErrorMisalignedAddress:
        return EVENT_MISALIGNED;
    case cudaErrorAssert:
        return EVENT_ASSERT;
    case cudaSuccess:
        return l && shared_bytes(l) > shared_limit() ? EVENT_SHARED_MEMORY : EVENT_LAUNCH;
    default: /* __trap() is cudaErrorLaunchFailure */
        return EVENT_TRAP;
    }
}

/* What the launch asked for beyond what a block or a grid may have. */
static void say_limits(const struct launched *l, char *text, size_t size)
{
    const struct trace_launch *facts = &l->facts;
    const size_t threads = (size_t)facts->block[0] * (size_t)facts->block[1] * (size_t)facts->block[2];
    const size_t dynamic = (size_t)facts->dynamic_shared_bytes, shared = shared_bytes(l), allowed = shared_limit();
    const int threads_limit = limit(cudaDevAttrMaxThreadsPerBlock);
    const int registers_limit = limit(cudaDevAttrMaxRegistersPerBlock);
    static const enum cudaDeviceAttr grid_limits[3] = {cudaDevAttrMaxGridDimX, cudaDevAttrMaxGridDimY,
                                                       cudaDevAttrMaxGridDimZ};
    if (shared > allowed)
        append(text, size, "; %zu bytes of shared memory (%zu static, %zu dynamic); the limit for a block is %zu",
               shared, l->attributes.sharedSizeBytes, dynamic, allowed);
    if (threads == 0 || threads > (size_t)threads_limit)
        append(text, size, "; %zu threads in a block; allowed are 1 to %d", threads, threads_limit);
    else if (l->attributes.maxThreadsPerBlock > 0 && threads > (size_t)l->attributes.maxThreadsPerBlock)
        append(text, size, "; %zu threads a block of %d registers each, registers allow %d threads (%d in all)",
               threads, l->attributes.numRegs, l->attributes.maxThreadsPerBlock, registers_limit);
    for (int i = 0; i < 3; i++)
        if (facts->grid[i] == 0 || facts->grid[i] > limit(grid_limits[i]))
            append(text, size, "; grid.%c is %d, allowed are 1 to %d", "xyz"[i], (int)facts -> grid[i],
                   limit(grid_limits[i]));
}

const char *asc_launch_failure(int status)
{
    const struct launched *l = launches_last();
    char words[256];
    cuda_error_text((cudaError_t)status, words, sizeof words);
    if (!l) {
        snprintf(run.sentence, sizeof run.sentence, "the launch failed: %s", words);
        return run.sentence;
    }
    snprintf(run.sentence, sizeof run.sentence, "%s was not launched: %s", l->facts.kernel, words);
    say_limits(l, run.sentence, sizeof run.sentence);
    return run.sentence;
}
