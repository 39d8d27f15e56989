/* How the values that a thread holds reach the pinned trace. Over PCIe a store costs what its widest contiguous piece
   makes of it: measured on an H200, a warp that writes 128 bytes side by side reaches 52.7 GB/s, 64 bytes 45, 32 bytes
   25, and single floats apart (the accumulators of mma.sync, a row per lane) 2 to 3. So each warp has a window of
   shared memory behind the kernel's own, lays its values there as the tile has them, and sends the window line by line.
   ASC_LAUNCH makes the room; without it, in a diverged warp and where lanes work on different tiles, values go out as
   they are. */
#ifndef PROBES_STAGING_H
#define PROBES_STAGING_H

#include "probes/record.h"

#define ASC_NOWHERE 0xffffffffu

/* The place of an element in its tile, in bytes. */
template <class T> ASC_DEVICE uint32_t asc_at(const asc_visit &visit, uint32_t row, uint32_t col)
{
    return asc_type<T>::dtype == visit.dtype && row < visit.rows && col < visit.cols
               ? (row * visit.cols + col) * static_cast<uint32_t>(sizeof(T))
               : ASC_NOWHERE;
}

#ifdef ASC_NVCC

#define ASC_WINDOW 2048u             /* bytes of a tile that a warp brings together at once */
#define ASC_STAGE (ASC_WINDOW + 128) /* and a bit for each two of them: written */
#define ASC_ALL 0xffffffffu

/* All dynamic shared memory of a block begins here, the kernel's own first. */
extern __shared__ __align__(16) unsigned char asc_shared[];

/* Room behind `own` bytes of dynamic shared memory for every warp of the block, if there is some: how many bytes to
   launch with. */
static size_t asc_make_room(const void *kernel, dim3 block, size_t own)
{
    const uint32_t warps = (block.x * block.y * block.z + 31) / 32;
    uint32_t want[2] = {static_cast<uint32_t>((own + 127) / 128 * 128), warps};
    cudaFuncAttributes attributes;
    int device = 0, limit = 0;
    const size_t all = want[0] + warps * ASC_STAGE;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess || cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess ||
        attributes.sharedSizeBytes + all > static_cast<size_t>(limit))
        want[1] = 0;
    /* Only where it changes: a launch that is captured into a graph must not copy. */
    if ((want[0] != asc_told[0] || want[1] != asc_told[1]) &&
        cudaMemcpyToSymbol(asc_state, want, sizeof want, offsetof(asc_device, staging_offset)) != cudaSuccess)
        return own;
    asc_told[0] = want[0];
    asc_told[1] = want[1];
    return want[1] ? all : own;
}

/* This warp's window onto the tile at `values`. NULL where there is none; where lanes are missing: to wait for them
   would be to synchronise; where a lane records another tile: a window holds elements of one. */
ASC_DEVICE unsigned char *asc_window(const unsigned char *values)
{
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), warp = thread / 32;
    if (warp >= asc_state.staging_warps || __activemask() != ASC_ALL)
        return nullptr;
    const unsigned long long tile = reinterpret_cast<unsigned long long>(values);
    if (!__all_sync(ASC_ALL, tile == __shfl_sync(ASC_ALL, tile, 0)))
        return nullptr;
    return asc_shared + asc_state.staging_offset + warp * ASC_STAGE;
}

ASC_DEVICE uint32_t *asc_written(unsigned char *window)
{
    return reinterpret_cast<uint32_t *>(window + ASC_WINDOW);
}

template <class T> ASC_DEVICE void asc_lay(unsigned char *window, uint32_t at, const T &value)
{
    *reinterpret_cast<T *>(window + at) = value;
    atomicOr(asc_written(window) + at / 64, (sizeof(T) == 4 ? 3u : 1u) << at / 2 % 32);
}

/* Empties the window: `values` is where its first byte goes. All lanes of the warp. */
ASC_CALLED void asc_send(unsigned char *window, unsigned char *values)
{
    const uint32_t lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
    __syncwarp();
    for (uint32_t line = 0; line < ASC_WINDOW; line += 128) {
        const uint32_t at = line + 4 * lane, there = asc_written(window)[at / 64] >> at / 2 % 32 & 3u;
        if (there == 3u)
            *reinterpret_cast<uint32_t *>(values + at) = *reinterpret_cast<const uint32_t *>(window + at);
        else if (there)
            *reinterpret_cast<uint16_t *>(values + at + there / 2 * 2) =
                *reinterpret_cast<const uint16_t *>(window + at + there / 2 * 2);
    }
    __syncwarp();
    asc_written(window)[lane] = 0;
    __syncwarp();
}

ASC_DEVICE uint32_t asc_warp_min(uint32_t x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(ASC_ALL, x);
#else
    for (int d = 16; d > 0; d /= 2)
        x = min(x, __shfl_xor_sync(ASC_ALL, x, d));
    return x;
#endif
}

/* The same as asc_record() for each, by way of the window. */
template <class T, class Row, class Col, class Value>
ASC_DEVICE void asc_stage(asc_visit &visit, unsigned char *window, const int n, Row row, Col col, Value value)
{
    asc_written(window)[(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32] = 0;
    for (uint32_t from = 0;;) {
        uint32_t first = ASC_NOWHERE;
        ASC_UNROLL for (int i = 0; i < n; i++)
        {
            const uint32_t at = asc_at<T>(visit, row(i), col(i));
            if (at >= from)
                first = min(first, at);
        }
        first = asc_warp_min(first);
        if (first == ASC_NOWHERE)
            return;
        first = first / 128 * 128;
        ASC_UNROLL for (int i = 0; i < n; i++)
        {
            const uint32_t at = asc_at<T>(visit, row(i), col(i));
            if (at - first < ASC_WINDOW)
                asc_lay(window, at - first, value(i));
        }
        asc_send(window, visit.values + first);
        from = first + ASC_WINDOW;
    }
}
#endif

/* What an element of ASC_FRAGMENT's map says: 32 * row + column, in whatever type the fragment has. */
template <class T> ASC_DEVICE int asc_map_at(const T &element)
{
    return static_cast<int>(static_cast<float>(element));
}

template <class T> struct asc_plain {
    using type = T;
};
template <class T> struct asc_plain<T &> {
    using type = T;
};
template <class T> struct asc_plain<const T> {
    using type = T;
};
template <class T> struct asc_plain<const T &> {
    using type = T;
};

/* Records (and feeds) value(0) .. value(n - 1) at (row(i), col(i)). n is a constant once this is inlined, so that value
   may stand for an array in registers. */
template <class Row, class Col, class Value>
ASC_DEVICE void asc_each(asc_visit &visit, const int n, Row row, Col col, Value value)
{
    using T = typename asc_plain<decltype(value(0))>::type;
    bool staged = false;
#ifdef ASC_NVCC
    if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
        unsigned char *const window = n > 1 ? asc_window(visit.values) : nullptr;
        staged = window != nullptr;
        if (staged)
            asc_stage<T>(visit, window, n, row, col, value);
    }
#endif
    if (staged) {
        ASC_UNROLL for (int i = 0; i < n; i++) asc_refuse<T>(visit, row(i), col(i));
    } else {
        ASC_UNROLL for (int i = 0; i < n; i++) asc_record(visit, row(i), col(i), value(i));
    }
#if ASC_MODE == 2
    ASC_UNROLL for (int i = 0; i < n; i++) asc_feed(visit, row(i), col(i), value(i));
#endif
}

#endif
