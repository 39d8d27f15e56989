/* attnscope-judge [WORK TRACE]: does the work of the file WORK (work.h) on CUDA device 0, with the tensors of the file
   TRACE, and writes what came of it into WORK. Without files it says the device's name. One line on stderr and an
   exit status of 1: it could not.
   attnscope-judge serve: does one work after the other, as judge/ask.h has them, until nobody asks any more; a context
   and pinned memory are what takes long. */
#include "engine/judge/ask.h"
#include "engine/judge/device.cuh"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

static int fail_cuda(cudaError_t error)
{
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return 1;
}

static int tell()
{
    cudaDeviceProp device;
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (!error && n < 1)
        return fail("CUDA", "the driver has no device");
    if (!error)
        error = cudaGetDeviceProperties(&device, 0);
    if (error)
        return fail_cuda(error);
    printf("%s\n", device.name);
    return 0;
}

struct mapping {
    unsigned char *at;
    size_t bytes;
    dev_t device; /* which file it is */
    ino_t inode;
    bool pinned;
};

/* NULL, or why not. */
static const char *map(const char *path, bool written, struct mapping *out)
{
    struct stat status;
    const int fd = open(path, written ? O_RDWR : O_RDONLY);
    const bool read = fd >= 0 && fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof(struct judge_work);
    if (read) {
        *out = {NULL, (size_t)status.st_size, status.st_dev, status.st_ino, false};
        out->at =
            (unsigned char *)mmap(NULL, out->bytes, written ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    return !read ? "cannot be read" : out->at == (unsigned char *)MAP_FAILED ? "cannot be mapped" : NULL;
}

static void unmap(struct mapping *m)
{
    if (m->pinned)
        cudaHostUnregister(m->at);
    if (m->at)
        munmap(m->at, m->bytes);
    *m = {};
}

/* Whether n elements at `offset` lie within a file of so many bytes. */
static bool lies_within(size_t bytes, int64_t offset, int64_t n, size_t size)
{
    return offset >= 0 && n >= 0 && (uint64_t)offset <= bytes && (uint64_t)n <= (bytes - (uint64_t)offset) / size;
}

static bool is_whole(const struct judge_work *w, const struct mapping *work, const struct mapping *trace)
{
    return w->magic == JUDGE_MAGIC && w->version == JUDGE_VERSION && (uint64_t)w->bytes == work->bytes &&
           lies_within(work->bytes, w->numbers, w->n_numbers, sizeof(struct judge_numbers)) &&
           lies_within(work->bytes, w->scales, w->n_scales, sizeof(double)) && w->n_numbers > 0 &&
           lies_within(work->bytes, w->tiles, w->n_tiles, sizeof(struct judge_tile)) &&
           lies_within(work->bytes, w->ranges, w->n_rows, sizeof(struct judge_range)) &&
           lies_within(work->bytes, w->blocks, w->n_blocks, sizeof(struct judge_block)) &&
           lies_within(work->bytes, w->rows, w->n_rows, sizeof(struct judge_row)) &&
           lies_within(work->bytes, w->skips, w->n_skips, 1) &&
           lies_within(work->bytes, w->values, w->n_values, sizeof(struct judge_value)) &&
           lies_within(work->bytes, w->slots, w->n_verdicts ? w->n_tiles : 0, sizeof(struct judge_slot)) &&
           lies_within(work->bytes, w->turned[0], w->turned_bytes[0], 1) &&
           lies_within(work->bytes, w->turned[1], w->turned_bytes[1], 1) &&
           lies_within(work->bytes, w->orders, w->n_orders, sizeof(int32_t)) &&
           lies_within(work->bytes, w->verdicts, w->n_verdicts, sizeof(struct judge_verdict)) &&
           lies_within(trace->bytes, w->begin, w->end - w->begin, 1) &&
           (!w->n_verdicts || (w->captured.inputs_end >= w->begin && w->captured.inputs_end <= w->end));
}

/* NULL, or why not. */
static const char *work(struct arena *arena, const struct mapping &work, const struct mapping &trace)
{
    struct judge_work *w = (struct judge_work *)work.at;
    if (!is_whole(w, &work, &trace))
        return "this is no work that this version knows";
    const cudaError_t error = judge(arena, w, trace.at);
    w->done = !error;
    return error ? cudaGetErrorString(error) : NULL;
}

/* Traces whose memory stays pinned: a run's, and those of the runs before, whose memory the next ones take; as many as
   KEPT_FILES of gpu/kept_files.h. */
enum { TRACES = 10 };

/* NULL, or why not. Of memory that cannot be pinned the copy takes longer. */
static const char *keep(const char *path, struct mapping traces[TRACES], int *which)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return "the trace cannot be read";
    for (int i = 0; i < TRACES; i++)
        if (traces[i].at && traces[i].device == status.st_dev && traces[i].inode == status.st_ino &&
            traces[i].bytes == (size_t)status.st_size) {
            *which = i;
            return NULL;
        }
    for (int i = 0; i < TRACES; i++) /* those of another size are of a shape that is gone */
        if (traces[i].at && traces[i].bytes != (size_t)status.st_size)
            unmap(&traces[i]);
    *which = (*which + 1) % TRACES;
    struct mapping *to = &traces[*which];
    unmap(to);
    const char *why = map(path, true, to);
    if (why) {
        *to = {};
        return why;
    }
    to->pinned = cudaHostRegister(to->at, to->bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (!to->pinned)
        cudaGetLastError();
    return NULL;
}

/* One sticky error and the context is gone: whoever asks starts another one. */
static int serve()
{
    struct mapping traces[TRACES] = {};
    struct arena arena = {};
    struct judge_ask ask;
    struct judge_answer answer = {};
    int trace = 0;
    cudaDeviceProp device;
    cudaError_t error = cudaFree(NULL);
    if (!error)
        error = cudaGetDeviceProperties(&device, 0);
    snprintf(answer.device, sizeof answer.device, "%.63s", error ? "" : device.name);
    snprintf(answer.failure, sizeof answer.failure, "%s", error ? cudaGetErrorString(error) : "");
    while (send(JUDGE_SOCKET, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer && !error &&
           recv(JUDGE_SOCKET, &ask, sizeof ask, 0) == (ssize_t)sizeof ask) {
        struct mapping of = {};
        ask.work[sizeof ask.work - 1] = ask.trace[sizeof ask.trace - 1] = '\0';
        const char *why = map(ask.work, true, &of);
        if (!why)
            why = keep(ask.trace, traces, &trace);
        const double begun = seconds();
        if (!why)
            why = work(&arena, of, traces[trace]);
        answer.copying = arena.copied - begun;
        answer.judging = seconds() - arena.copied;
        snprintf(answer.failure, sizeof answer.failure, "%s", why ? why : "");
        unmap(&of);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct mapping of = {}, trace = {};
    struct arena arena = {};
    if (argc == 1)
        return tell();
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    if (argc != 3)
        return fail("usage", "attnscope-judge [WORK TRACE]");
    const char *why = map(argv[1], true, &of);
    if (!why)
        why = map(argv[2], false, &trace);
    if (!why)
        why = work(&arena, of, trace);
    return why ? fail(argv[1], why) : 0;
}
