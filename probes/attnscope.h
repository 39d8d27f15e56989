/* All that a kernel includes. The file is compiled by nvcc (CUDA 12.4 or later, C++17) for the GPU, and by a C++
   compiler behind the CPU executor's simt_device.h for the CPU.

     ASC_TILE(b, h, qt);                              this block works on batch b, head h, q tile qt
     ASC_EACH(ch, kv_tile, n, row, col, value);       each thread has n values; the macro supplies i
     ASC_ROW(ch, kv_tile, row, value);                each thread has the value of one row
     ASC_ROW_ALL(ch, kv_tile, row, records, value);   each thread has a copy of a row's value; one of them records it
     ASC_BLOCK(ch, kv_tile, rows, cols, value);       the block's threads share the work; the macro supplies r and c
     ASC_FRAGMENT(ch, kv_tile, row0, col0, map, f);   each warp has a WMMA accumulator f that begins at (row0, col0);
                                                      map.x[i] is 32 * row + column of f.x[i]
     ASC_FRAGMENT_MAP(map, rows, cols, scratch, T);   declares that map, a fragment of type T as f is one

   ch is a name of channels.def, bare: ASC_EACH(s, j, 4, row0 + i / 2, col0 + i % 2, acc[i]). row and col count within
   the tile. kv_tile is the index of the kv tile, and ignored (pass 0) for channels that exist once per q tile. value is
   an lvalue of float, double, __half, __nv_bfloat16, __nv_fp8_e4m3, __nv_fp8_e5m2, uint8_t, int32_t or int64_t
   (ASC_TYPE adds a name for one of them); its bits are recorded as they are.

   A persistent kernel writes ASC_TILE again for every work item, in the scope of that item; so does a device function
   that holds probes of its own.

   CUDA does not tell which elements of a fragment a lane has. A tile whose elements say where they are, loaded as a
   fragment, does: ASC_FRAGMENT_MAP stands once, ahead of the probes that use the map. rows x cols is the shape of the
   fragment; scratch is shared memory of the warp's own for rows * cols elements, aligned to 32 bytes, that is not in
   use yet. It is no probe, the warp meets in it. A kernel that has such a map for its own purposes hands over that.

   Recording never synchronises: a probe with a barrier hides the missing barrier that it should show. ASC_BLOCK reads
   what other threads wrote, so it stands where the kernel itself may read it: behind the barrier that publishes the
   tile and before the one that frees it.

   Whatever a probe is given, it writes nowhere but into its own tile of the trace: values beyond the tile are counted
   as dropped, values of another type than the channel's as mistyped.

   ASC_MODE 0 (default): every probe is gone. ASC_MODE 1: probes record. ASC_MODE 2: probes record, and those of the
   channels that are fed then overwrite `value` in place with that element of a second trace; an element that the second
   trace does not hold, and a value that is const, stay as they are. The kernel must go on with `value` itself: a copy
   made before the probe is not fed. Of a row's value that several threads hold, ASC_ROW_ALL feeds every copy.

   Feeding, and nothing else, synchronises: in an ASC_BLOCK whose channel is fed all threads of the block pass two
   __syncthreads(), before the tile changes and before it is used. The other probes change what the calling thread alone
   has in hand; a value of theirs in shared memory is published by the kernel's own barrier behind the probe. */
#ifndef PROBES_ATTNSCOPE_H
#define PROBES_ATTNSCOPE_H

#include "probes/abi.h"

#if !defined(__CUDACC__) && !defined(SIMT_HOST)
#error "attnscope.h is for nvcc, or for a C++ compiler behind the CPU executor's simt_device.h"
#endif

/* simt_device.h defines __CUDACC__ too, for the user's code. */
#ifndef SIMT_HOST
#define ASC_NVCC
#endif

#ifndef ASC_MODE
#define ASC_MODE 0
#endif

/* 1: ASC_KERNEL exports its registration. Off in release builds, where several kernels share one program. */
#ifndef ASC_REGISTER
#define ASC_REGISTER ASC_MODE
#endif

/* attnscope builds for one run, and recompiles at every change: a kernel that asks which of its instances that run can
   need is built several times faster.

     if constexpr (asc_built_for(DTYPE_F16, 64))
         if (problem->dtype == DTYPE_F16 && problem->head_dim == 64)
             return run<__half, 64>(problem, stream);

   Everywhere else than in such a build it is true for all. */
