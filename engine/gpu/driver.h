/* Of the CUDA driver's API (cuda.h), whose binary interface is stable: found at run time. */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CUDA_MEMCPY2D */
struct cuda_copy {
    size_t from_x, from_y;
    unsigned from_kind;
    const void *from_host;
    uint64_t from;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    unsigned to_kind;
    void *to_host;
    uint64_t to;
    void *to_array;
    size_t to_pitch, width, height;
};
enum { CUDA_KIND_HOST = 1, CUDA_KIND_UNIFIED = 4 };
#define CUDA_OWN_STREAM ((void *)2) /* CU_STREAM_PER_THREAD */
struct cuda_handle {
    unsigned char bytes[64]; /* CUipcMemHandle */
};

extern struct driver {
    int (*init)(unsigned flags);
    int (*current)(void **context);
    int (*make_current)(void *context);
    int (*retain)(void **context, int device);
    int (*device)(int *device);
    int (*get)(int *device, int ordinal);
    int (*name)(char *name, int size, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*synchronize)(void);
    int (*to_device)(uint64_t to, const void *from, size_t bytes);
    int (*copy)(void *to, const void *from, size_t bytes);
    int (*copy_rows)(const struct cuda_copy *copy);
    int (*fill)(uint64_t to, unsigned short pattern, size_t n);
    int (*memory)(size_t *available, size_t *total);
    int (*allocate)(uint64_t *address, size_t bytes);
    int (*release)(uint64_t address);
    int (*allocate_host)(void **memory, size_t bytes);
    int (*release_host)(void *memory);
    int (*from_device)(void *to, uint64_t from, size_t bytes, void *stream);
    int (*wait)(void *stream);
    int (*pin)(void *memory, size_t bytes, unsigned flags);
    int (*unpin)(void *memory);
    int (*pinned_address)(uint64_t *address, void *memory, unsigned flags);
    int (*share)(struct cuda_handle *handle, uint64_t address);
    int (*open)(uint64_t *address, struct cuda_handle handle, unsigned flags);
    int (*close)(uint64_t address);
    int (*error_text)(int error, const char **text);
} driver;

/* -1 with one sentence in why[size]: there is no driver. */
int driver_open(char *why, size_t size);
const char *driver_error(int status);

#endif
