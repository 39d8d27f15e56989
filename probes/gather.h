/* How the values that a thread holds reach the pinned trace. Over PCIe a store costs what its widest contiguous piece
   makes of it: measured on an H200, a warp that writes 128 bytes side by side reaches 52.7 GB/s, 64 bytes 45, 32 bytes
   25, and single floats apart (the accumulators of mma.sync, a row per lane) 2 to 3. So the lanes of a warp exchange
   values first where that makes wider pieces. A value travels with its place, and is written there whoever holds it in
   the end: an exchange that does not fit the kernel's layout costs time, never a wrong value. */
#ifndef PROBES_GATHER_H
#define PROBES_GATHER_H

#include "probes/record.h"

#define ASC_BATCH 32 /* values of a thread that are written at once */
#define ASC_NOWHERE 0xffffffffu

/* N pieces of W words that a thread has to write: at[i] is the place of piece i in its tile, in bytes; ASC_NOWHERE:
   none. */
template <int N, int W> struct asc_pieces {
    uint32_t at[N];
    uint32_t word[N][W];
};

template <int W> ASC_DEVICE void asc_put(unsigned char *values, uint32_t at, const uint32_t (&word)[W])
{
    if (at == ASC_NOWHERE)
        return;
#ifdef ASC_NVCC
    if (W == 4)
        *reinterpret_cast<uint4 *>(values + at) = make_uint4(word[0], word[W / 4], word[W / 2], word[W - 1]);
    else if (W == 2)
        *reinterpret_cast<uint2 *>(values + at) = make_uint2(word[0], word[W - 1]);
    else
#endif
        for (int i = 0; i < W; i++)
            reinterpret_cast<uint32_t *>(values + at)[i] = word[i];
}

template <int N, int W> ASC_DEVICE void asc_put_all(unsigned char *values, const asc_pieces<N, W> &p)
{
    ASC_UNROLL for (int i = 0; i < N; i++) asc_put<W>(values, p.at[i], p.word[i]);
}

#ifdef ASC_NVCC
#define ASC_ALL 0xffffffffu

