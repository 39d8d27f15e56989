#include "engine/runners/gpu/pinned.h"

#include "engine/runners/gpu/cuda_error.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

void pinned_release(struct pinned *p)
{
    if (p->device)
        cudaHostUnregister(p->host);
    if (p->host)
        munmap(p->host, p->n_bytes);
    memset(p, 0, sizeof *p);
}

static int pin(struct pinned *p, struct err *err)
{
    void *device = NULL;
    cudaError_t status = cudaHostRegister(p->host, p->n_bytes, cudaHostRegisterMapped);
    if (status != cudaSuccess)
        return cuda_error_set(err, status, "the trace of %zu bytes can not be pinned", p->n_bytes);
    status = cudaHostGetDevicePointer(&device, p->host, 0);
    if (status != cudaSuccess) {
        cudaHostUnregister(p->host);
        return cuda_error_set(err, status, "the GPU can not see the pinned trace");
    }
    p->device = device;
    return 0;
}

int pinned_hold(struct pinned *p, int fd, struct err *err)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return err_errno(err, "live trace", "file descriptor %d", fd);
    if (p->device && p->file_device == file.st_dev && p->file == file.st_ino && p->n_bytes == (size_t)file.st_size)
        return 0;
    pinned_release(p);
    void *host = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (host == MAP_FAILED)
        return err_errno(err, "live trace", "mapping %lld bytes", (long long)file.st_size);
    *p =
        (struct pinned){.host = host, .n_bytes = (size_t)file.st_size, .file_device = file.st_dev, .file = file.st_ino};
    if (pin(p, err) != 0) {
        pinned_release(p);
        return -1;
    }
    return 0;
}
