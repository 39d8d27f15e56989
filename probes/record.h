/* What the probes of attnscope.h are made of: where a block is, and one visit of a thread to a tile of a channel.
   Device code; a kernel includes attnscope.h alone. */
#ifndef ASC_RECORD_H
#define ASC_RECORD_H

#include "probes/abi.h"
#include "probes/types.h"

#ifdef ASC_NVCC
#define ASC_DEVICE __device__ __forceinline__
/* What a probe does once it records is called, not inlined: a kernel whose probes are compiled in but have nothing to
   record keeps its registers, and compiles faster. In what is called no lane may branch where another does not: ptxas
   takes the warp for diverged from there on, and the kernel's own shuffles and loops pay for it. */
#define ASC_CALLED static __device__ __attribute__((noinline))
#define ASC_CONSTANT __constant__
#define ASC_CONSTEXPR __host__ __device__ constexpr
#define ASC_UNROLL _Pragma("unroll")
#else
#define ASC_DEVICE inline __attribute__((always_inline))
#define ASC_CALLED inline __attribute__((always_inline))
#define ASC_CONSTANT
#define ASC_CONSTEXPR constexpr
#define ASC_UNROLL
#endif

/* 1: who records an element is kept beside it, where the trace has room for that. On a GPU that is another store for
   each value: capture.writers = on builds it so. */
#ifndef ASC_WRITERS
#if defined(ASC_NVCC) || (defined(SIMT_CHECKS) && SIMT_CHECKS)
#define ASC_WRITERS 0
#else
#define ASC_WRITERS 1
#endif
#endif

#if defined(ASC_NVCC) && !ASC_BUILD
#pragma nv_diag_suppress 836 /* of the lambdas by which a probe names a kernel's variables */
#endif

/* One for each translation unit, see struct asc_module. Until it is bound nothing is recorded. */
static ASC_CONSTANT struct asc_device asc_state;

#if ASC_BUILD && !(defined(ASC_NVCC) && defined(__CUDA_ARCH__))
#ifdef ASC_NVCC
static bool asc_bound;
static uint32_t asc_staging_sent[2]; /* staging_offset and staging_warps, as the device has them */
#endif

static int asc_module_bind(const asc_device *device)
{
    if (ASC_MODE != 2 && device->feed)
        return -1;
#ifdef ASC_NVCC
    asc_bound = device->batch != 0;
    asc_staging_sent[0] = device->staging_offset;
    asc_staging_sent[1] = device->staging_warps;
    return static_cast<int>(cudaMemcpyToSymbol(asc_state, device, sizeof *device));
#else
    asc_state = *device;
    return 0;
#endif
}

#ifdef ASC_NVCC
/* Only where it changes: a launch that is captured into a graph must not copy. */
static int asc_module_stage(const uint32_t window[2])
{
    if (window[0] == asc_staging_sent[0] && window[1] == asc_staging_sent[1])
        return 0;
    const cudaError_t status =
        cudaMemcpyToSymbol(asc_state, window, 2 * sizeof *window, offsetof(asc_device, staging_offset));
    if (status == cudaSuccess) {
        asc_staging_sent[0] = window[0];
        asc_staging_sent[1] = window[1];
    }
    return static_cast<int>(status);
}
static asc_module asc_module_here = {ASC_ABI_VERSION, asc_module_bind, ASC_STAGING ? asc_module_stage : nullptr,
                                     nullptr};
#else
static asc_module asc_module_here = {ASC_ABI_VERSION, asc_module_bind, nullptr, nullptr};
#endif

__attribute__((constructor)) static void asc_module_join()
{
    asc_module_add(&asc_module_here);
}
#elif !ASC_BUILD && defined(ASC_NVCC) && !defined(__CUDA_ARCH__)
/* In a program of the user's own libattnscope-capture binds the probes. It finds the record of each translation unit by
   an ELF note, in whatever object, loaded by whom and when. The address is asked of the CUDA runtime that this object
   links: another one does not know asc_state. */
static int asc_module_address(void **address)
{
    return static_cast<int>(cudaGetSymbolAddress(address, asc_state));
}
__attribute__((used)) static asc_noted_module asc_module_noted = {
    ASC_ABI_VERSION, sizeof(asc_device), ASC_MODE, 0, __BASE_FILE__, nullptr, asc_module_address};