#ifndef ASC_ONLY_DTYPE
#define ASC_ONLY_DTYPE (-1)
#endif
#ifndef ASC_ONLY_HEAD_DIM
#define ASC_ONLY_HEAD_DIM 0
#endif
constexpr bool asc_built_for(int dtype, int head_dim)
{
    return (ASC_ONLY_DTYPE < 0 || ASC_ONLY_DTYPE == dtype) && (!ASC_ONLY_HEAD_DIM || ASC_ONLY_HEAD_DIM == head_dim);
}

#if ASC_MODE == 0

#define ASC_TILE(...) ((void)0)
#define ASC_EACH(...) ((void)0)
#define ASC_ROW(...) ((void)0)
#define ASC_ROW_ALL(...) ((void)0)
#define ASC_BLOCK(...) ((void)0)
#define ASC_FRAGMENT(...) ((void)0)
#define ASC_FRAGMENT_MAP(...) ((void)0)
#define ASC_TYPE(type, code)

#if ASC_REGISTER
extern "C" int asc_bind(const struct asc_device *)
{
    return 0;
}
#endif

#else /* ASC_MODE */

#ifdef ASC_NVCC
#define ASC_DEVICE __device__ __forceinline__
#define ASC_CONSTANT __constant__
#define ASC_CONSTEXPR __host__ __device__ constexpr
#define ASC_UNROLL _Pragma("unroll")
#else
#define ASC_DEVICE inline __attribute__((always_inline))
#define ASC_CONSTANT
#define ASC_CONSTEXPR constexpr
#define ASC_UNROLL
#endif

/* One per debuggee, which is one translation unit. */
static ASC_CONSTANT struct asc_device asc_state;

/* Hands the probes what they write through, before each launch. 0, or the CUDA error; -1 where probes that only record
   are asked to feed. */
extern "C" int asc_bind(const struct asc_device *device)
{
    if (ASC_MODE != 2 && device->feed)
        return -1;
#ifdef ASC_NVCC
    return static_cast<int>(cudaMemcpyToSymbol(asc_state, device, sizeof *device));
#else
    asc_state = *device;
    return 0;
#endif
}

/* Types are only declared here, so that a kernel includes the CUDA headers it needs and no others. */
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

template <class T> struct asc_type {
    static_assert(sizeof(T) == 0,
                  "attnscope can not record this type; ASC_TYPE(type, DTYPE_F16) says what its bits are");
};
/* Says, at namespace scope, which element type the bits of a C++ type are. */
#define ASC_TYPE(type, code)                                                                                           \
    template <> struct asc_type<type> {                                                                                \
        static constexpr int dtype = code;                                                                             \
    }
ASC_TYPE(__half, DTYPE_F16);
ASC_TYPE(__nv_bfloat16, DTYPE_BF16);
ASC_TYPE(float, DTYPE_F32);
ASC_TYPE(double, DTYPE_F64);
ASC_TYPE(__nv_fp8_e4m3, DTYPE_E4M3);
ASC_TYPE(__nv_fp8_e5m2, DTYPE_E5M2);
ASC_TYPE(unsigned char, DTYPE_U8);
ASC_TYPE(int, DTYPE_I32);
ASC_TYPE(long, DTYPE_I64);
ASC_TYPE(long long, DTYPE_I64);

/* Names a probe line. Every probe below expands to asc_site(asc_<channel>, <line>): the builder finds the probe lines
   of a source by these tokens in the preprocessor's output, and the file in its line markers. */
ASC_CONSTEXPR int asc_site(int channel, int line)
{
    return line > 0 ? channel : -1;
}

enum asc_extent { asc_extent_PER_SLOT, asc_extent_PER_KV };

ASC_CONSTEXPR bool asc_per_kv(int channel)
{
    constexpr asc_extent extents[ASC_CHANNELS] = {
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) asc_extent_##extent,
#include "probes/channels.def"
#undef CHANNEL
    };
    return extents[channel] == asc_extent_PER_KV;
}

/* Where a block is. slot: -1 where this q tile is not recorded, -2 where the problem has no such tile. */
struct asc_place {
    int32_t slot;
};

ASC_DEVICE asc_place asc_find(int32_t b, int32_t h, int32_t q_tile)
{
    const uint32_t batch = asc_state.batch, heads = asc_state.heads, q_tiles = asc_state.q_tiles;
    asc_place place = {-2};
    if (static_cast<uint32_t>(b) < batch && static_cast<uint32_t>(h) < heads && static_cast<uint32_t>(q_tile) < q_tiles)
        place.slot = asc_state.slot[(static_cast<size_t>(b) * heads + h) * q_tiles + q_tile];
    return place;
}

