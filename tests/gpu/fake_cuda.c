/* libcuda.so.1 of a device that is none, as far as attnscope-device asks: its products are those of the models that
   FAKE_CORES names, one for each instruction ("h100 a100": none of them). FAKE_SM: its compute capability, "90". The
   PTX that it is given goes to FAKE_PTX. Its memory is the process's own, of which FAKE_FREE bytes are free; a handle
   is an address. FAKE_COPY: what it does not copy out, "failed", or that kills it, "killed". */
#include "engine/base/format.h"
#include "engine/base/tensor_core.h"
#include "engine/gpu/driver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { ROWS = 16, COLS = 8, IN_WORDS = 10 };

static char loaded[4096]; /* PTX */

EXPORT int cuInit(unsigned flags)
{
    return (int)flags;
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

EXPORT int cuDeviceGetCount(int *n)
{
    *n = 1;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "Fake");
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *sm = getenv("FAKE_SM"), *ratio = getenv("FAKE_F32_PER_F64");
    const int capability = sm ? atoi(sm) : 90;
    (void)device;
    if (attribute == 87 && !ratio)
        return 1; /* as a driver that does not know it */
    *value = attribute == 75   ? capability / 10
             : attribute == 76 ? capability % 10
             : attribute == 87 ? atoi(ratio)
                               : 100;
    return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = 1 << 30;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = loaded;
    return 0;
}

EXPORT int cuCtxSetCurrent(void *context)
{
    return context ? 0 : 201; /* CUDA_ERROR_INVALID_CONTEXT */
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    *address = (uint64_t)(uintptr_t)malloc(bytes);
    return *address ? 0 : 2;
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

EXPORT int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    const char *bytes = getenv("FAKE_FREE");
    *available = bytes ? strtoull(bytes, NULL, 10) : 1 << 30;
    *total = 1 << 30;
    return 0;
}

EXPORT int cuMemFree_v2(uint64_t address)
{
    free((void *)(uintptr_t)address);
    return 0;
}

EXPORT int cuMemAllocHost_v2(void **memory, size_t bytes)
{
    *memory = malloc(bytes);
    return *memory ? 0 : 2;
}

EXPORT int cuMemFreeHost(void *memory)
{
    free(memory);
    return 0;
}

EXPORT int cuMemsetD16_v2(uint64_t address, unsigned short pattern, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned short *)(uintptr_t)address)[i] = pattern;
    return 0;
}

EXPORT int cuCtxSynchronize(void)
{
    return 0;
}

EXPORT int cuIpcGetMemHandle(struct cuda_handle *handle, uint64_t address)
{
    memcpy(handle, &address, sizeof address);
    return 0;
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    const char *copy = getenv("FAKE_COPY");
    (void)stream;
    if (copy && strcmp(copy, "killed") == 0)
        raise(SIGKILL);
    return copy ? 700 : cuMemcpyDtoH_v2(to, from, bytes);
}

EXPORT int cuStreamSynchronize(void *stream)
{
    (void)stream;
    return 0;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    *context = loaded;
    return 0;
}

EXPORT int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

EXPORT int cuMemcpy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

EXPORT int cuMemcpy2DUnaligned_v2(const struct cuda_copy *copy)
{
    for (size_t row = 0; row < copy->height; row++)
        memcpy((char *)copy->to_host + row * copy->to_pitch,
               (const char *)(uintptr_t)copy->from + row * copy->from_pitch, copy->width);
    return 0;
}

EXPORT int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    (void)memory, (void)bytes;
    return flags == 2 ? 0 : 1;
}

EXPORT int cuMemHostUnregister(void *memory)
{
    return memory ? 0 : 1;
}

EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags)
{
    *address = (uint64_t)(uintptr_t)memory;
    return (int)flags;
}

/* The memory of another process: there is no way to it here. */
EXPORT int cuIpcOpenMemHandle_v2(uint64_t *address, struct cuda_handle handle, unsigned flags)
{
    (void)handle, (void)flags;
    *address = 0;
    return 801; /* CUDA_ERROR_NOT_SUPPORTED */
}

