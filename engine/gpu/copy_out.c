#include "engine/gpu/copy_out.h"

#include "engine/gpu/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A copy goes by way of pinned memory: the copy engine fills one block while a processor writes others to the file,
   whose pages would have to be pinned, all of them, to be filled directly (0.3 s a GiB on an H200's host). They are
   written and not mapped: a page that is written whole is not zeroed first. */
#define BLOCK_BYTES ((uint64_t)4 << 20)

struct copy {
    struct copy_room *room;
    void *context;
    uint64_t from;
    const struct values_piece *pieces;
    uint32_t n;
    int fd;
    atomic_ullong next;         /* block, counted through all pieces */
    atomic_int status, failure; /* of CUDA; errno */
    atomic_int copier;
};

/* A block of a piece. false: there is none. */
static bool find_block(const struct copy *c, uint64_t block, struct values_piece *out)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct values_piece *piece = &c->pieces[i];
        const uint64_t blocks = (piece->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES, at = block * BLOCK_BYTES;
        if (block < blocks) {
            const uint64_t left = piece->bytes - at;
            *out = (struct values_piece){piece->from + at, piece->to + at, left < BLOCK_BYTES ? left : BLOCK_BYTES};
            return true;
        }
        block -= blocks;
    }
    return false;
}

static int write_all(int fd, const unsigned char *from, uint64_t n, uint64_t at)
{
    while (n) {
        const ssize_t done = pwrite(fd, from, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : ENOSPC;
        from += done;
        n -= (uint64_t)done;
        at += (uint64_t)done;
    }
    return 0;
}

static void *copy_blocks(void *argument)
{
    struct copy *c = argument;
    unsigned char *const memory = c->room->piece[atomic_fetch_add(&c->copier, 1)];
    struct values_piece block;
    int status = driver.make_current(c->context), failure = 0;
    while (!status && !failure && !atomic_load(&c->status) && !atomic_load(&c->failure) &&
           find_block(c, atomic_fetch_add(&c->next, 1), &block)) {
        status = driver.from_device(memory, c->from + block.from, block.bytes, CUDA_OWN_STREAM);
        if (!status)
            status = driver.wait(CUDA_OWN_STREAM);
        if (!status)
            failure = write_all(c->fd, memory, block.bytes, block.to);
    }
    if (status)
        atomic_store(&c->status, status);
    if (failure)
        atomic_store(&c->failure, failure);
    return NULL;
}

/* The calling thread is one of the copiers. */
int copy_out(struct copy_room *room, void *context, uint64_t from, const struct values_piece *pieces, uint32_t n,
             int fd, char *why, size_t size)
{
    struct copy c = {.room = room, .context = context, .from = from, .pieces = pieces, .n = n, .fd = fd};
    pthread_t copiers[COPIERS];
    int started = 0, status = driver.make_current(context);
    for (int i = 0; i < COPIERS && !status; i++)
        if (!room->piece[i])
            status = driver.allocate_host(&room->piece[i], BLOCK_BYTES);
    if (status) {
        snprintf(why, size, "no pinned memory to copy through: %s", driver_error(status));
        return -1;
    }
    while (started < COPIERS - 1 && pthread_create(&copiers[started], NULL, copy_blocks, &c) == 0)
        started++;
    copy_blocks(&c);
    while (started > 0)
        pthread_join(copiers[--started], NULL);
    if (c.status)
        snprintf(why, size, "the device's memory cannot be read: %s", driver_error(c.status));
    else if (c.failure)
        snprintf(why, size, "cannot be written: %s", strerror(c.failure));
    return c.status || c.failure ? -1 : 0;
}

void copy_room_free(struct copy_room *room)
{
    for (int i = 0; i < COPIERS; i++) {
        if (room->piece[i])
            driver.release_host(room->piece[i]);
        room->piece[i] = NULL;
    }
}