/* One visit of one thread to one tile of a channel. */
struct asc_visit {
    unsigned char *values;    /* [rows][cols] of dtype */
    volatile uint64_t *stamp; /* of this warp; NULL: the tile or the warp has no place in the trace */
    uint32_t rows, cols;      /* 0: no such tile, everything is dropped */
    int32_t dtype;            /* -1: nothing to record here */
    uint32_t dropped, mistyped;
#if ASC_MODE == 2
    const unsigned char *fed; /* [rows][cols] of dtype; NULL: this channel is not fed */
    uint32_t unfed;
#endif
};

template <int CH> ASC_DEVICE asc_visit asc_open(asc_place place, int32_t kv)
{
    const asc_channel_map &map = asc_state.channel[CH];
    asc_visit visit = {};
    visit.dtype = place.slot == -1 ? -1 : map.dtype;
    if (!asc_per_kv(CH))
        kv = 0;
    if (visit.dtype < 0 || place.slot < 0 || static_cast<uint32_t>(kv) >= static_cast<uint32_t>(map.n_kv))
        return visit;
    visit.values = asc_state.trace + map.offset + place.slot * map.slot_stride + kv * map.kv_stride;
    visit.rows = map.rows;
    visit.cols = map.cols;
#if ASC_MODE == 2
    if (asc_state.feed >> CH & 1u)
        visit.fed = asc_state.fed + (visit.values - asc_state.trace);
#endif
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), warp = thread / 32;
    if (warp < static_cast<uint32_t>(asc_state.warps)) {
        const asc_stamp_map &stamps = asc_state.stamp[CH];
        visit.stamp = reinterpret_cast<uint64_t *>(asc_state.trace + stamps.offset + place.slot * stamps.slot_stride +
                                                   kv * stamps.kv_stride) +
                      warp;
    }
    return visit;
}

template <class T> ASC_DEVICE void asc_record(asc_visit &visit, uint32_t row, uint32_t col, const T &value)
{
    if (asc_type<T>::dtype != visit.dtype)
        visit.mistyped++;
    else if (row >= visit.rows || col >= visit.cols)
        visit.dropped++;
    else
        reinterpret_cast<T *>(visit.values)[static_cast<size_t>(row) * visit.cols + col] = value;
}

#if ASC_MODE == 2
/* Element i of a fed tile has a value: its bits are not the never-written pattern (the NaN code 7F where a type has no
   room for one). */
template <class T> ASC_DEVICE bool asc_holds(const unsigned char *fed, size_t i)
{
    constexpr int dtype = asc_type<T>::dtype;
    if constexpr (dtype == DTYPE_U8 || dtype == DTYPE_I32 || dtype == DTYPE_I64)
        return true;
    else if constexpr (sizeof(T) == 1)
        return fed[i] != 0x7F;
    else if constexpr (sizeof(T) == 2)
        return reinterpret_cast<const uint16_t *>(fed)[i] != UNWRITTEN_16;
    else if constexpr (sizeof(T) == 4)
        return reinterpret_cast<const uint32_t *>(fed)[i] != UNWRITTEN_32;
    else
        return reinterpret_cast<const uint64_t *>(fed)[i] != UNWRITTEN_64;
}

template <class T> ASC_DEVICE void asc_feed(asc_visit &visit, uint32_t row, uint32_t col, T &value)
{
    if (!visit.fed || asc_type<T>::dtype != visit.dtype || row >= visit.rows || col >= visit.cols)
        return;
    const size_t i = static_cast<size_t>(row) * visit.cols + col;
    if (asc_holds<T>(visit.fed, i))
        value = reinterpret_cast<const T *>(visit.fed)[i];
}

/* A const value, or a result that is stored nowhere. */
template <class T> ASC_DEVICE void asc_feed(asc_visit &visit, uint32_t, uint32_t, const T &)
{
    visit.unfed += visit.fed != nullptr;
}

template <class T> ASC_DEVICE void asc_probe(asc_visit &visit, uint32_t row, uint32_t col, T &value)
{
    asc_record(visit, row, col, value);
    asc_feed(visit, row, col, value);
}

template <class T> ASC_DEVICE void asc_probe(asc_visit &visit, uint32_t row, uint32_t col, const T &value)
{
    asc_record(visit, row, col, value);
    asc_feed(visit, row, col, value);
}

/* The block waits where a tile that its threads share is about to change, and again until it has. The tensor cores of
   sm_90 read shared memory through another proxy, which a barrier alone does not order (PTX ISA, "Async proxy"). */
ASC_DEVICE void asc_meet(const asc_visit &visit)
{
    if (!visit.fed)
        return;
#if defined(ASC_NVCC) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
}
#else
template <class T> ASC_DEVICE void asc_feed(asc_visit &, uint32_t, uint32_t, const T &) {}