__asm__(".pushsection .note.attnscope, \"a\", %note\n"
        ".balign 4\n.long 10, 8, 1\n.asciz \"attnscope\"\n.balign 4\n.quad _ZL16asc_module_noted - .\n"
        ".popsection");
#endif

#ifdef ASC_NVCC
/* For ASC_TWICE, on the host: whether there is anything to record. */
static inline bool asc_is_bound()
{
#ifdef __CUDA_ARCH__
    return false;
#elif ASC_BUILD
    return asc_bound;
#else
    return asc_module_noted.bound != 0;
#endif
}
#endif

/* The names that probes take: those of channels, and what ASC_VALUES adds. */
namespace asc_named
{
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) using ::asc_##id;
#include "probes/channels.def"
#undef CHANNEL
} // namespace asc_named

/* What ASC_VALUES declares: the builder finds it by this token in the preprocessor's output. */
ASC_CONSTEXPR bool asc_values_are(const char *)
{
    return true;
}
#if !ASC_BUILD && defined(ASC_NVCC) && !defined(__CUDA_ARCH__)
#define ASC_NOTE_VALUES(text)                                                                                          \
    __attribute__((constructor)) static void asc_note_values()                                                         \
    {                                                                                                                  \
        asc_module_noted.values = text;                                                                                \
    }                                                                                                                  \
    static_assert(true, "")
#else
#define ASC_NOTE_VALUES(text) static_assert(true, "")
#endif

/* Names a probe line. Every probe below expands to asc_site(::asc_named::asc_<name>, <line>): the builder finds the
   probe lines of a source by these tokens in the preprocessor's output, and the file in its line markers. */
ASC_CONSTEXPR int asc_site(int channel, int line)
{
    return line > 0 ? channel : -1;
}

enum asc_extent { asc_extent_PER_SLOT = 0, asc_extent_PER_KV = 1 };

/* A set of bits: an array that is indexed would lie in memory. */
ASC_CONSTEXPR bool asc_per_kv(int channel)
{
    constexpr uint32_t per_kv = 0
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) | uint32_t{asc_extent_##extent} << asc_##id
#include "probes/channels.def"
#undef CHANNEL
        ;
    return channel >= ASC_CHANNELS || (per_kv >> channel & 1u) != 0;
}

