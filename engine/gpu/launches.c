#include "engine/gpu/launches.h"

#include "engine/base/occupancy.h"
#include "engine/child/debuggee/debuggee.h"
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
    bool stages;
    char sentence[640];
} run;
static struct {
    bool on;
    int threads;
} rehearsal;

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

static void name_of(const void *kernel, char *name, size_t size)
{
    const char *mangled = NULL;
    char *demangled = NULL;
    int status = 0;
    if (cudaFuncGetName(&mangled, kernel) == cudaSuccess && mangled)
        demangled = __cxa_demangle(mangled, NULL, NULL, &status);
    if (demangled)
        plain_name(demangled, name, size);
    else
        snprintf(name, size, "%s", mangled ? mangled : "the kernel");
    free(demangled);
}

void launches_reset(void)
{
    run.n = 0;
    run.last.function = NULL;
}

void launches_stage(bool wanted)
{
    run.stages = wanted;
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
static void describe(struct launched *l, const void *kernel)
{
    static struct launched known;
    if (known.function != kernel) {
        launch_init(&known.facts);
        known.function = kernel;
        name_of(kernel, known.facts.kernel, sizeof known.facts.kernel);
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

static void note(const void *kernel, dim3 grid, dim3 block, size_t dynamic_bytes)
{
    struct launched *l = &run.last;
    const unsigned grids[3] = {grid.x, grid.y, grid.z}, blocks[3] = {block.x, block.y, block.z};
    describe(l, kernel);
    l->facts.dynamic_shared_bytes = dynamic_bytes <= INT32_MAX ? (int32_t)dynamic_bytes : INT32_MAX;
    for (int i = 0; i < 3; i++) {
        l->facts.grid[i] = grids[i] <= INT32_MAX ? (int32_t)grids[i] : INT32_MAX;
        l->facts.block[i] = blocks[i] <= INT32_MAX ? (int32_t)blocks[i] : INT32_MAX;
    }
    if (run.n < LAUNCHES_MAX)
        run.launched[run.n++] = *l;
}

static int limit(enum cudaDeviceAttr attribute)
{
    int value = 0, device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess)
        cudaGetLastError();
    return value;
}

static size_t shared_limit(void)
{
    return (size_t)limit(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

int debuggee_rehearse(bool begin)
{
    const int threads = rehearsal.threads;
    rehearsal.on = begin;
    rehearsal.threads = 0;
    return threads;
}

/* Room behind `own` bytes of dynamic shared memory for the staging windows of every warp, if the probes have some and
   there is some: how many bytes to launch with; *lacks: how many there are too few. More than 48 KiB must be asked for
   (CUDA C++ Programming Guide, "Shared Memory" of each compute capability). */
static size_t make_room(const void *kernel, unsigned threads, size_t own, int32_t *lacks)
{
    const uint32_t warps = (threads + 31) / 32;
    if (!run.stages)
        return own;
    uint32_t window[2] = {(uint32_t)((own + 127) / 128 * 128), warps};
    const size_t all = window[0] + (size_t)warps * ASC_STAGE_ROOM;
    const size_t needed = run.last.attributes.sharedSizeBytes + all, most = shared_limit();
    const bool known = run.last.facts.registers >= 0, fits = known && needed <= most;
    *lacks = !known ? -1 : fits ? 0 : (int32_t)(needed - most);
    if (!fits)
        window[1] = 0;
    if (asc_stage(window) != 0 || !fits)
        return own;
    if (all > (size_t)48 * 1024 &&
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)all) != cudaSuccess) {
        cudaGetLastError();
        *lacks = -1;
        window[1] = 0;
        asc_stage(window);
        return own;
    }
    return all;
}

/* Before every launch, whoever makes it: the linker's --wrap puts these in the place of the runtime's functions. False:
   it is a rehearsal's. */
static bool before(const void *kernel, dim3 grid, dim3 block, size_t *shared_bytes)
{
    const unsigned threads = block.x * block.y * block.z;
    if (rehearsal.on) {
        rehearsal.threads = (int)threads > rehearsal.threads ? (int)threads : rehearsal.threads;
        return false;
    }
    int32_t lacks = -1;
    const size_t noted = run.n;
    note(kernel, grid, block, *shared_bytes);
    *shared_bytes = make_room(kernel, threads, *shared_bytes, &lacks);
    if (noted < run.n)
        run.launched[noted].facts.staging_lacks = lacks;
    return true;
}

/* What nvcc makes of <<<>>> calls __cudaLaunchKernel, or cudaLaunchKernel where the toolkit is older;
   cudaLaunchKernelEx calls cudaLaunchKernelExC. _ptsz: where each thread has a default stream of its own (CUDA Runtime
   API, "Stream synchronization behavior"). */
/* NOLINTBEGIN(*-identifier,bugprone-macro-parentheses) */
#define WRAP_LAUNCH(name, function)                                                                                    \
    cudaError_t __real_##name(function, dim3, dim3, void **, size_t, cudaStream_t);                                    \
    cudaError_t __wrap_##name(function, dim3, dim3, void **, size_t, cudaStream_t);                                    \
    cudaError_t __wrap_##name(function kernel, dim3 grid, dim3 block, void **args, size_t bytes, cudaStream_t stream)  \
    {                                                                                                                  \
        return before(kernel, grid, block, &bytes) ? __real_##name(kernel, grid, block, args, bytes, stream)           \
                                                   : cudaSuccess;                                                      \
    }
#define WRAP_LAUNCH_EX(name)                                                                                           \
    cudaError_t __real_##name(const cudaLaunchConfig_t *, const void *, void **);                                      \
    cudaError_t __wrap_##name(const cudaLaunchConfig_t *, const void *, void **);                                      \
    cudaError_t __wrap_##name(const cudaLaunchConfig_t *asked, const void *kernel, void **args)                        \
    {                                                                                                                  \
        cudaLaunchConfig_t config = *asked;                                                                            \
        return before(kernel, config.gridDim, config.blockDim, &config.dynamicSmemBytes)                               \
                   ? __real_##name(&config, kernel, args)                                                              \
                   : cudaSuccess;                                                                                      \
    }
typedef const void *function_pointer;
WRAP_LAUNCH(cudaLaunchKernel, function_pointer)
WRAP_LAUNCH(cudaLaunchKernel_ptsz, function_pointer)
WRAP_LAUNCH(cudaLaunchCooperativeKernel, function_pointer)
WRAP_LAUNCH(__cudaLaunchKernel, cudaKernel_t)
WRAP_LAUNCH(__cudaLaunchKernel_ptsz, cudaKernel_t)
WRAP_LAUNCH_EX(cudaLaunchKernelExC)
WRAP_LAUNCH_EX(cudaLaunchKernelExC_ptsz)
/* NOLINTEND(*-identifier,bugprone-macro-parentheses) */

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
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
