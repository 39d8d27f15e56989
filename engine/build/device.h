/* The GPU of this machine. It is asked by a process of its own (attnscope-device): a driver may be missing, hang or
   crash, and attnscope links no CUDA. */
#ifndef BUILD_DEVICE_H
#define BUILD_DEVICE_H

#include "engine/base/err.h"
#include <stddef.h>
#include <stdint.h>

struct runner_paths;

struct gpu_device {
    char name[64];    /* "NVIDIA H200" */
    int major, minor; /* compute capability */
    int driver;       /* newest CUDA version the driver speaks, 1000 major + 10 minor */
    int multiprocessors;
    uint64_t memory_bytes;
    int shared_per_block_bytes; /* the most a block may ask for (opt-in) */
    int f32_per_f64;            /* how many times faster f32 is than f64; 0: the driver does not say */
    int clock_khz;              /* of the multiprocessors; 0: the driver does not say */
    char cores[128];            /* the tensor cores whose products it computes, "f32 h100"; "": device_cores fills it */
};

/* Asks once; later calls answer from memory. ERR_SYSTEM: one line that says why there is no GPU to use ("no NVIDIA
   driver: libcuda.so.1 was not found"). */
int device_find(const struct runner_paths *paths, struct gpu_device *out, struct err *err);

/* Measures whose products the device computes, the first time; then it stands in the cache. Where that fails, all are
   unknown, but for "f32". */
void device_cores(const struct runner_paths *paths, struct gpu_device *device);

/* "sm_90a": the architecture to compile for, with its own instructions where it has some. */
void device_architecture(const struct gpu_device *device, char *text, size_t size);

#endif
