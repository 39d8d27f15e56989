#include "engine/gpu/guardian.h"

#include "engine/base/pass_fd.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A copy goes by way of pinned pieces: the copy engine fills one while a processor empties others into the file, whose
   pages would have to be pinned, all of them, to be filled directly (0.3 s a GiB on an H200's host). */
enum { COPIERS = 4 };
#define PIECE_BYTES ((size_t)4 << 20)
#define OWN_STREAM ((void *)2) /* cuda.h: CU_STREAM_PER_THREAD */

/* Of the driver API (cuda.h), whose binary interface is stable. */
static struct {
    int (*init)(unsigned flags);
    int (*get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*make_current)(void *context);
    int (*memory)(size_t *free, size_t *total);
    int (*allocate)(uint64_t *address, size_t bytes);
    int (*release)(uint64_t address);
    int (*allocate_host)(void **memory, size_t bytes);
    int (*fill)(uint64_t address, unsigned short pattern, size_t n);
    int (*synchronize)(void);
    int (*share)(unsigned char handle[GUARDIAN_HANDLE_BYTES], uint64_t address);
    int (*from_device)(void *to, uint64_t from, size_t bytes, void *stream);
    int (*wait)(void *stream);
    int (*error_text)(int error, const char **text);
} driver;

static struct {
    void *context;
    uint64_t address; /* owned device memory; 0: none */
    size_t bytes;
    void *pieces[COPIERS]; /* owned pinned memory; NULL until a copy */
} room;

static int fail(struct guardian_answer *answer, const char *what, int status)
{
    const char *text = NULL;
    driver.error_text(status, &text);
    snprintf(answer->failure, sizeof answer->failure, "%s: %s", what, text ? text : "unknown error");
    return -1;
}

static int open_driver(void *library, int ordinal, struct guardian_answer *answer)
{
    const struct {
        void *function;
        const char *symbol;
    } functions[] = {{&driver.error_text, "cuGetErrorString"},
                     {&driver.init, "cuInit"},
                     {&driver.get, "cuDeviceGet"},
                     {&driver.retain, "cuDevicePrimaryCtxRetain"},
                     {&driver.make_current, "cuCtxSetCurrent"},
                     {&driver.memory, "cuMemGetInfo_v2"},
                     {&driver.allocate, "cuMemAlloc_v2"},
                     {&driver.release, "cuMemFree_v2"},
                     {&driver.allocate_host, "cuMemAllocHost_v2"},
                     {&driver.fill, "cuMemsetD16_v2"},
                     {&driver.synchronize, "cuCtxSynchronize"},
                     {&driver.share, "cuIpcGetMemHandle"},
                     {&driver.from_device, "cuMemcpyDtoHAsync_v2"},
                     {&driver.wait, "cuStreamSynchronize"}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = library ? dlsym(library, functions[i].symbol) : NULL;
        if (!found) {
            snprintf(answer->failure, sizeof answer->failure, "the driver has no %s", functions[i].symbol);
            return -1;
        }
        memcpy(functions[i].function, &found, sizeof found);
    }
    int device = 0, status = driver.init(0);
    if (!status)
        status = driver.get(&device, ordinal);
    if (!status)
        status = driver.retain(&room.context, device);
    if (!status)
        status = driver.make_current(room.context);
    return status ? fail(answer, "no second process can use the GPU", status) : 0;
}

static void drop_room(void)
{
    if (room.address)
        driver.release(room.address);
    room.address = 0;
    room.bytes = 0;
}

/* What was taken before serves again, unless it is too small or wastes more than it holds. */
static int find_room(size_t bytes, size_t beside, struct guardian_answer *answer)
{
    size_t available = 0, total = 0;
    if (room.bytes >= bytes && room.bytes / 2 <= bytes)
        return 0;
    drop_room();
    int status = driver.memory(&available, &total);
    const size_t usable = available - available / 10;
    if (!status && (usable < beside || usable - beside < bytes)) {
        snprintf(answer->failure, sizeof answer->failure,
                 "%zu MiB of values, %zu MiB of device memory are free, of which a tenth stays so",
                 (bytes + beside) >> 20, available >> 20);
        return -1;
    }
    if (!status)
        status = driver.allocate(&room.address, bytes);
    if (status)
        return fail(answer, "no device memory", status);
    room.bytes = bytes;
    return 0;
}

static void take(const struct guardian_request *request, struct guardian_answer *answer)
{
    if (request->end <= request->begin || request->n_parts > GUARDIAN_PARTS) {
        snprintf(answer->failure, sizeof answer->failure, "a request that makes no sense");
        return;
    }
    if (find_room(request->end - request->begin, request->beside, answer) != 0)
        return;
    int status = 0;
    for (uint32_t i = 0; i < request->n_parts && !status; i++) {
        const struct unwritten_part *part = &request->part[i];
        status = driver.fill(room.address + (part->begin - request->begin), part->pattern,
                             (part->end - part->begin) / sizeof part->pattern);
    }
    if (!status)
        status = driver.synchronize();
    if (!status)
        status = driver.share(answer->handle, room.address);
    if (status)
        fail(answer, "its memory cannot be shared", status);
}

struct copy {
    unsigned char *to; /* where the room's first byte goes */
    size_t bytes;
    atomic_size_t next;
    atomic_int status;
    atomic_int copier;
};

static void *copy_pieces(void *argument)
{
    struct copy *copy = argument;
    unsigned char *const piece = room.pieces[atomic_fetch_add(&copy->copier, 1)];
    int status = driver.make_current(room.context);
    while (!status && !atomic_load(&copy->status)) {
        const size_t at = atomic_fetch_add(&copy->next, PIECE_BYTES);
        if (at >= copy->bytes)
            return NULL;
        const size_t n = copy->bytes - at < PIECE_BYTES ? copy->bytes - at : PIECE_BYTES;
        status = driver.from_device(piece, room.address + at, n, OWN_STREAM);
        if (!status)
            status = driver.wait(OWN_STREAM);
        if (!status)
            memcpy(copy->to + at, piece, n);
    }
    if (status)
        atomic_store(&copy->status, status);
    return NULL;
}

/* The calling thread is one of the copiers. */
static int copy_all(struct copy *copy)
{
    pthread_t copiers[COPIERS];
    int n = 0;
    for (int i = 0; i < COPIERS; i++)
        if (!room.pieces[i] && driver.allocate_host(&room.pieces[i], PIECE_BYTES) != 0)
            return -1;
    while (n < COPIERS - 1 && pthread_create(&copiers[n], NULL, copy_pieces, copy) == 0)
        n++;
    copy_pieces(copy);
    while (n > 0)
        pthread_join(copiers[--n], NULL);
    return 0;
}

static void copy_out(const struct guardian_request *request, int fd, struct guardian_answer *answer)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = request->begin / page * page;
    const size_t mapped = request->end - begin;
    if (fd < 0 || request->end <= request->begin || request->end - request->begin > room.bytes) {
        snprintf(answer->failure, sizeof answer->failure, "a request that makes no sense");
        return;
    }
    unsigned char *file = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)begin);
    if (file == MAP_FAILED) {
        snprintf(answer->failure, sizeof answer->failure, "the trace cannot be mapped: %s", strerror(errno));
        return;
    }
    struct copy copy = {.to = file + (request->begin - begin), .bytes = request->end - request->begin};
    if (copy_all(&copy) != 0)
        snprintf(answer->failure, sizeof answer->failure, "no pinned memory to copy through");
    else if (copy.status)
        fail(answer, "the device's memory cannot be read", copy.status);
    munmap(file, mapped);
}

int guardian_serve(void *library, int device, int socket)
{
    static struct guardian_request request;
    struct guardian_answer unusable = {0};
    int fd;
    open_driver(library, device, &unusable);
    while (pass_fd_receive(socket, &request, sizeof request, 0, &fd) == (ssize_t)sizeof request) {
        struct guardian_answer answer = unusable;
        if (!*answer.failure && request.op == GUARDIAN_TAKE)
            take(&request, &answer);
        else if (!*answer.failure)
            copy_out(&request, fd, &answer);
        if (fd >= 0)
            close(fd);
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) < 0)
            break;
    }
    drop_room();
    return 0;
}
