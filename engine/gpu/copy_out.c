#include "engine/gpu/copy_out.h"

#include "engine/gpu/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A copy goes by way of pinned memory: the copy engine fills one block while a processor writes others to the file,
   whose pages would have to be pinned, all of them, to be filled directly (0.3 s a GiB on an H200's host). The file
   that a trace is saved as is written: a page that is written whole is not zeroed first. A memory file is mapped: of
   one that served before the pages are there, and writes take turns, copies do not (39 MB: 12 ms in the place of 19).
 */
#define BLOCK_BYTES ((uint64_t)4 << 20)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct copy {
    struct copy_room *room;
    void *context;
    uint64_t from;
    const struct values_piece *pieces;
    uint32_t n;
    int fd;
    unsigned char *mapping; /* owned, [bytes]: the file; NULL: it is written */
    size_t bytes;
    uint64_t page;
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

/* A file that is open for writing alone cannot be mapped, nor one that does not reach as far as the pieces. */
static void map(struct copy *c)
{
    struct stat status;
    uint64_t end = 0;
    for (uint32_t i = 0; i < c->n; i++)
        end = c->pieces[i].to + c->pieces[i].bytes > end ? c->pieces[i].to + c->pieces[i].bytes : end;
    if (fstat(c->fd, &status) != 0 || (uint64_t)status.st_size < end)
        return;
    void *mapping = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    c->mapping = mapping == MAP_FAILED ? NULL : mapping;
    c->bytes = end;
    c->page = (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Into the mapping, whose pages are made first: a store that finds no memory is SIGBUS. false: that cannot be done. */
static bool store(const struct copy *c, const unsigned char *from, uint64_t n, uint64_t at)
{
    const uint64_t begin = at / c->page * c->page;
    if (!c->mapping || madvise(c->mapping + begin, at + n - begin, MADV_POPULATE_WRITE) != 0)
        return false;
    memcpy(c->mapping + at, from, n);
    return true;
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
        if (!status && !store(c, memory, block.bytes, block.to))
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
    map(&c);
    while (started < COPIERS - 1 && pthread_create(&copiers[started], NULL, copy_blocks, &c) == 0)
        started++;
    copy_blocks(&c);
    while (started > 0)
        pthread_join(copiers[--started], NULL);
    if (c.mapping)
        munmap(c.mapping, c.bytes);
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
