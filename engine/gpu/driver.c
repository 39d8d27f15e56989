#include "engine/gpu/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct driver driver;

int driver_open(char *why, size_t size)
{
    static const struct {
        void *function;
        const char *symbol;
    } functions[] = {{&driver.init, "cuInit"},
                     {&driver.current, "cuCtxGetCurrent"},
                     {&driver.make_current, "cuCtxSetCurrent"},
                     {&driver.retain, "cuDevicePrimaryCtxRetain"},
                     {&driver.device, "cuCtxGetDevice"},
                     {&driver.get, "cuDeviceGet"},
                     {&driver.name, "cuDeviceGetName"},
                     {&driver.attribute, "cuDeviceGetAttribute"},
                     {&driver.synchronize, "cuCtxSynchronize"},
                     {&driver.to_device, "cuMemcpyHtoD_v2"},
                     {&driver.copy, "cuMemcpy"},
                     {&driver.copy_rows, "cuMemcpy2DUnaligned_v2"},
                     {&driver.fill, "cuMemsetD16_v2"},
                     {&driver.memory, "cuMemGetInfo_v2"},
                     {&driver.allocate, "cuMemAlloc_v2"},
                     {&driver.release, "cuMemFree_v2"},
                     {&driver.allocate_host, "cuMemAllocHost_v2"},
                     {&driver.release_host, "cuMemFreeHost"},
                     {&driver.from_device, "cuMemcpyDtoHAsync_v2"},
                     {&driver.wait, "cuStreamSynchronize"},
                     {&driver.pin, "cuMemHostRegister_v2"},
                     {&driver.unpin, "cuMemHostUnregister"},
                     {&driver.pinned_address, "cuMemHostGetDevicePointer_v2"},
                     {&driver.share, "cuIpcGetMemHandle"},
                     {&driver.open, "cuIpcOpenMemHandle_v2"},
                     {&driver.close, "cuIpcCloseMemHandle"},
                     {&driver.error_text, "cuGetErrorString"}};
    static bool opened;
    if (opened)
        return 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, size, "no NVIDIA driver: libcuda.so.1 was not found");
        return -1;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].symbol);
        if (!found) {
            snprintf(why, size, "the driver has no %s", functions[i].symbol);
            return -1;
        }
        memcpy(functions[i].function, &found, sizeof found);
    }
    const int status = driver.init(0);
    if (status)
        snprintf(why, size, "the driver does not start: %s", driver_error(status));
    opened = !status;
    return status ? -1 : 0;
}

const char *driver_error(int status)
{
    const char *text = NULL;
    if (driver.error_text)
        driver.error_text(status, &text);
    return text ? text : "unknown error";
}
