#include "engine/gpu/guardian.h"

#include "engine/base/pass_fd.h"
#include "engine/gpu/copy_out.h"
#include "engine/gpu/driver.h"
#include "engine/gpu/kept_files.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    void *context;
    uint64_t address; /* owned device memory; 0: none */
    size_t bytes;
    struct copy_room copies;
    struct kept_files kept;
} room;

static int fail(struct guardian_answer *answer, const char *what, int status)
{
    snprintf(answer->failure, sizeof answer->failure, "%s: %s", what, driver_error(status));
    return -1;
}

static int open_device(int ordinal, struct guardian_answer *answer)
{
    int device = 0;
    if (driver_open(answer->failure, sizeof answer->failure) != 0)
        return -1;
    int status = driver.get(&device, ordinal);
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
    struct cuda_handle handle;
    _Static_assert(sizeof handle == sizeof answer->handle, "it travels as bytes");
    if (!status)
        status = driver.share(&handle, room.address);
    if (!status)
        memcpy(answer->handle, &handle, sizeof handle);
    if (status)
        fail(answer, "its memory cannot be shared", status);
}

static void copy(const struct guardian_request *request, int fd, struct guardian_answer *answer)
{
    bool sense = fd >= 0 && request->n_parts > 0 && request->n_parts <= GUARDIAN_PARTS;
    for (uint32_t i = 0; sense && i < request->n_parts; i++) {
        const struct values_piece *piece = &request->piece[i];
        sense = piece->from <= room.bytes && piece->bytes <= room.bytes - piece->from;
    }
    if (!sense)
        snprintf(answer->failure, sizeof answer->failure, "a request that makes no sense");
    else if (!kept_files_fill(&room.kept, room.address, request->piece, request->n_parts, fd))
        copy_out(&room.copies, room.context, room.address, request->piece, request->n_parts, fd, answer->failure,
                 sizeof answer->failure);
}

int guardian_serve(int device, int socket)
{
    static struct guardian_request request;
    struct guardian_answer unusable = {0};
    int fd;
    open_device(device, &unusable);
    while (pass_fd_receive(socket, &request, sizeof request, 0, &fd) == (ssize_t)sizeof request) {
        struct guardian_answer answer = unusable;
        if (!*answer.failure && request.op == GUARDIAN_TAKE)
            take(&request, &answer);
        else if (!*answer.failure)
            copy(&request, fd, &answer);
        const bool listens = send(socket, &answer, sizeof answer, MSG_NOSIGNAL) >= 0;
        if (fd >= 0 && listens && !*answer.failure && request.op == GUARDIAN_COPY)
            kept_files_add(&room.kept, fd); /* nobody waits for it */
        if (fd >= 0)
            close(fd);
        if (!listens)
            break;
    }
    kept_files_free(&room.kept);
    drop_room();
    return 0;
}
