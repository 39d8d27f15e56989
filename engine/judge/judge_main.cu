/* attnscope-judge [WORK TRACE]: does the work of the file WORK (work.h) on CUDA device 0, with the tensors of the file
   TRACE, and writes what came of it into WORK. Without files it says the device's name. One line on stderr and an
   exit status of 1: it could not. */
#include "engine/judge/rows.cuh"

#include <cuda_runtime.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* nvcc knows <<<>>>; the CPU executor, under which tests run this, is called. */
#ifdef SIMT_KEYWORDS_H
#define LAUNCH(kernel, blocks, bytes, work)                                                                            \
    ::simt::raw_launch(#kernel, [](const judge_arrays &w) { kernel(w); }).at((blocks), THREADS, (bytes))(work)
#else
#define LAUNCH(kernel, blocks, bytes, work) kernel<<<(blocks), THREADS, (bytes)>>>(work)
#endif

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
};

static int map(const char *path, bool written, struct mapping *out)
{
    struct stat status;
    const int fd = open(path, written ? O_RDWR : O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(struct judge_work))
        return fail(path, "cannot be read");
    out->bytes = (size_t)status.st_size;
    out->at = (unsigned char *)mmap(NULL, out->bytes, written ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return out->at == (unsigned char *)MAP_FAILED ? fail(path, "cannot be mapped") : 0;
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
           lies_within(trace->bytes, w->begin, w->end - w->begin, 1);
}

/* n elements of the work in device memory. */
template <class T> static cudaError_t upload(const unsigned char *from, int64_t n, T **out)
{
    cudaError_t error = cudaMalloc((void **)out, (size_t)(n ? n : 1) * sizeof(T));
    return error || !n ? error : cudaMemcpy(*out, from, (size_t)n * sizeof(T), cudaMemcpyHostToDevice);
}

template <int W, int PASSES>
static cudaError_t launch(const struct judge_arrays &arrays, const struct judge_numbers *first, int64_t blocks)
{
    const size_t bytes = judge_room_bytes(first, W);
    cudaError_t error =
        cudaFuncSetAttribute(judge_rows<W, PASSES>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    LAUNCH((judge_rows<W, PASSES>), (unsigned)blocks, bytes, arrays);
    error = cudaGetLastError();
    return error ? error : cudaDeviceSynchronize();
}

/* Rows are as long in all heads: the first one's numbers say it. */
static cudaError_t launch_any(const struct judge_arrays &arrays, const struct judge_numbers *first, int64_t blocks)
{
    switch (judge_columns(first)) {
    case 64:
        return launch<64, 1>(arrays, first, blocks);
    case 128:
        return launch<128, 1>(arrays, first, blocks);
    default:
        return first->head_dim_v <= 256 ? launch<256, 1>(arrays, first, blocks) : launch<256, 2>(arrays, first, blocks);
    }
}

static cudaError_t judge(struct judge_work *w, const unsigned char *work, const unsigned char *trace)
{
    struct judge_arrays arrays = {};
    const struct judge_numbers *first = (const struct judge_numbers *)(const void *)(work + w->numbers);
    struct judge_numbers *numbers;
    double *scales = NULL;
    float *code;
    struct judge_tile *tiles;
    struct judge_range *ranges;
    struct judge_block *blocks;
    struct judge_row *rows;
    struct judge_value *values = NULL;
    unsigned char *tensors, *skips = NULL;
    cudaError_t error;
    if ((error = upload(work + w->numbers, w->n_numbers, &numbers)) ||
        (error = upload((const unsigned char *)w->code, 3 * 256, &code)) ||
        (w->n_scales && (error = upload(work + w->scales, w->n_scales, &scales))) ||
        (error = upload(work + w->tiles, w->n_tiles, &tiles)) ||
        (error = upload(work + w->ranges, w->n_rows, &ranges)) ||
        (error = upload(work + w->blocks, w->n_blocks, &blocks)) ||
        (error = upload(work + w->rows, w->n_rows, &rows)) ||
        (w->n_skips && (error = upload(work + w->skips, w->n_skips, &skips))) ||
        (w->n_values && (error = upload(work + w->values, w->n_values, &values))) ||
        (error = upload(trace + w->begin, w->end - w->begin, &tensors)))
        return error;
    arrays.numbers = numbers;
    arrays.code = code;
    arrays.scales = scales;
    memcpy(arrays.stride, w->stride, sizeof arrays.stride);
    arrays.tensors = tensors - w->begin;
    arrays.tiles = tiles;
    arrays.ranges = ranges;
    arrays.blocks = blocks;
    arrays.rows = rows;
    arrays.skips = skips;
    arrays.mask_stride = w->mask_stride;
    arrays.bias_stride = w->bias_stride;
    arrays.values = values;
    if ((error = launch_any(arrays, first, w->n_blocks)) ||
        (error =
             cudaMemcpy((unsigned char *)w + w->rows, rows, (size_t)w->n_rows * sizeof *rows, cudaMemcpyDeviceToHost)))
        return error;
    return values ? cudaMemcpy((unsigned char *)w + w->values, values, (size_t)w->n_values * sizeof *values,
                               cudaMemcpyDeviceToHost)
                  : cudaSuccess;
}

int main(int argc, char **argv)
{
    struct mapping work = {}, trace = {};
    if (argc == 1)
        return tell();
    if (argc != 3)
        return fail("usage", "attnscope-judge [WORK TRACE]");
    if (map(argv[1], true, &work) != 0 || map(argv[2], false, &trace) != 0)
        return 1;
    struct judge_work *w = (struct judge_work *)work.at;
    if (!is_whole(w, &work, &trace))
        return fail(argv[1], "is no work that this version knows");
    const cudaError_t error = judge(w, work.at, trace.at);
    if (error)
        return fail_cuda(error);
    w->done = 1;
    return 0;
}