template <class T> ASC_DEVICE void asc_probe(asc_visit &visit, uint32_t row, uint32_t col, const T &value)
{
    asc_record(visit, row, col, value);
}

ASC_DEVICE void asc_meet(const asc_visit &) {}
#endif

ASC_DEVICE void asc_count(uint64_t *counter, uint32_t n)
{
#ifdef ASC_NVCC
    atomicAdd(reinterpret_cast<unsigned long long *>(counter), static_cast<unsigned long long>(n));
#else
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
#endif
}

/* The clock of a stamp: block-local (an SM runs a block to its end), never 0. */
ASC_DEVICE uint64_t asc_clock()
{
#ifdef ASC_NVCC
    const uint64_t now = clock64();
    return now ? now : 1;
#else
    return simt_clock();
#endif
}

/* Ends a visit: the stamp comes after the values, so a visit that died half way has none. */
template <int CH> ASC_DEVICE void asc_close(const asc_visit &visit)
{
    if (visit.dropped)
        asc_count(asc_state.dropped + CH, visit.dropped);
    if (visit.mistyped)
        asc_count(asc_state.mistyped + CH, visit.mistyped);
#if ASC_MODE == 2
    if (visit.unfed)
        asc_count(asc_state.unfed + CH, visit.unfed);
#endif
    if (visit.stamp) {
#ifdef ASC_NVCC
        /* One lane of those present; with several groups of a diverged warp any of them may win. */
        const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        if (static_cast<uint32_t>(__ffs(static_cast<int>(__activemask()))) != thread % 32 + 1)
            return;
#endif
        *visit.stamp = asc_clock();
    }
}

/* The channel's name is pasted in each macro itself: passed on, it would be expanded first, and names as short as `m`
   or `l` may well be macros of the kernel's. value is the variadic part, since it may hold commas. */
#define ASC_TILE(b, h, qt) [[maybe_unused]] const asc_place asc_here = asc_find((b), (h), (qt))

