/* How the values that a thread holds reach the pinned trace. Over PCIe a store costs what its widest contiguous piece
   makes of it: measured on an H200, a warp that writes 128 bytes side by side reaches 52.7 GB/s, 64 bytes 45, 32 bytes
   25, and single floats apart (the accumulators of mma.sync, a row per lane) 2 to 3. So each warp has a window of
   shared memory behind the kernel's own, lays its values there as the tile has them, and sends the window line by line.
   A debuggee's launches make the room (engine/gpu/launches.c); without it, in a diverged warp and where lanes work on
   different tiles, values go out as they are. It is twice as much code, and its shuffles cost a kernel registers even
   where nothing is recorded: only builds whose probes write to pinned memory have it (ASC_STAGING). */
#ifndef ASC_STAGING_H
#define ASC_STAGING_H

#include "probes/record.h"

#define ASC_NOWHERE 0xffffffffu

/* The place of an element in its tile, in bytes. */
template <class Element> ASC_DEVICE uint32_t asc_element_offset(const asc_visit &visit, uint32_t row, uint32_t col)
{
    return asc_type<Element>::dtype == visit.dtype && row < visit.rows && col < visit.cols
               ? (row * visit.cols + col) * static_cast<uint32_t>(sizeof(Element))
               : ASC_NOWHERE;
}

#if defined(ASC_NVCC) && !ASC_STAGING
ASC_DEVICE unsigned char *asc_stage_buffer(const unsigned char *)
{
    return nullptr;
}

template <class Element, class Row, class Col, class Value>
ASC_DEVICE void asc_record_staged(asc_visit &, unsigned char *, int, Row, Col, Value)
{
}
#elif defined(ASC_NVCC)

#define ASC_WARP 0xffffffffu

/* All dynamic shared memory of a block begins here, the kernel's own first. */
extern __shared__ __align__(16) unsigned char asc_shared[];

/* This warp's window onto the tile at `values`. NULL where there is none; where lanes are missing: to wait for them
   would be to synchronize; where a lane records another tile: a window holds elements of one. */
ASC_DEVICE unsigned char *asc_stage_buffer(const unsigned char *values)
{
    const uint32_t warp = asc_thread() / 32;
    if (warp >= asc_state.staging_warps || __activemask() != ASC_WARP)
        return nullptr;
    const unsigned long long tile = reinterpret_cast<unsigned long long>(values);
    if (!__all_sync(ASC_WARP, tile == __shfl_sync(ASC_WARP, tile, 0)))
        return nullptr;
    return asc_shared + asc_state.staging_offset + warp * ASC_STAGE_ROOM;
}

ASC_DEVICE uint32_t *asc_stage_mask(unsigned char *window)
{
    return reinterpret_cast<uint32_t *>(window + ASC_STAGE_BYTES);
}

template <class Element> ASC_DEVICE void asc_stage_put(unsigned char *window, uint32_t at, const Element &value)
{
    *reinterpret_cast<Element *>(window + at) = value;
    atomicOr(asc_stage_mask(window) + at / 64, (sizeof(Element) == 4 ? 3u : 1u) << at / 2 % 32);
}

/* Empties the window: `values` is where its first byte goes. All lanes of the warp. */
ASC_CALLED void asc_stage_flush(unsigned char *window, unsigned char *values)
{
    const uint32_t lane = asc_thread() % 32;
    __syncwarp();
    for (uint32_t line = 0; line < ASC_STAGE_BYTES; line += 128) {
        const uint32_t at = line + 4 * lane, there = asc_stage_mask(window)[at / 64] >> at / 2 % 32 & 3u;
        if (there == 3u)
            *reinterpret_cast<uint32_t *>(values + at) = *reinterpret_cast<const uint32_t *>(window + at);
        else if (there)
            *reinterpret_cast<uint16_t *>(values + at + there / 2 * 2) =
                *reinterpret_cast<const uint16_t *>(window + at + there / 2 * 2);
    }
    __syncwarp();
    asc_stage_mask(window)[lane] = 0;
    __syncwarp();
}

ASC_DEVICE uint32_t asc_warp_min(uint32_t x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(ASC_WARP, x);
#else
    for (int d = 16; d > 0; d /= 2)
        x = min(x, __shfl_xor_sync(ASC_WARP, x, d));
    return x;
#endif
}

