#include "engine/gpu/pinned.h"

#include "engine/gpu/cuda_error.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FILES 10 /* as KEPT_FILES of kept_files.h */

static struct pinned held[FILES]; /* the newest first; host NULL: none */

static void release(struct pinned *p)
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
    cudaError_t status = cudaHostRegister(p->host, p->pinned_bytes, cudaHostRegisterMapped);
    if (status != cudaSuccess)
        return cuda_error_set(err, status, "%zu bytes of the trace cannot be pinned", p->pinned_bytes);
    status = cudaHostGetDevicePointer(&device, p->host, 0);
    if (status != cudaSuccess) {
        cudaHostUnregister(p->host);
        return cuda_error_set(err, status, "the GPU cannot see the pinned trace");
    }
    p->device = device;
    return 0;
}

/* Which of those held the file is, or -1. */
static int find(const struct stat *file, size_t n)
{
    for (int i = 0; i < FILES; i++)
        if (held[i].device && held[i].file_device == file->st_dev && held[i].file == file->st_ino &&
            held[i].n_bytes == (size_t)file->st_size && held[i].pinned_bytes == n)
            return i;
    return -1;
}

/* Room for a file of this size: those of another one are of a shape that is gone. */
static int make_room(size_t n_bytes, size_t pinned_bytes)
{
    int room = FILES - 1;
    for (int i = 0; i < FILES; i++)
        if (held[i].n_bytes != n_bytes || held[i].pinned_bytes != pinned_bytes)
            release(&held[i]);
    for (int i = 0; i < FILES; i++)
        if (!held[i].host)
            room = i;
    release(&held[room]);
    return room;
}

/* Entry i becomes the newest. */
static void move_up(int i)
{
    const struct pinned newest = held[i];
    for (; i > 0; i--)
        held[i] = held[i - 1];
    held[0] = newest;
}

int pinned_hold(int fd, size_t n, struct pinned *out, struct err *err)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return err_errno(err, "live trace", "file descriptor %d", fd);
    int i = find(&file, n);
    if (i < 0) {
        i = make_room((size_t)file.st_size, n);
        void *host = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (host == MAP_FAILED)
            return err_errno(err, "live trace", "mapping %lld bytes", (long long)file.st_size);
        held[i] = (struct pinned){.host = host,
                                  .n_bytes = (size_t)file.st_size,
                                  .pinned_bytes = n,
                                  .file_device = file.st_dev,
                                  .file = file.st_ino};
        if (pin(&held[i], err) != 0) {
            release(&held[i]);
            return -1;
        }
    }
    move_up(i);
    *out = held[0];
    return 0;
}

void pinned_drop(const struct pinned *p)
{
    for (int i = 0; i < FILES; i++)
        if (p->host && held[i].host == p->host)
            release(&held[i]);
}
