/* A work on the device: what it needs there, its launches, and its results back in the file. */
#ifndef JUDGE_DEVICE_CUH
#define JUDGE_DEVICE_CUH

#include "engine/judge/stages.cuh"

#include <cuda_runtime.h>
#include <string.h>
#include <time.h>

/* nvcc knows <<<>>>; the CPU executor, under which tests run this, is called. */
#ifdef SIMT_KEYWORDS_H
#define LAUNCH(kernel, arrays, blocks, threads, bytes, stream, work)                                                   \
    ::simt::raw_launch(#kernel, [](const arrays &w) { kernel(w); }).at((blocks), (threads), (bytes), (stream))(work)
#else
#define LAUNCH(kernel, arrays, blocks, threads, bytes, stream, work)                                                   \
    kernel<<<(blocks), (threads), (bytes), (stream)>>>(work)
#endif

enum { STREAMS = 4 };

/* Device memory of one work after the other; and when the last one's tensors were there. */
struct arena {
    unsigned char *at;
    size_t bytes, used;
    double copied;
    cudaStream_t stream[STREAMS]; /* which wait for what the default one does, and it for them */
    bool streams;                 /* they are there */
};

static double seconds()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { ARENA_STEP = 256 };

static cudaError_t arena_open(struct arena *a, size_t bytes)
{
    a->used = 0;
    for (int i = 0; i < STREAMS && !a->streams; i++) {
        const cudaError_t error = cudaStreamCreate(&a->stream[i]);
        if (error)
            return error;
    }
    a->streams = true;
    if (bytes <= a->bytes)
        return cudaSuccess;
    cudaFree(a->at);
    a->at = NULL;
    a->bytes = 0;
    const cudaError_t error = cudaMalloc((void **)&a->at, bytes);
    a->bytes = error ? 0 : bytes;
    return error;
}

static unsigned char *arena_take(struct arena *a, size_t bytes)
{
    unsigned char *at = a->at + a->used;
    a->used += (bytes + ARENA_STEP - 1) / ARENA_STEP * ARENA_STEP;
    return at;
}

/* Of the sequences some may have rows so long that more of them is known. */
static size_t room_bytes(const struct judge_numbers *numbers, int64_t n)
{
    size_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = judge_room_bytes(&numbers[i]) > most ? judge_room_bytes(&numbers[i]) : most;
    return most;
}

template <class ELEMENT, int DIM, int PASSES, bool MORE>
static cudaError_t launch_rows(const struct judge_arrays &arrays, size_t bytes, int64_t blocks)
{
    cudaError_t error = cudaFuncSetAttribute(judge_rows<ELEMENT, DIM, PASSES, MORE>,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    LAUNCH((judge_rows<ELEMENT, DIM, PASSES, MORE>), judge_arrays, (unsigned)blocks, JUDGE_ROW_THREADS, bytes, NULL,
           arrays);
    return cudaGetLastError();
}

template <int PASSES>
static cudaError_t launch_f32(const struct judge_arrays &arrays, bool more, size_t bytes, int64_t blocks)
{
    return more ? launch_rows<judge_f32, 0, PASSES, true>(arrays, bytes, blocks)
                : launch_rows<judge_f32, 0, PASSES, false>(arrays, bytes, blocks);
}

/* Of rows of 64 or 128 elements. */
template <class ELEMENT>
static cudaError_t launch_16(const struct judge_arrays &arrays, int dim, size_t bytes, int64_t blocks)
{
    return dim == 64 ? launch_rows<ELEMENT, 64, 1, false>(arrays, bytes, blocks)
                     : launch_rows<ELEMENT, 128, 2, false>(arrays, bytes, blocks);
}

/* Rows are as long in all heads: the first one's numbers say it. */
static cudaError_t launch_any(const struct judge_arrays &arrays, const struct judge_numbers *first, int64_t n,
                              int64_t blocks)
{
    const size_t bytes = room_bytes(first, n);
    const int passes = (first->head_dim_v + JUDGE_COLUMNS - 1) / JUDGE_COLUMNS;
    const bool more = first->more != 0;
    if (first->element_bytes == 2 && first->type[1] == DTYPE_F16)
        return launch_16<judge_f16>(arrays, first->head_dim, bytes, blocks);
    if (first->element_bytes == 2)
        return launch_16<judge_bf16>(arrays, first->head_dim, bytes, blocks);
    return passes <= 1   ? launch_f32<1>(arrays, more, bytes, blocks)
           : passes <= 2 ? launch_f32<2>(arrays, more, bytes, blocks)
           : passes <= 4 ? launch_f32<4>(arrays, more, bytes, blocks)
                         : launch_f32<8>(arrays, more, bytes, blocks);
}

template <int W, int PASSES, bool LONG>
static cudaError_t launch_stages_of(const struct judge_stage_arrays &arrays, size_t bytes, int64_t blocks,
                                    cudaStream_t stream)
{
    cudaError_t error =
        cudaFuncSetAttribute(judge_stages<W, PASSES, LONG>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    LAUNCH((judge_stages<W, PASSES, LONG>), judge_stage_arrays, (unsigned)blocks, THREADS, bytes, stream, arrays);
    return cudaGetLastError();
}

template <int W, int PASSES>
static cudaError_t launch_stages(const struct judge_stage_arrays &arrays, const struct judge_numbers *numbers,
                                 int64_t n, int64_t blocks, cudaStream_t stream)
{
    bool any_long = false;
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++) {
        any_long |= numbers[i].likely != 0;
        bytes = judge_stage_room_bytes(&numbers[i]) > bytes ? judge_stage_room_bytes(&numbers[i]) : bytes;
    }
    return any_long ? launch_stages_of<W, PASSES, true>(arrays, bytes, blocks, stream)
                    : launch_stages_of<W, PASSES, false>(arrays, bytes, blocks, stream);
}

/* Of captured stages: parts of verdicts, and samples. */
static size_t parts_bytes(const struct judge_work *w)
{
    return (size_t)w->n_verdicts * (size_t)w->captured.groups * sizeof(struct judge_part);
}

static size_t samples_bytes(const struct judge_work *w)
{
    return (size_t)w->n_verdicts * JUDGE_SAMPLES * sizeof(double);
}

static cudaError_t launch_any_stages(const struct judge_stage_arrays &arrays, const struct judge_numbers *first,
                                     int64_t n, int64_t blocks, cudaStream_t stream)
{
    switch (judge_columns(first)) {
    case 64:
        return launch_stages<64, 1>(arrays, first, n, blocks, stream);
    case 128:
        return launch_stages<128, 1>(arrays, first, n, blocks, stream);
    default:
        return first->head_dim_v <= 256 ? launch_stages<256, 1>(arrays, first, n, blocks, stream)
                                        : launch_stages<256, 2>(arrays, first, n, blocks, stream);
    }
}

/* What was captured of the q tiles a .. b - 1, whose slots follow each other in the trace. */
static cudaError_t copy_slots(const struct judge_work *w, const struct judge_slot *slots, int64_t a, int64_t b,
                              const unsigned char *trace, unsigned char *tensors, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < JUDGE_CAPTURED && !error; i++) {
        const int64_t from = slots[a].at[i], to = slots[b - 1].at[i] + w->captured.slot_bytes[i];
        if (!w->captured.has[i])
            continue;
        if (from < w->begin || from > to || to > w->end)
            return cudaErrorInvalidValue;
        error = cudaMemcpyAsync(tensors + from, trace + from, (size_t)(to - from), cudaMemcpyHostToDevice, stream);
    }
    return error;
}

/* Piece by piece, each on the next stream: one is copied while others are judged. tensors: of the trace's file. */
static cudaError_t judge_pieces(const struct judge_work *w, struct arena *arena, struct judge_stage_arrays arrays,
                                const unsigned char *trace, unsigned char *tensors)
{
    const unsigned char *file = (const unsigned char *)w;
    const struct judge_numbers *first = (const struct judge_numbers *)(file + w->numbers);
    const struct judge_slot *slots = (const struct judge_slot *)(file + w->slots);
    const struct judge_block *blocks = (const struct judge_block *)(file + w->blocks);
    cudaError_t error = cudaSuccess;
    int64_t a = 0, begin = 0;
    for (int piece = 0; piece < JUDGE_PIECES && !error; piece++) {
        const cudaStream_t stream = arena->stream[piece % STREAMS];
        int64_t b = a, end = begin;
        while (b < w->n_tiles && judge_piece(b, w->n_tiles) == piece)
            b++;
        while (end < w->n_blocks && blocks[end].tile < b)
            end++;
        if (a < b)
            error = copy_slots(w, slots, a, b, trace, tensors, stream);
        if (a < b && !error)
            error = launch_any_stages(arrays, first, w->n_numbers, end - begin, stream);
        arrays.base.blocks += end - begin;
        a = b;
        begin = end;
    }
    return error;
}

static cudaError_t judge_captured(const struct judge_work *w, struct arena *arena, const struct judge_arrays &base,
                                  const unsigned char *trace, unsigned char *work, unsigned char *tensors)
{
    struct judge_stage_arrays arrays = {};
    struct judge_finish_arrays finish = {};
    cudaError_t error;
    arrays.base = base;
    arrays.captured = w->captured;
    arrays.slots = (const struct judge_slot *)(work + w->slots);
    arrays.orders = (const int32_t *)(work + w->orders);
    arrays.rows = base.rows;
    arrays.parts = (struct judge_part *)arena_take(arena, parts_bytes(w));
    arrays.samples = (double *)arena_take(arena, samples_bytes(w));
    if ((error = cudaMemset(arrays.parts, 0, parts_bytes(w))) ||
        (error = cudaMemset(arrays.samples, 0xff, samples_bytes(w))))
        return error;
    if ((error = judge_pieces(w, arena, arrays, trace, tensors)))
        return error;
    finish.parts = arrays.parts;
    finish.samples = arrays.samples;
    finish.verdicts = (struct judge_verdict *)(work + w->verdicts);
    finish.groups = w->captured.groups;
    finish.n = w->n_verdicts;
    LAUNCH(judge_finish, judge_finish_arrays, (unsigned)((w->n_verdicts + WARPS - 1) / WARPS), THREADS, 0, NULL,
           finish);
    return cudaGetLastError();
}

/* What was written comes behind the rest of the file. */
static cudaError_t judge(struct arena *arena, struct judge_work *w, const unsigned char *trace)
{
    struct judge_arrays arrays = {};
    const size_t bytes = (size_t)w->bytes, tensor_bytes = (size_t)(w->end - w->begin), written = (size_t)w->rows;
    const size_t whole = w->n_verdicts ? (size_t)(w->captured.inputs_end - w->begin) : tensor_bytes;
    cudaError_t error = arena_open(
        arena, bytes + tensor_bytes + (w->n_verdicts ? parts_bytes(w) + samples_bytes(w) : 0) + 4 * (size_t)ARENA_STEP);
    if (error)
        return error;
    unsigned char *work = arena_take(arena, bytes), *tensors = arena_take(arena, tensor_bytes);
    if ((error = cudaMemcpy(work, w, written, cudaMemcpyHostToDevice)) ||
        (error = cudaMemset(work + written, 0, bytes - written)) ||
        (error = cudaMemcpy(tensors, trace + w->begin, whole, cudaMemcpyHostToDevice)))
        return error;
    arena->copied = seconds();
    const struct judge_numbers *first = (const struct judge_numbers *)((const unsigned char *)w + w->numbers);
    arrays.numbers = (const struct judge_numbers *)(work + w->numbers);
    arrays.code = (const float *)(work + offsetof(struct judge_work, code));
    arrays.scales = (const double *)(work + w->scales);
    memcpy(arrays.stride, w->stride, sizeof arrays.stride);
    arrays.tensors = tensors - w->begin;
    for (int i = 0; i < 3; i++)
        arrays.input[i] = i < 2 && w->turned_bytes[i] ? work : arrays.tensors;
    arrays.orders = (const int32_t *)(work + w->orders);
    arrays.tiles = (const struct judge_tile *)(work + w->tiles);
    arrays.ranges = (const struct judge_range *)(work + w->ranges);
    arrays.blocks = (const struct judge_block *)(work + w->blocks);
    arrays.skips = w->n_skips ? work + w->skips : NULL;
    arrays.mask_stride = w->mask_stride;
    arrays.bias_stride = w->bias_stride;
    arrays.rows = (struct judge_row *)(work + w->rows);
    arrays.values = w->n_values ? (struct judge_value *)(work + w->values) : NULL;
    error = w->n_verdicts ? judge_captured(w, arena, arrays, trace, work, tensors - w->begin)
                          : launch_any(arrays, first, w->n_numbers, w->n_blocks);
    if (error)
        return error;
    return cudaMemcpy((unsigned char *)w + written, work + written, bytes - written, cudaMemcpyDeviceToHost);
}

#endif