EXPORT int cuIpcCloseMemHandle(uint64_t address)
{
    return address ? 0 : 1;
}

EXPORT int cuGetErrorString(int error, const char **text)
{
    *text = error == 2 ? "out of memory" : "no words";
    return 0;
}

EXPORT int cuModuleLoadData(void **module, const void *image)
{
    const char *path = getenv("FAKE_PTX");
    FILE *file = path ? fopen(path, "a") : NULL;
    snprintf(loaded, sizeof loaded, "%s", (const char *)image);
    if (file) {
        fprintf(file, "%s%c", loaded, '\0');
        fclose(file);
    }
    *module = loaded;
    return 0;
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = module;
    return strstr(loaded, name) ? 0 : 500; /* CUDA_ERROR_NOT_FOUND */
}

/* The model of FAKE_CORES that computes it. */
static int model_of(enum dtype t, bool half)
{
    char names[128], *rest = NULL;
    snprintf(names, sizeof names, "%s", getenv("FAKE_CORES") ? getenv("FAKE_CORES") : "");
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        int products, fraction, result;
        const int model = tensor_core_from_name(name);
        if (model < 0)
            continue;
        tensor_core_shape((enum tensor_core)model, &products, &fraction, &result);
        if (tensor_core_takes((enum tensor_core)model, t) && (result == 10) == half)
            return model;
    }
    return TENSOR_CORE_F32;
}

/* Lane and word by the fragments of the PTX ISA: of A, row group or group + 8, word member or member + 4; of B, column
   group; of C, row group or group + 8, column 2 member or 2 member + 1. */
static void multiply(int model, enum dtype t, bool half, const uint32_t *in, uint32_t *out)
{
    uint32_t a[ROWS][8], b[COLS][8];
    float c[ROWS][COLS] = {{0}}, d[ROWS][COLS];
    for (int lane = 0; lane < 32; lane++) {
        const uint32_t *of = in + (ptrdiff_t)lane * IN_WORDS;
        const int group = lane / 4, member = lane % 4;
        a[group][member] = of[0];
        a[group + 8][member] = of[1];
        a[group][member + 4] = of[2];
        a[group + 8][member + 4] = of[3];
        b[group][member] = of[4];
        b[group][member + 4] = of[5];
        for (int e = 0; e < 4; e++)
            c[group + e / 2 * 8][member * 2 + e % 2] =
                half ? f16_to_f32((uint16_t)(of[6 + e / 2] >> e % 2 * 16)) : format_f32_of(of[6 + e]);
    }
    tensor_core_mma((enum tensor_core)model, t, ROWS, COLS, 32 / (int)dtype_bytes(t), a, b, &c[0][0], &d[0][0]);
    for (int lane = 0; lane < 32; lane++) {
        uint32_t *of = out + (ptrdiff_t)lane * 4;
        memset(of, 0, 4 * sizeof *of);
        for (int e = 0; e < 4; e++) {
            const float x = d[lane / 4 + e / 2 * 8][lane % 4 * 2 + e % 2];
            if (half)
                of[e / 2] |= (uint32_t)f16_from_f32(x) << e % 2 * 16;
            else
                of[e] = format_f32_bits(x);
        }
    }
}

EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                          void **extra)
{
    const bool half = strstr(loaded, "f16.f16.f16.f16") != NULL;
    const enum dtype t = strstr(loaded, "e4m3") ? DTYPE_E4M3 : strstr(loaded, "bf16") ? DTYPE_BF16 : DTYPE_F16;
    const uint32_t *in = (const uint32_t *)*(void **)parameters[0];
    uint32_t *out = (uint32_t *)*(void **)parameters[1];
    (void)stream;
    if (!function || grid_y * grid_z != 1 || block_x != 32 || block_y * block_z != 1 || shared_bytes || extra)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    for (unsigned i = 0; i < grid_x; i++)
        multiply(model_of(t, half), t, half, in + (size_t)i * 32 * IN_WORDS, out + (size_t)i * 32 * 4);
    return 0;
}