ASC_DEVICE uint32_t asc_lane()
{
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

/* Every piece lies right beside that of the lane before. */
template <int N, int W> ASC_DEVICE bool asc_in_line(const asc_pieces<N, W> &p)
{
    bool all = true;
    ASC_UNROLL for (int i = 0; i < N; i++)
    {
        const uint32_t before = __shfl_up_sync(ASC_ALL, p.at[i], 1);
        all = all && p.at[i] != ASC_NOWHERE && (asc_lane() == 0 || p.at[i] == before + 4 * W);
    }
    return __all_sync(ASC_ALL, all);
}

/* A lane's pieces 2i and 2i + 1 as one. */
template <int N, int W> ASC_DEVICE bool asc_join_own(const asc_pieces<N, W> &p, asc_pieces<N / 2, 2 * W> &out)
{
    bool all = true;
    ASC_UNROLL for (int i = 0; i < N / 2; i++)
    {
        out.at[i] = p.at[2 * i];
        all = all && p.at[2 * i] % (8 * W) == 0 && p.at[2 * i + 1] == p.at[2 * i] + 4 * W;
        ASC_UNROLL for (int w = 0; w < W; w++)
        {
            out.word[i][w] = p.word[2 * i][w];
            out.word[i][W + w] = p.word[2 * i + 1][w];
        }
    }
    return __all_sync(ASC_ALL, all);
}

/* Lanes l and l ^ D share pieces i and i + 2 of each four: the lower lane gets both of piece i, the higher one both of
   piece i + 2. Accumulators of mma.sync lie so: D columns apart in a group of four lanes, rows g and g + 8 taking
   turns, then the next tile (PTX ISA, "Matrix Fragments for mma.m16n8k16"). */
template <int D, int N, int W> ASC_DEVICE bool asc_join_pair(const asc_pieces<N, W> &p, asc_pieces<N / 2, 2 * W> &out)
{
    const bool high = asc_lane() & D;
    bool all = true;
    ASC_UNROLL for (int i = 0; i < N / 2; i++)
    {
        const int a = i / 2 * 4 + i % 2, b = a + 2;
        const uint32_t at = __shfl_xor_sync(ASC_ALL, high ? p.at[a] : p.at[b], D);
        const uint32_t first = high ? at : p.at[a], second = high ? p.at[b] : at;
        all = all && first % (8 * W) == 0 && second == first + 4 * W;
        out.at[i] = first;
        ASC_UNROLL for (int w = 0; w < W; w++)
        {
            const uint32_t word = __shfl_xor_sync(ASC_ALL, high ? p.word[a][w] : p.word[b][w], D);
            out.word[i][w] = high ? word : p.word[a][w];
            out.word[i][W + w] = high ? p.word[b][w] : word;
        }
    }
    return __all_sync(ASC_ALL, all);
}

/* Lanes l and l ^ D swap pieces: of i and j, the lower lane keeps i and gets the other's i. */
template <int N, int W> ASC_DEVICE void asc_swap(asc_pieces<N, W> &p, int i, int j, int d)
{
    const bool high = asc_lane() & static_cast<uint32_t>(d);
    const uint32_t at = __shfl_xor_sync(ASC_ALL, high ? p.at[i] : p.at[j], d);
    p.at[i] = high ? at : p.at[i];
    p.at[j] = high ? p.at[j] : at;
    ASC_UNROLL for (int w = 0; w < W; w++)
    {
        const uint32_t word = __shfl_xor_sync(ASC_ALL, high ? p.word[i][w] : p.word[j][w], d);
        p.word[i][w] = high ? word : p.word[i][w];
        p.word[j][w] = high ? p.word[j][w] : word;
    }
}

/* Pieces of 16 bytes. Where a lane's own follow each other (a row per lane), groups of up to 8 lanes transpose theirs;
   where those two apart are 64 bytes apart (accumulators), lanes l and l ^ 4 swap. */
template <int N> ASC_DEVICE void asc_write_wide(unsigned char *values, asc_pieces<N, 4> &p)
{
    constexpr int group = N < 8 ? N : 8;
    bool row = N > 1, apart = N % 4 == 0;
    ASC_UNROLL for (int i = 0; i + 1 < N; i++) row = row && (i % group == group - 1 || p.at[i + 1] == p.at[i] + 16);
    ASC_UNROLL for (int i = 0; i + 2 < N; i++) apart = apart && (i % 4 >= 2 || p.at[i + 2] == p.at[i] + 64);
    if (__all_sync(ASC_ALL, row)) {
        ASC_UNROLL for (int d = 1; d < group; d *= 2) ASC_UNROLL for (int i = 0; i < N; i++) if (!(i & d))
            asc_swap(p, i, i + d, d);
    } else if (__all_sync(ASC_ALL, apart)) {
        ASC_UNROLL for (int i = 0; i < N; i++) if (i % 4 < 2) asc_swap(p, i, i + 2, 4);
    }
    asc_put_all(values, p);
}

/* All lanes of a converged warp. D: how far apart the next lanes are that may hold a neighbour. */
template <int D, int N, int W> ASC_DEVICE void asc_write_pieces(unsigned char *values, asc_pieces<N, W> &p)
{
    if constexpr (W == 4) {
        asc_write_wide<N>(values, p);
    } else {
        if (asc_in_line(p)) {
            asc_put_all(values, p);
            return;
        }
        if constexpr (N % 2 == 0) {
            asc_pieces<N / 2, 2 * W> joined;
            if (asc_join_own(p, joined)) {
                asc_write_pieces<D>(values, joined);
                return;
            }
            if constexpr (N % 4 == 0) {
                if (asc_join_pair<D>(p, joined)) {
                    asc_write_pieces<2 * D>(values, joined);
                    return;
                }
            }
        }
        asc_put_all(values, p);
    }
}

/* Four words follow each other wherever a lane's places come in fours. */
template <int N> ASC_DEVICE bool asc_comes_in_fours(const asc_pieces<N, 1> &p)
{
    bool all = true;
    ASC_UNROLL for (int i = 0; i < N; i++) all = all && (i % 4 == 0 ? p.at[i] % 16 == 0 : p.at[i] == p.at[i - 1] + 4);
    return __all_sync(ASC_ALL, all);
}

/* More than 16 words are taken together only where that makes lines of 128 bytes: all of them at once in registers
   would cost the kernel its own. */
template <int N> ASC_CALLED void asc_write_warp(unsigned char *values, const asc_pieces<N, 1> &p)
{
    if constexpr (N > 16) {
        if (asc_comes_in_fours(p)) {
            asc_pieces<N / 4, 4> wide;
            ASC_UNROLL for (int i = 0; i < N; i++)
            {
                wide.at[i / 4] = p.at[i / 4 * 4];
                wide.word[i / 4][i % 4] = p.word[i][0];
            }
            asc_write_wide<N / 4>(values, wide);
            return;
        }
    }
    constexpr int part = N > 16 ? 16 : N;
#pragma unroll 1
    for (int first = 0; first < N; first += part) {
        asc_pieces<part, 1> some;
        ASC_UNROLL for (int i = 0; i < part; i++)
        {
            some.at[i] = p.at[first + i];
            some.word[i][0] = p.word[first + i][0];
        }
        asc_write_pieces<1>(values, some);
    }
}
#endif

/* Writes N words of each thread. */
template <int N> ASC_DEVICE void asc_write_words(unsigned char *values, const asc_pieces<N, 1> &p)
{
#ifdef ASC_NVCC
    /* Lanes of a diverged warp write for themselves: to wait for the others would be to synchronise. */
    if (N > 1 && __activemask() == ASC_ALL) {
        asc_write_warp<N>(values, p);
        return;
    }
#endif
    asc_put_all(values, p);
}

template <int bytes> struct asc_small {
    using type = uint8_t;
};
template <> struct asc_small<2> {
    using type = uint16_t;
};

/* Writes N values of `bytes` (1, 2 or 4) bytes each; smaller ones as words, where the threads' values make some. */
template <int N, int bytes> ASC_DEVICE void asc_write(unsigned char *values, const asc_pieces<N, 1> &p)
{
    if constexpr (bytes == 4) {
        asc_write_words<N>(values, p);
    } else {
#ifdef ASC_NVCC
        constexpr int each = 4 / bytes;
        if constexpr (N % each == 0) {
            asc_pieces<N / each, 1> words;
            bool all = true;
            ASC_UNROLL for (int i = 0; i < N / each; i++)
            {
                words.at[i] = p.at[each * i];
                words.word[i][0] = p.word[each * i][0];
                all = all && words.at[i] % 4 == 0;
                ASC_UNROLL for (int j = 1; j < each; j++)
                {
                    all = all && p.at[each * i + j] == words.at[i] + j * bytes;
                    words.word[i][0] |= p.word[each * i + j][0] << 8 * bytes * j;
                }
            }
            if (__all_sync(__activemask(), all)) {
                asc_write_words<N / each>(values, words);
                return;
            }
        }
#endif
        using Small = typename asc_small<bytes>::type;
        ASC_UNROLL for (int i = 0; i < N; i++) if (p.at[i] != ASC_NOWHERE) *
            reinterpret_cast<Small *>(values + p.at[i]) = static_cast<Small>(p.word[i][0]);
    }
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

template <int N, class T, class Row, class Col, class Value>
ASC_DEVICE void asc_some(asc_visit &visit, int first, Row row, Col col, Value value)
{
    asc_pieces<N, 1> p;
    ASC_UNROLL for (int i = 0; i < N; i++)
    {
        p.at[i] = asc_at<T>(visit, row(first + i), col(first + i));
        p.word[i][0] = asc_bits<T>(value(first + i));
    }
    asc_write<N, static_cast<int>(sizeof(T))>(visit.values, p);
}

/* Records (and feeds) value(0) .. value(n - 1) at (row(i), col(i)). n is a constant once this is inlined, so that value
   may stand for an array in registers. */
template <class Row, class Col, class Value>
ASC_DEVICE void asc_each(asc_visit &visit, const int n, Row row, Col col, Value value)
{
    using T = typename asc_plain<decltype(value(0))>::type;
    if constexpr (sizeof(T) <= 4) {
        int first = 0;
        ASC_UNROLL for (; n - first >= 32; first += 32) asc_some<32, T>(visit, first, row, col, value);
        if (n - first >= 16)
            asc_some<16, T>(visit, first, row, col, value), first += 16;
        if (n - first >= 8)
            asc_some<8, T>(visit, first, row, col, value), first += 8;
        if (n - first >= 4)
            asc_some<4, T>(visit, first, row, col, value), first += 4;
        if (n - first >= 2)
            asc_some<2, T>(visit, first, row, col, value), first += 2;
        if (n - first >= 1)
            asc_some<1, T>(visit, first, row, col, value);
    } else {
        ASC_UNROLL for (int i = 0; i < n; i++) asc_record(visit, row(i), col(i), value(i));
    }
#if ASC_MODE == 2
    ASC_UNROLL for (int i = 0; i < n; i++) asc_feed(visit, row(i), col(i), value(i));
#endif
}

#endif