#define ASC_EACH(ch, kv_tile, n, row, col, ...)                                                                        \
    do {                                                                                                               \
        constexpr int asc_ch = asc_site(asc_##ch, __LINE__);                                                           \
        asc_visit asc_now = asc_open<asc_ch>(asc_here, (kv_tile));                                                     \
        if (asc_now.dtype >= 0) {                                                                                      \
            const int asc_n = (n);                                                                                     \
            ASC_UNROLL for (int i = 0; i < asc_n; i++) asc_probe(asc_now, (row), (col), __VA_ARGS__);                  \
            asc_close<asc_ch>(asc_now);                                                                                \
        }                                                                                                              \
    } while (0)

#define ASC_ROW(ch, kv_tile, row, ...)                                                                                 \
    do {                                                                                                               \
        constexpr int asc_ch = asc_site(asc_##ch, __LINE__);                                                           \
        asc_visit asc_now = asc_open<asc_ch>(asc_here, (kv_tile));                                                     \
        if (asc_now.dtype >= 0) {                                                                                      \
            asc_probe(asc_now, (row), 0, __VA_ARGS__);                                                                 \
            asc_close<asc_ch>(asc_now);                                                                                \
        }                                                                                                              \
    } while (0)

/* Where nothing is fed, the copies have nothing to do. */
#define ASC_ROW_ALL(ch, kv_tile, row, records, ...)                                                                    \
    do {                                                                                                               \
        constexpr int asc_ch = asc_site(asc_##ch, __LINE__);                                                           \
        const bool asc_records = (records);                                                                            \
        if (asc_records || ASC_MODE == 2) {                                                                            \
            asc_visit asc_now = asc_open<asc_ch>(asc_here, (kv_tile));                                                 \
            if (asc_now.dtype >= 0 && asc_records) {                                                                   \
                asc_probe(asc_now, (row), 0, __VA_ARGS__);                                                             \
                asc_close<asc_ch>(asc_now);                                                                            \
            } else if (asc_now.dtype >= 0) {                                                                           \
                asc_feed(asc_now, (row), 0, __VA_ARGS__);                                                              \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#define ASC_BLOCK(ch, kv_tile, rows, cols, ...)                                                                        \
    do {                                                                                                               \
        constexpr int asc_ch = asc_site(asc_##ch, __LINE__);                                                           \
        asc_visit asc_now = asc_open<asc_ch>(asc_here, (kv_tile));                                                     \
        if (asc_now.dtype >= 0) {                                                                                      \
            asc_meet(asc_now);                                                                                         \
            const int asc_rows = (rows), asc_cols = (cols), asc_step = blockDim.x * blockDim.y * blockDim.z;           \
            for (int asc_i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);                      \
                 asc_i < asc_rows * asc_cols; asc_i += asc_step) {                                                     \
                const int r = asc_i / asc_cols, c = asc_i % asc_cols;                                                  \
                asc_probe(asc_now, r, c, __VA_ARGS__);                                                                 \
            }                                                                                                          \
            asc_close<asc_ch>(asc_now);                                                                                \
            asc_meet(asc_now);                                                                                         \
        }                                                                                                              \
    } while (0)

#define ASC_FRAGMENT(ch, kv_tile, row0, col0, map, ...)                                                                \
    do {                                                                                                               \
        constexpr int asc_ch = asc_site(asc_##ch, __LINE__);                                                           \
        asc_visit asc_now = asc_open<asc_ch>(asc_here, (kv_tile));                                                     \
        if (asc_now.dtype >= 0) {                                                                                      \
            const int asc_n = static_cast<int>((map).num_elements);                                                    \
            ASC_UNROLL for (int asc_i = 0; asc_i < asc_n; asc_i++)                                                     \
            {                                                                                                          \
                const int asc_at = static_cast<int>(static_cast<float>((map).x[asc_i]));                               \
                asc_probe(asc_now, (row0) + asc_at / 32, (col0) + asc_at % 32, (__VA_ARGS__).x[asc_i]);                \
            }                                                                                                          \
            asc_close<asc_ch>(asc_now);                                                                                \
        }                                                                                                              \
    } while (0)

#define ASC_FRAGMENT_MAP(map, rows, cols, scratch, ...)                                                                \
    __VA_ARGS__ map;                                                                                                   \
    do {                                                                                                               \
        auto *const asc_scratch = (scratch);                                                                           \
        const int asc_thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);                    \
        for (int asc_i = asc_thread % 32; asc_i < (rows) * (cols); asc_i += 32)                                        \
            asc_scratch[asc_i] = static_cast<float>(asc_i / (cols)*32 + asc_i % (cols));                               \
        __syncwarp();                                                                                                  \
        nvcuda::wmma::load_matrix_sync(map, asc_scratch, (cols), nvcuda::wmma::mem_row_major);                         \
        __syncwarp();                                                                                                  \
    } while (0)

#endif /* ASC_MODE */

/* Registration, once per debuggee, at the bottom of the file:

     ASC_KERNEL(my_attention)
     {
         kernel.plan = plan;
         kernel.launch = launch;
         kernel.dtypes = ASC_TAKES(F16) | ASC_TAKES(BF16);
     }

   Fields that are not set keep the defaults of abi.h. */
#if ASC_REGISTER
#define ASC_KERNEL(name)                                                                                               \
    extern "C" {                                                                                                       \
    extern const char asc_kernel_name[];                                                                               \
    const char asc_kernel_name[] = #name;                                                                              \
    }                                                                                                                  \
    extern "C" void asc_describe(struct asc_kernel &kernel)
#else
#define ASC_KERNEL(name) [[maybe_unused]] static void asc_describe_##name(struct asc_kernel &kernel)
#endif

#define ASC_TAKES(type) (1u << DTYPE_##type)

/* ASC_LAUNCH((kernel<64, true>), grid, block, shared_bytes, stream, arguments...) launches, and is NULL or a sentence
   that says what failed. */
#ifdef ASC_NVCC
template <class... P, class... A>
const char *asc_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, void *stream,
                       A... args)
{
    cudaError_t status = cudaSuccess;
#if ASC_REGISTER
    const unsigned blocks[3] = {grid.x, grid.y, grid.z}, threads[3] = {block.x, block.y, block.z};
    asc_launching(name, reinterpret_cast<const void *>(kernel), blocks, threads, shared_bytes);
#endif
    /* More than 48 KiB must be asked for (CUDA C++ Programming Guide, "Shared Memory" of each compute capability). */
    if (shared_bytes > 48 * 1024)
        status =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (status == cudaSuccess) {
        kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(stream)>>>(args...);
        status = cudaGetLastError();
    }
    if (status == cudaSuccess)
        return nullptr;
#if ASC_REGISTER
    return asc_launch_failure(static_cast<int>(status));
#else
    (void)name;
    return cudaGetErrorString(status);
#endif
}
#else
template <class Kernel, class... A>
const char *asc_launch(const char *name, Kernel *kernel, dim3 grid, dim3 block, size_t shared_bytes, void *, A... args)
{
    return simt_launch_kernel(name, kernel, grid, block, shared_bytes, args...) == 0 ? nullptr : simt_error();
}
#endif
#define ASC_LAUNCH(kernel, grid, block, ...) asc_launch(#kernel, kernel, grid, block, __VA_ARGS__)

#endif
