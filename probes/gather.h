/* How the values that a thread holds reach the pinned trace. Over PCIe a store costs what its widest contiguous piece
   makes of it: measured on an H200, a warp that writes 128 bytes side by side reaches 52.7 GB/s, 64 bytes 45, 32 bytes
   25, and single floats apart (the accumulators of mma.sync, a row per lane) 2 to 3. So a warp whose lanes hold values
   apart first brings together, line of 128 bytes by line, what belongs together. The kernel's own arithmetic waits for
   the link anyway: an SM has 17 cycles for each float it may send. */
#ifndef PROBES_GATHER_H
#define PROBES_GATHER_H

#include "probes/record.h"

#define ASC_BATCH 32 /* values of a thread that are written at once */

/* What a thread has to write: at[i] is the place of value i in its tile, in bytes; all ones: none. */
struct asc_batch {
    uint32_t at[ASC_BATCH];
    uint32_t bits[ASC_BATCH]; /* of types up to 4 bytes, in the low bytes */
};
#define ASC_NOWHERE 0xffffffffu

template <class Word> ASC_DEVICE void asc_put_word(unsigned char *values, uint32_t at, uint32_t bits)
{
    *reinterpret_cast<Word *>(values + at) = static_cast<Word>(bits);
}

ASC_DEVICE void asc_put(unsigned char *values, uint32_t at, uint32_t bits, int bytes)
{
    if (at == ASC_NOWHERE)
        return;
    if (bytes == 4)
        asc_put_word<uint32_t>(values, at, bits);
    else if (bytes == 2)
        asc_put_word<uint16_t>(values, at, bits);
    else
        asc_put_word<uint8_t>(values, at, bits);
}

#ifdef ASC_NVCC

#define ASC_LINE 128u
#define ASC_ALL 0xffffffffu

/* Value i of all lanes lies side by side already. */
ASC_DEVICE bool asc_in_line(uint32_t at, uint32_t lane, uint32_t bytes)
{
    const uint32_t before = __shfl_up_sync(ASC_ALL, at, 1);
    return __all_sync(ASC_ALL, lane == 0 ? at != ASC_NOWHERE : at == before + bytes);
}

/* Collects what the warp's lanes hold of the line that begins at `line` into one word per lane, and writes it. Values
   of it are crossed out in *batch. */
ASC_DEVICE void asc_write_line(unsigned char *values, uint32_t line, asc_batch &batch, int n, uint32_t bytes,
                               uint32_t lane)
{
    const uint32_t full = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1;
    uint32_t word = 0, have = 0; /* have: ones where a bit of word is known */
    for (int i = 0; i < n; i++) {
        const bool mine = batch.at[i] - line < ASC_LINE;
        for (uint32_t left = __ballot_sync(ASC_ALL, mine); left; left &= left - 1) {
            const int from = __ffs(static_cast<int>(left)) - 1;
            const uint32_t at = __shfl_sync(ASC_ALL, batch.at[i], from) - line;
            const uint32_t bits = __shfl_sync(ASC_ALL, batch.bits[i], from);
            if (at / 4 == lane) {
                const uint32_t shift = at % 4 * 8;
                word = (word & ~(full << shift)) | (bits & full) << shift;
                have |= full << shift;
            }
        }
        if (mine)
            batch.at[i] = ASC_NOWHERE;
    }
    unsigned char *const place = values + line + 4 * lane;
    if (have == ~0u)
        *reinterpret_cast<uint32_t *>(place) = word;
    for (uint32_t b = 0; have != ~0u && b < 4; b += bytes)
        if (have >> 8 * b & 1u)
            asc_put(place, b, word >> 8 * b, static_cast<int>(bytes));
}

/* All lanes of a converged warp. Where two lanes hold the same element, one of them wins, as with plain stores. */
ASC_CALLED void asc_write_batch(unsigned char *values, asc_batch &batch, int n, int bytes)
{
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), lane = thread % 32;
    bool apart = false;
    for (int i = 0; i < n; i++) {
        if (asc_in_line(batch.at[i], lane, static_cast<uint32_t>(bytes))) {
            asc_put(values, batch.at[i], batch.bits[i], bytes);
            batch.at[i] = ASC_NOWHERE;
        } else {
            apart = true; /* the same for all lanes */
        }
    }
    while (apart) {
        uint32_t first = ASC_NOWHERE;
        for (int i = 0; i < n; i++)
            first = min(first, batch.at[i]);
        first = __reduce_min_sync(ASC_ALL, first);
        if (first == ASC_NOWHERE)
            break;
        asc_write_line(values, first / ASC_LINE * ASC_LINE, batch, n, static_cast<uint32_t>(bytes), lane);
    }
}
#endif

/* Writes the first n values of a batch, each of `bytes` bytes. */
ASC_DEVICE void asc_write(unsigned char *values, asc_batch &batch, int n, int bytes)
{
#ifdef ASC_NVCC
    /* Lanes of a diverged warp write for themselves: to wait for the others would be to synchronise. */
    if (__activemask() == ASC_ALL) {
        asc_write_batch(values, batch, n, bytes);
        return;
    }
#endif
    for (int i = 0; i < n; i++)
        asc_put(values, batch.at[i], batch.bits[i], bytes);
}

template <class T> ASC_DEVICE uint32_t asc_bits(const T &value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

/* The place of an element in its tile, in bytes; counts what has none. */
template <class T> ASC_DEVICE uint32_t asc_at(asc_visit &visit, uint32_t row, uint32_t col)
{
    if (asc_type<T>::dtype != visit.dtype)
        visit.mistyped++;
    else if (row >= visit.rows || col >= visit.cols)
        visit.dropped++;
    else
        return (row * visit.cols + col) * static_cast<uint32_t>(sizeof(T));
    return ASC_NOWHERE;
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

/* What an element of ASC_FRAGMENT's map says: 32 * row + column, in whatever type the fragment has. */
template <class T> ASC_DEVICE int asc_map_at(const T &element)
{
    return static_cast<int>(static_cast<float>(element));
}

/* Records (and feeds) value(0) .. value(n - 1) at (row(i), col(i)). n is a constant once this is inlined, so that value
   may stand for an array in registers. */
template <class Row, class Col, class Value>
ASC_DEVICE void asc_each(asc_visit &visit, const int n, Row row, Col col, Value value)
{
    using T = typename asc_plain<decltype(value(0))>::type;
    if constexpr (sizeof(T) <= 4) {
        ASC_UNROLL for (int first = 0; first < n; first += ASC_BATCH)
        {
            asc_batch batch;
            ASC_UNROLL for (int i = 0; i < ASC_BATCH; i++)
            {
                if (first + i < n) {
                    batch.at[i] = asc_at<T>(visit, row(first + i), col(first + i));
                    batch.bits[i] = asc_bits<T>(value(first + i));
                }
            }
            asc_write(visit.values, batch, n - first < ASC_BATCH ? n - first : ASC_BATCH, static_cast<int>(sizeof(T)));
        }
    } else {
        ASC_UNROLL for (int i = 0; i < n; i++) asc_record(visit, row(i), col(i), value(i));
    }
#if ASC_MODE == 2
    ASC_UNROLL for (int i = 0; i < n; i++) asc_feed(visit, row(i), col(i), value(i));
#endif
}

#endif