/* The same as asc_record() for each, by way of the window. */
template <class Element, class Row, class Col, class Value>
ASC_DEVICE void asc_record_staged(asc_visit &visit, unsigned char *window, const int n, Row row, Col col, Value value)
{
    asc_stage_mask(window)[asc_thread() % 32] = 0;
    for (uint32_t from = 0;;) {
        uint32_t first = ASC_NOWHERE;
        ASC_UNROLL for (int i = 0; i < n; i++)
        {
            const uint32_t at = asc_element_offset<Element>(visit, row(i), col(i));
            if (at >= from)
                first = min(first, at);
        }
        first = asc_warp_min(first);
        if (first == ASC_NOWHERE)
            return;
        first = first / 128 * 128;
        ASC_UNROLL for (int i = 0; i < n; i++)
        {
            const uint32_t at = asc_element_offset<Element>(visit, row(i), col(i));
            if (at - first < ASC_STAGE_BYTES)
                asc_stage_put(window, at - first, value(i));
        }
        asc_stage_flush(window, visit.values + first);
        from = first + ASC_STAGE_BYTES;
    }
}
#endif

template <class Row, class Col, class Value>
ASC_DEVICE void asc_record_each(asc_visit &visit, const int n, Row row, Col col, Value value)
{
    using Element = typename asc_plain<decltype(value(0))>::type;
    bool staged = false;
#ifdef ASC_NVCC
    if constexpr (sizeof(Element) == 2 || sizeof(Element) == 4) {
        unsigned char *const window = n > 1 ? asc_stage_buffer(visit.values) : nullptr;
        staged = window != nullptr;
        if (staged)
            asc_record_staged<Element>(visit, window, n, row, col, value);
    }
#endif
    if (staged) {
        ASC_UNROLL for (int i = 0; i < n; i++)
        {
            const uint32_t number = asc_next_number(visit);
            if (!asc_has_no_place<Element>(visit, row(i), col(i)))
                asc_sign(visit, row(i), col(i), number);
        }
    } else {
        ASC_UNROLL for (int i = 0; i + 1 < n; i += 2)
            asc_record_two<Element>(visit, row(i), col(i), row(i + 1), col(i + 1), value(i), value(i + 1));
        if (n % 2)
            asc_record(visit, row(n - 1), col(n - 1), value(n - 1));
    }
#if ASC_MODE == 2
    ASC_UNROLL for (int i = 0; i < n; i++) asc_feed(visit, row(i), col(i), value(i));
#endif
}

/* Records (and feeds) value(0) .. value(n - 1) at (row(i), col(i)). n is a constant once this is inlined, so that value
   may stand for an array in registers. */
template <class Row, class Col, class Value>
ASC_DEVICE void asc_record_all(asc_visit &visit, const int n, Row row, Col col, Value value)
{
#ifdef ASC_NVCC
    /* Code of its own for each of many registers is what ptxas spends its time on, and spills: a minute for
       kernels/hopper_large.cu. More than `few`, or as many in other builds, go through memory of the thread, and loops
       that no compiler unrolls; so many take half as long again there, (2,8,2048,64) on an H200. */
    using There = asc_stands<decltype(value(0))>;
    using Element = typename asc_plain<decltype(value(0))>::type;
    constexpr int few = 32, part = 64, group = 16, in_memory = 8;
    constexpr bool in_groups = !ASC_STAGING && ASC_MODE == 1;
    if (in_groups && n <= few && n % group == 0) {
        ASC_UNROLL for (int from = 0; from < n; from += group) asc_record_group<Element, group>(
            visit, [&](int i) { return row(from + i); }, [&](int i) { return col(from + i); },
            [&](int i) -> Element { return value(from + i); });
        return;
    }
    if (n >= few) {
        ASC_UNROLL for (int from = 0; from < n; from += part)
        {
            alignas(16) Element kept[part];
            const int all = n - from < part ? n - from : part;
            int unknown = all;
            asm("" : "+r"(unknown));
            ASC_UNROLL for (int i = 0; i < all; i++) kept[i] = value(from + i);
            if (in_groups && all % in_memory == 0) {
                _Pragma("unroll 1") for (int i = 0; i < unknown; i += in_memory) asc_record_group<Element, in_memory>(
                    visit, [&](int j) { return row(from + i + j); }, [&](int j) { return col(from + i + j); },
                    [&](int j) -> const Element & { return kept[i + j]; });
                continue;
            }
            asc_record_each(
                visit, unknown, [&](int i) { return row(from + i); }, [&](int i) { return col(from + i); },
                [&](int i) -> typename There::type { return kept[i]; });
#if ASC_MODE == 2
            if constexpr (There::may_change) {
                ASC_UNROLL for (int i = 0; visit.fed && i < all; i++) value(from + i) = kept[i];
            }
#endif
        }
        return;
    }
#endif
    asc_record_each(visit, n, row, col, value);
}

/* Where a lane's element i lies in a fragment. CUDA does not say; on sm_90 it lies as in mma.m16n8
   (PTX ISA), the left half first, whether the sums are float or __half: tests/gpu/gpu_patterns.py asks the device. */