/* This thread's number in its block, and how many there are. */
ASC_DEVICE int asc_thread()
{
    return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
ASC_DEVICE int asc_threads()
{
    return static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
}

/* Where a block is. slot: -1 where this q tile is not recorded, -2 where the problem has no such tile. */
struct asc_place {
    int32_t slot;
};

ASC_DEVICE asc_place asc_slot_of(int32_t b, int32_t h, int32_t q_tile)
{
    const uint32_t batch = asc_state.batch, heads = asc_state.heads, q_tiles = asc_state.q_tiles;
    asc_place place = {batch ? -2 : -1};
    if (static_cast<uint32_t>(b) < batch && static_cast<uint32_t>(h) < heads && static_cast<uint32_t>(q_tile) < q_tiles)
        place.slot = asc_state.slot[(static_cast<size_t>(b) * heads + h) * q_tiles + q_tile];
    return place;
}

ASC_DEVICE asc_place asc_place_of(int32_t b, int32_t h, int32_t q_tile)
{
#ifndef ASC_NVCC
    simt_place(b, h, q_tile);
#endif
    return asc_slot_of(b, h, q_tile);
}

ASC_DEVICE asc_place asc_place_of(int32_t bh, int32_t q_tile)
{
    const int32_t heads = asc_state.heads > 0 ? asc_state.heads : 1;
    return asc_place_of(bh / heads, bh % heads, q_tile);
}

/* One visit of one thread to one tile of a channel. It lives in registers: what is called gets numbers, never its
   address. */
struct asc_visit {
    unsigned char *values; /* [rows][cols] of dtype */
    uint32_t rows, cols;   /* 0: no such tile, everything is dropped */
    int32_t dtype;         /* of the channel */
    uint32_t dropped, mistyped;
#ifndef ASC_NVCC
    int channel, recorders; /* who has recorded here before (simt_records) */
#endif
#if ASC_WRITERS
    uint32_t *writers;     /* of the tile, see abi.h; NULL: they are not kept */
    uint32_t line, number; /* of the probe; of its next value */
#endif
#if ASC_MODE == 2
    const unsigned char *fed; /* [rows][cols] of dtype; NULL: this channel is not fed */
    uint32_t unfed;
#endif
};

/* A probe's own accesses are not the kernel's: the CPU executor's checks do not see them. */
ASC_DEVICE void asc_checks_pause([[maybe_unused]] int channel, [[maybe_unused]] int32_t kv)
{
#if defined(SIMT_CHECKS) && SIMT_CHECKS
    simt_checks_pause(asc_per_kv(channel) ? kv : -1);
#endif
}
ASC_DEVICE void asc_checks_resume()
{
#if defined(SIMT_CHECKS) && SIMT_CHECKS
    simt_checks_resume();
#endif
}

ASC_DEVICE bool asc_is_recorded(asc_place place, int channel)
{
    /* Unlikely, so that the code of a probe lies out of the kernel's way. */
    return __builtin_expect(place.slot != -1, 0) && asc_state.channel[channel].dtype >= 0;
}

/* Where a tile begins; NULL: there is no such tile. */
ASC_CALLED unsigned char *asc_tile_begin(int channel, int32_t slot, int32_t kv)
{
    const asc_channel_map &map = asc_state.channel[channel];
    if (!asc_per_kv(channel))
        kv = 0;
    if (slot < 0 || static_cast<uint32_t>(kv) >= static_cast<uint32_t>(map.n_kv))
        return nullptr;
    return asc_state.trace + map.offset + slot * map.slot_stride + kv * map.kv_stride;
}

#if ASC_WRITERS && defined(ASC_NVCC)
/* Where who records a tile is kept, with this block noted; NULL: nowhere. */
ASC_CALLED uint32_t *asc_writers_begin(int channel, int32_t slot, int32_t kv)
{
    const asc_stamp_map &map = asc_state.stamp[channel];
    if (!map.writers)
        return nullptr;
    uint32_t *const writers = reinterpret_cast<uint32_t *>(asc_state.stamps + map.writers +
                                                           slot * map.writers_slot_stride + kv * map.writers_kv_stride);
    volatile uint32_t *const block = writers;
    const uint32_t x = blockIdx.x + 1, y = blockIdx.y, z = blockIdx.z, before = block[0];
    __threadfence(); /* y and z are there before x is, for the block's other threads */
    if (!before) {
        block[1] = y;
        block[2] = z;
        __threadfence();
        block[0] = x;
    } else if (before != x || block[1] != y || block[2] != z) {
        block[0] = ASC_WRITER_BLOCKS;
    }
    return writers;
}
#elif ASC_WRITERS
/* On the CPU these are called, not inlined: code that stands at every value costs more to compile than to run. */
ASC_DEVICE uint32_t *asc_writers_begin(int channel, int32_t slot, int32_t kv)
{
    return simt_writers(asc_state.stamps, asc_state.stamp + channel, slot, kv);
}
#endif

ASC_DEVICE asc_visit asc_visit_of(int channel, asc_place place, int32_t kv, [[maybe_unused]] int line)
{
    const asc_channel_map &map = asc_state.channel[channel];
    asc_visit visit = {};
    visit.dtype = map.dtype;
    visit.values = asc_tile_begin(channel, place.slot, kv);
    visit.rows = visit.values ? map.rows : 0;
    visit.cols = visit.values ? map.cols : 0;
#ifndef ASC_NVCC
    visit.channel = channel;
    if (visit.values)
        visit.recorders =
            simt_records(static_cast<size_t>(visit.values - asc_state.trace), asc_per_kv(channel) ? kv : -1);
#endif
#if ASC_WRITERS
    visit.writers = visit.values ? asc_writers_begin(channel, place.slot, asc_per_kv(channel) ? kv : 0) : nullptr;
    visit.line = line;
#endif
#if ASC_MODE == 2
    if (visit.values && asc_state.feed >> channel & 1u)
        visit.fed = asc_state.fed + (visit.values - asc_state.trace);
#endif
    return visit;
}

ASC_DEVICE asc_visit asc_open(int channel, asc_place place, int32_t kv, int line)
{
    asc_checks_pause(channel, kv);
    return asc_visit_of(channel, place, kv, line);
}

/* What follows lies in memory that threads share. */
template <class Visit> ASC_DEVICE void asc_sign_shared([[maybe_unused]] Visit &visit)
{
#if ASC_WRITERS
    visit.number = ASC_WRITER_SHARED_FROM;
#endif
}

/* Counts a value that has no place in the trace; 0: it has one. */
template <class Element> ASC_DEVICE bool asc_has_no_place(asc_visit &visit, uint32_t row, uint32_t col)
{
    const bool mistyped = asc_type<Element>::dtype != visit.dtype;
    const bool dropped = !mistyped && (row >= visit.rows || col >= visit.cols);
    visit.mistyped += mistyped;
    visit.dropped += dropped;
    return mistyped || dropped;
}

#ifndef ASC_NVCC
/* The bits of a value: compared as a number, as g++ -O1 calls memcmp for two bytes. */
template <unsigned BYTES> struct asc_bits;
template <> struct asc_bits<1> {
    using type = uint8_t;
};
template <> struct asc_bits<2> {
    using type = uint16_t;
};
template <> struct asc_bits<4> {
    using type = uint32_t;
};
template <> struct asc_bits<8> {
    using type = uint64_t;
};

/* 1: a value stands there, and another one. Codes and integers have no pattern that says that none does. */
template <class Element> ASC_DEVICE bool asc_differs(const void *there, Element value)
{
    typename asc_bits<sizeof(Element)>::type stands, recorded;
    __builtin_memcpy(&stands, there, sizeof stands);
    __builtin_memcpy(&recorded, &value, sizeof recorded);
    return sizeof(Element) > 1 && asc_type<Element>::dtype != ASC_I32 && asc_type<Element>::dtype != ASC_I64 &&
           stands != static_cast<decltype(stands)>(ASC_UNWRITTEN_64) && stands != recorded;
}

/* The element holds another value of this launch already. A copy of the value: one whose address goes elsewhere lies in
   memory, and a kernel's own, in its loops, would be slower by half. */
template <class Element> ASC_DEVICE void asc_meet(int channel, int recorders, const void *there, Element value)
{
    if (recorders && asc_differs(there, value))
        simt_two_values(channel, recorders, asc_type<Element>::dtype, there, &value);
}
#endif

/* This thread records an element that has a place: the next one of its probe. */
ASC_DEVICE void asc_sign([[maybe_unused]] const asc_visit &visit, [[maybe_unused]] uint32_t row,
                         [[maybe_unused]] uint32_t col, [[maybe_unused]] uint32_t number)
{
#if ASC_WRITERS && defined(ASC_NVCC)
    const uint32_t shown = number >= ASC_WRITER_SHARED_FROM ? ASC_WRITER_SHARED : min(number + 1, ASC_WRITER_FAR);
    if (visit.writers)
        visit.writers[ASC_WRITER_HEAD + row * visit.cols + col] =
            shown << ASC_WRITER_NUMBER | (visit.line & 1023u) << ASC_WRITER_LINE | (asc_thread() & 1023u);
#elif ASC_WRITERS
    simt_sign(visit.writers, row * visit.cols + col, number, visit.line);
#endif
}
ASC_DEVICE uint32_t asc_next_number([[maybe_unused]] asc_visit &visit)
{
#if ASC_WRITERS
    return visit.number++;
#else
    return 0;
#endif
}

template <class Element> ASC_DEVICE void asc_record(asc_visit &visit, uint32_t row, uint32_t col, const Element &value)
{
    const uint32_t number = asc_next_number(visit);
    if (asc_has_no_place<Element>(visit, row, col))
        return;
    asc_sign(visit, row, col, number);
    Element *const there = reinterpret_cast<Element *>(visit.values) + static_cast<size_t>(row) * visit.cols + col;
#ifndef ASC_NVCC
    asc_meet(visit.channel, visit.recorders, there, value);
#endif
    *there = value;
}

/* ASC_VALUE: a number of any type becomes a float where its channel is of floats. */
template <class Visit, class Element>
ASC_DEVICE void asc_record_value(Visit &visit, int channel, uint32_t row, uint32_t col, const Element &value)
{
    if (asc_code<Element>::dtype != ASC_F32 && asc_state.channel[channel].dtype == ASC_F32)
        asc_record(visit, row, col, static_cast<float>(value));
    else if constexpr (asc_code<Element>::dtype >= 0)
        asc_record(visit, row, col, value);
    else
        visit.mistyped++;
}

/* The type of what value(...) gives. */
template <class Element> struct asc_plain {
    using type = Element;
};
template <class Element> struct asc_plain<Element &> {
    using type = Element;
};
template <class Element> struct asc_plain<const Element> {
    using type = Element;
};
template <class Element> struct asc_plain<const Element &> {
    using type = Element;
};

/* Whether a fed value may take the place of what value(...) gives, and a reference that says the same. */
template <class Element> struct asc_stands {
    using type = const typename asc_plain<Element>::type &;
    static constexpr bool may_change = false;
};
template <class Element> struct asc_stands<const Element &> : asc_stands<Element> {
};
template <class Element> struct asc_stands<Element &> {
    using type = Element &;
    static constexpr bool may_change = true;
};

/* Two values, by one store where they are neighbors of a row and the first is aligned for it: fragments of mma and what
   threads share are full of them. Half the stores are two thirds of the time into device memory (0.49 of 0.74 ms for
   807 MB, H200). */
template <class Element>
ASC_DEVICE void asc_record_two(asc_visit &visit, uint32_t row, uint32_t col, uint32_t next_row, uint32_t next_col,
                               const Element &value, const Element &next)
{
#ifdef ASC_NVCC
    struct alignas(2 * sizeof(Element)) two {
        Element of[2];
    };
    const uint32_t at = row * visit.cols + col;
    if (asc_type<Element>::dtype == visit.dtype && row < visit.rows && next_row == row && next_col < visit.cols &&
        next_col == col + 1 && at % 2 == 0) {
        *reinterpret_cast<two *>(reinterpret_cast<Element *>(visit.values) + at) = two{{value, next}};
        asc_sign(visit, row, col, asc_next_number(visit));
        asc_sign(visit, next_row, next_col, asc_next_number(visit));
        return;
    }
#endif
    asc_record(visit, row, col, value);
    asc_record(visit, next_row, next_col, next);
}

#ifdef ASC_NVCC
/* n values, mostly pairs that go by one store each: they are computed side by side, and none waits for another. What
   is otherwise goes through memory of the thread, so that the kernel's own values stay in registers. */
template <class Element, int n, class Row, class Col, class Value>
ASC_DEVICE void asc_record_group(asc_visit &visit, Row row, Col col, Value value)
{
    struct alignas(2 * sizeof(Element)) two {
        Element of[2];
    };
    bool pairs = asc_type<Element>::dtype == visit.dtype;
    uint32_t at[n / 2];
    ASC_UNROLL for (int i = 0; i < n; i += 2)
    {
        const uint32_t r = row(i), c = col(i), next_row = row(i + 1), next_col = col(i + 1);
        at[i / 2] = r * visit.cols + c;
        pairs = pairs && r < visit.rows && next_row == r && next_col < visit.cols && next_col == c + 1 &&
                at[i / 2] % 2 == 0;
    }
    if (pairs) {
        ASC_UNROLL for (int i = 0; i < n; i += 2)
        {
            *reinterpret_cast<two *>(reinterpret_cast<Element *>(visit.values) + at[i / 2]) =
                two{{value(i), value(i + 1)}};
            asc_sign(visit, row(i), col(i), asc_next_number(visit));
            asc_sign(visit, row(i + 1), col(i + 1), asc_next_number(visit));
        }
        return;
    }
    Element kept[n];
    uint32_t rows[n], cols[n];
    int unknown = n;
    asm("" : "+r"(unknown));
    ASC_UNROLL for (int i = 0; i < n; i++)
    {
        kept[i] = value(i);
        rows[i] = row(i);
        cols[i] = col(i);
    }
    _Pragma("unroll 1") for (int i = 0; i < unknown; i++) asc_record(visit, rows[i], cols[i], kept[i]);
}
#endif

/* A copy of a row's value that another thread records: whether it is the same, where that one came first. */
template <class Element>
ASC_DEVICE void asc_compare([[maybe_unused]] int channel, [[maybe_unused]] asc_place place, [[maybe_unused]] int32_t kv,
                            [[maybe_unused]] uint32_t row, [[maybe_unused]] const Element &value)
{
#ifndef ASC_NVCC
    asc_checks_pause(channel, kv);
    const asc_channel_map &map = asc_state.channel[channel];
    const unsigned char *tile = asc_tile_begin(channel, place.slot, kv);
    if (tile && row < static_cast<uint32_t>(map.rows) && asc_type<Element>::dtype == map.dtype) {
        const int recorders = simt_copies(static_cast<size_t>(tile - asc_state.trace), asc_per_kv(channel) ? kv : -1);
        if (recorders & SIMT_SAME_VISIT)
            asc_meet(channel, recorders, tile + static_cast<size_t>(row) * map.cols * sizeof(Element), value);
    }
    asc_checks_resume();
#endif
}

#if ASC_MODE == 2
/* Element i of a fed tile has a value: its bits are not the never-written pattern (the NaN code 7F where a type has no
   room for one). */
template <class Element> ASC_DEVICE bool asc_holds(const unsigned char *fed, size_t i)
{
    constexpr int dtype = asc_type<Element>::dtype;
    if constexpr (dtype == ASC_U8 || dtype == ASC_S8 || dtype == ASC_I32 || dtype == ASC_I64)
        return true;
    else if constexpr (sizeof(Element) == 1)
        return fed[i] != 0x7F;
    else if constexpr (sizeof(Element) == 2)
        return reinterpret_cast<const uint16_t *>(fed)[i] != ASC_UNWRITTEN_16;
    else if constexpr (sizeof(Element) == 4)
        return reinterpret_cast<const uint32_t *>(fed)[i] != ASC_UNWRITTEN_32;
    else
        return reinterpret_cast<const uint64_t *>(fed)[i] != ASC_UNWRITTEN_64;
}

template <class Element> ASC_DEVICE void asc_feed(asc_visit &visit, uint32_t row, uint32_t col, Element &value)
{
    if (!visit.fed || asc_type<Element>::dtype != visit.dtype || row >= visit.rows || col >= visit.cols)
        return;
    const size_t i = static_cast<size_t>(row) * visit.cols + col;
    if (asc_holds<Element>(visit.fed, i))
        value = reinterpret_cast<const Element *>(visit.fed)[i];
}

/* A const value, or a result that is stored nowhere. */
template <class Element> ASC_DEVICE void asc_feed(asc_visit &visit, uint32_t, uint32_t, const Element &)
{
    visit.unfed += visit.fed != nullptr;
}

template <class Element> ASC_DEVICE void asc_probe(asc_visit &visit, uint32_t row, uint32_t col, Element &value)
{
    asc_record(visit, row, col, value);
    asc_feed(visit, row, col, value);
}

template <class Element> ASC_DEVICE void asc_probe(asc_visit &visit, uint32_t row, uint32_t col, const Element &value)
{
    asc_record(visit, row, col, value);
    asc_feed(visit, row, col, value);
}

/* The block waits where a tile that its threads share is about to change, and again until it has. The tensor cores of
   sm_90 read shared memory through another proxy, which a barrier alone does not order (PTX ISA, "Async proxy"). */
template <class Visit, class Barrier> ASC_DEVICE void asc_sync_for_feed(const Visit &visit, Barrier barrier)
{
    if (!visit.fed)
        return;
#if defined(ASC_NVCC) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    barrier();
}
#else
template <class Element> ASC_DEVICE void asc_feed(asc_visit &, uint32_t, uint32_t, const Element &) {}

template <class Element> ASC_DEVICE void asc_probe(asc_visit &visit, uint32_t row, uint32_t col, const Element &value)
{
    asc_record(visit, row, col, value);
}

template <class Visit, class Barrier> ASC_DEVICE void asc_sync_for_feed(const Visit &, Barrier) {}
#endif

/* A tile that `threads` threads share, whose rows are of whole pieces of 16 bytes: this one, number `thread`, records
   every so many of them, each by one store. False: the tile is another, and nothing is recorded. */
template <class Value>
ASC_DEVICE bool asc_share_pieces([[maybe_unused]] asc_visit &visit, [[maybe_unused]] int rows,
                                 [[maybe_unused]] int cols, [[maybe_unused]] int thread, [[maybe_unused]] int threads,
                                 [[maybe_unused]] Value value)
{
#if defined(ASC_NVCC) && ASC_MODE == 1
    using Element = typename asc_plain<decltype(value(0, 0))>::type;
    constexpr int n = sizeof(Element) > 1 ? 16 / sizeof(Element) : 8; /* 16 values of a byte are too much code */
    struct alignas(n * sizeof(Element)) piece {
        Element of[n];
    };
    if (cols % n || visit.cols % n || static_cast<uint32_t>(cols) > visit.cols ||
        static_cast<uint32_t>(rows) > visit.rows || asc_type<Element>::dtype != visit.dtype ||
        reinterpret_cast<size_t>(visit.values) % sizeof(piece))
        return false;
    /* Unsigned, and n times a number: the compiler sees that the elements of a piece are neighbors wherever value's own
       address keeps them together, and loads them at once. */
    const uint32_t across = static_cast<uint32_t>(cols) / n, all = rows * across;
    for (uint32_t at = thread; at < all; at += threads) {
        const uint32_t row = at / across, col = at % across * n;
        piece values;
        ASC_UNROLL for (int i = 0; i < n; i++) values.of[i] = value(static_cast<int>(row), static_cast<int>(col + i));
        *reinterpret_cast<piece *>(reinterpret_cast<Element *>(visit.values) + row * visit.cols + col) = values;
        ASC_UNROLL for (int i = 0; i < n; i++) asc_sign(visit, row, col + i, asc_next_number(visit));
    }
    return true;
#else
    return false;
#endif
}
template <class Visit, class Value> ASC_DEVICE bool asc_share_pieces(Visit &, int, int, int, int, Value)
{
    return false;
}

/* A tile that `threads` threads share: this one, number `thread`, records (and feeds) every so many pairs of its
   elements. */
template <class Visit, class Value>
ASC_DEVICE void asc_share(Visit &visit, int rows, int cols, int thread, int threads, Value value)
{
    using Element = typename asc_plain<decltype(value(0, 0))>::type;
    const int all = rows * cols;
    asc_sign_shared(visit);
    if (asc_share_pieces(visit, rows, cols, thread, threads, value))
        return;
    for (int e = 2 * thread; e < all; e += 2 * threads) {
        const int row = e / cols, col = e % cols, next_row = (e + 1) / cols, next_col = (e + 1) % cols;
        if (e + 1 == all) {
            asc_probe(visit, row, col, value(row, col));
            return;
        }
        auto &&one = value(row, col), &&next = value(next_row, next_col);
        asc_record_two<Element>(visit, row, col, next_row, next_col, one, next);
        asc_feed(visit, row, col, one);
        asc_feed(visit, next_row, next_col, next);
    }
}

template <class Value>
ASC_DEVICE void asc_record_shared(asc_visit &visit, int rows, int cols, int thread, int threads, Value value)
{
    asc_share(visit, rows, cols, thread, threads, value);
}

/* In PTX: atomicAdd() would have the warp add up first, and branch. */
ASC_DEVICE void asc_count(uint64_t *counter, uint32_t n)
{
#ifdef ASC_NVCC
    if (n)
        asm volatile("red.global.add.u64 [%0], %1;" ::"l"(counter), "l"(static_cast<uint64_t>(n)) : "memory");
#else
    if (n)
        __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
#endif
}

/* What a visit could not do with its values. */
struct asc_lost {
    uint32_t dropped, mistyped, unfed;
};
template <class Visit> ASC_DEVICE asc_lost asc_lost_by(const Visit &visit)
{
#if ASC_MODE == 2
    return {visit.dropped, visit.mistyped, visit.unfed};
#else
    return {visit.dropped, visit.mistyped, 0};
#endif
}
ASC_DEVICE void asc_count_lost(int channel, asc_lost lost)
{
    asc_count(asc_state.dropped + channel, lost.dropped);
    asc_count(asc_state.mistyped + channel, lost.mistyped);
#if ASC_MODE == 2
    asc_count(asc_state.unfed + channel, lost.unfed);
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

/* Ends a visit: the stamp comes after the values, so a visit that died half way has none. All lanes present write it,
   of several groups of a diverged warp any may be the last. One call does it all: three of them are a tenth of the time
   that recording (2,8,2048,64) takes. */
ASC_CALLED void asc_end(int channel, int32_t slot, int32_t kv, asc_lost lost, bool there)
{
    asc_count_lost(channel, lost);
    const asc_stamp_map &map = asc_state.stamp[channel];
    const uint32_t warp = asc_thread() / 32;
    unsigned char *const tile =
        asc_state.stamps + map.offset + slot * map.slot_stride + (asc_per_kv(channel) ? kv : 0) * map.kv_stride;
    const uint64_t now = asc_clock();
    if (there && warp < static_cast<uint32_t>(asc_state.warps))
        reinterpret_cast<volatile uint64_t *>(tile)[warp] = now;
}

ASC_DEVICE void asc_close(int channel, asc_place place, int32_t kv, const asc_visit &visit)
{
    asc_end(channel, place.slot, kv, asc_lost_by(visit), visit.values != nullptr);
    asc_checks_resume();
}

#endif
