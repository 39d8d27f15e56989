#include "engine/runners/gpu/launches.h"

#include "engine/runners/gpu/cuda_error.h"
#include "probes/abi.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct launched launched[LAUNCHES_MAX];
    size_t n;
    struct launched last;
    int any;
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
    cudaGetLastError(); /* not the launch's */
}

void launches_reset(void)
{
    run.n = 0;
    run.any = 0;
}

size_t launches_count(void)
{
    return run.n;
}

const struct launched *launches_at(size_t i)
{
    return &run.launched[i];
}

const struct launched *launches_last(void)
{
    return run.any ? &run.last : NULL;
}

void asc_launching(const char *spelled, const void *kernel, const unsigned grid[3], const unsigned block[3],
                   size_t dynamic_bytes)
{
    struct launched *l = &run.last;
    *l = (struct launched){.function = kernel, .dynamic_bytes = dynamic_bytes};
    for (int i = 0; i < 3; i++) {
        l->grid[i] = grid[i];
        l->block[i] = block[i];
    }
    name_of(spelled, kernel, l->name, sizeof l->name);
    if (cudaFuncGetAttributes(&l->attributes, kernel) != cudaSuccess)
        cudaGetLastError();
    run.any = 1;
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

/* What the launch asked for beyond what a block or a grid may have. */
static void say_limits(const struct launched *l, char *text, size_t size)
{
    const size_t threads = (size_t)l->block[0] * l->block[1] * l->block[2];
    const size_t shared = l->attributes.sharedSizeBytes + l->dynamic_bytes;
    const size_t shared_limit = (size_t)limit(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    const int threads_limit = limit(cudaDevAttrMaxThreadsPerBlock);
    const int registers_limit = limit(cudaDevAttrMaxRegistersPerBlock);
    static const enum cudaDeviceAttr grid_limits[3] = {cudaDevAttrMaxGridDimX, cudaDevAttrMaxGridDimY,
                                                       cudaDevAttrMaxGridDimZ};
    if (shared > shared_limit)
        append(text, size, "; %zu bytes of shared memory (%zu static, %zu dynamic), a block may have %zu", shared,
               l->attributes.sharedSizeBytes, l->dynamic_bytes, shared_limit);
    if (threads == 0 || threads > (size_t)threads_limit)
        append(text, size, "; %zu threads a block, allowed are 1 to %d", threads, threads_limit);
    else if (l->attributes.maxThreadsPerBlock > 0 && threads > (size_t)l->attributes.maxThreadsPerBlock)
        append(text, size, "; %zu threads a block of %d registers each, registers allow %d threads (%d in all)",
               threads, l->attributes.numRegs, l->attributes.maxThreadsPerBlock, registers_limit);
    for (int i = 0; i < 3; i++)
        if (l->grid[i] == 0 || l->grid[i] > (unsigned)limit(grid_limits[i]))
            append(text, size, "; grid.%c is %u, allowed are 1 to %d", "xyz"[i], l -> grid[i], limit(grid_limits[i]));
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
    snprintf(run.sentence, sizeof run.sentence, "%s was not launched: %s", l->name, words);
    say_limits(l, run.sentence, sizeof run.sentence);
    return run.sentence;
}