template <class Fragment> struct asc_fragment {
    static_assert(sizeof(Fragment) == 0,
                  "attnscope knows where the elements of 16x16 WMMA accumulators lie: ASC_RECORD records any other "
                  "fragment, with a row and a column of your own for each element");
};
template <template <class, int, int, int, class, class> class Fragment, class Use, int Depth, class Element>
struct asc_fragment<Fragment<Use, 16, 16, Depth, Element, void>> {
    static constexpr int elements = 8, cols = 16;
    static ASC_DEVICE int row(int lane, int i)
    {
        return lane / 4 + i / 2 % 2 * 8;
    }
    static ASC_DEVICE int col(int lane, int i)
    {
        return lane % 4 * 2 + i % 2 + i / 4 * 8;
    }
};

/* An accumulator of mma.m16n8 in registers, T acc[4] (PTX ISA, "Matrix Fragments for mma.m16n8k16"). */
template <class Element> struct asc_fragment<Element[4]> {
    static constexpr int elements = 4, cols = 8;
    static ASC_DEVICE int row(int lane, int i)
    {
        return lane / 4 + i / 2 * 8;
    }
    static ASC_DEVICE int col(int lane, int i)
    {
        return lane % 4 * 2 + i % 2;
    }
};

template <class Fragment> ASC_DEVICE auto &asc_fragment_element(Fragment &fragment, int i)
{
    return fragment.x[i];
}
template <class Element> ASC_DEVICE Element &asc_fragment_element(Element (&fragment)[4], int i)
{
    return fragment[i];
}

template <class Visit, class Fragment>
ASC_DEVICE void asc_record_fragments(Visit &visit, int row0, int col0, const int n, Fragment *fragments)
{
    using map = asc_fragment<typename asc_plain<Fragment>::type>;
    const int lane = asc_thread() % 32;
    asc_record_all(
        visit, n * map::elements, [&](int i) { return row0 + map::row(lane, i % map::elements); },
        [&](int i) { return col0 + i / map::elements * map::cols + map::col(lane, i % map::elements); },
        [&](int i) -> decltype(auto) { return asc_fragment_element(fragments[i / map::elements], i % map::elements); });
}

template <class Visit, class Fragment>
ASC_DEVICE void asc_record_fragment(Visit &visit, int row0, int col0, Fragment &fragment)
{
    asc_record_fragments(visit, row0, col0, 1, &fragment);
}

template <class Visit, class Fragment, int Count>
ASC_DEVICE void asc_record_fragment(Visit &visit, int row0, int col0, Fragment (&fragments)[Count])
{
    asc_record_fragments(visit, row0, col0, Count, fragments);
}

template <class Visit, class Element, class = typename asc_code<Element>::named>
ASC_DEVICE void asc_record_fragment(Visit &visit, int row0, int col0, Element (&fragment)[4])
{
    asc_record_fragments(visit, row0, col0, 1, &fragment);
}

/* Where nothing is fed, the copies are looked at on the CPU alone. */
#ifdef ASC_NVCC
#define ASC_COPIES (ASC_MODE == 2)
#else
#define ASC_COPIES 1
#endif

/* Rows of them, each 16 below the one before. */
template <class Visit, class Element, int Rows, int Count>
ASC_DEVICE void asc_record_fragment(Visit &visit, int row0, int col0, Element (&fragments)[Rows][Count][4])
{
    ASC_UNROLL for (int i = 0; i < Rows; i++) asc_record_fragments(visit, row0 + 16 * i, col0, Count, fragments[i]);
}

/* As ASC_RECORD_ROW for n rows: of lanes that hold copies the one where `records` is true records, those of the others
   are fed and compared. */
template <class Place, class Row, class Value>
ASC_DEVICE void asc_record_rows(int channel, const Place &place, int32_t kv, int line, const int n, const bool records,
                                Row row, Value value)
{
    if (!records && !ASC_COPIES)
        return;
    if (!records && ASC_MODE == 1) {
        for (int i = 0; i < n; i++)
            asc_compare(channel, place, kv, row(i), value(i));
        return;
    }
    auto now = asc_open(channel, place, kv, line);
    ASC_UNROLL for (int i = 0; i < n; i++)
    {
        if (records)
            asc_probe(now, row(i), 0, value(i));
        else
            asc_feed(now, row(i), 0, value(i));
    }
    if (records)
        asc_close(channel, place, kv, now);
    else
        asc_checks_resume();
}

/* The values of mma.m16n8's rows as a thread has them, T values[2], or [n][2] of n that stand below each other. */
template <class Element, class = typename asc_code<Element>::named>
ASC_DEVICE Element &asc_row_value(Element (&values)[2], int i)
{
    return values[i];
}
template <class Element, int Count> ASC_DEVICE Element &asc_row_value(Element (&values)[Count][2], int i)
{
    return values[i / 2][i % 2];
}
template <class Element, class = typename asc_code<Element>::named>
ASC_CONSTEXPR int asc_row_values(const Element (&)[2])
{
    return 2;
}
template <class Element, int Count> ASC_CONSTEXPR int asc_row_values(const Element (&)[Count][2])
{
    return 2 * Count;
}

#endif
