/* Probes for CuTe (CUTLASS 3.5 or later): what attnscope.h cannot know of fragments, whose coordinates come from an
   identity tensor that is partitioned as the fragment is. Stands beside attnscope.h; a kernel includes this one.

     ASC_CUTE_C(ch, kv_tile, thr_mma, M, N, fragment);

   an accumulator (MMA, MMA_M, MMA_N) of an M x N tile, or what has its layout, of any type;

     ASC_CUTE_C_AT(ch, kv_tile, thr_mma, M, N, at, fragment);

   one whose columns or rows stand elsewhere: at(row, col) is cute::make_coord(row, col) of the tile;

     ASC_CUTE_ROWS(ch, kv_tile, thr_mma, M, N, values);

   one value for each row that the thread holds of that tile: the lanes that share a row have copies of it;

     ASC_CUTE_LANES(ch, kv_tile, thr_mma, M, N, values);

   the same, but each of these lanes has a partial sum (l_lanes);

     ASC_CUTE_SHARED(ch, kv_tile, tensor);

   a tensor (rows, cols) in shared memory, by all threads of the block, as ASC_RECORD_SHARED.

   thr_mma is what the TiledMMA's get_slice(thread) gives; M and N are constants. */
#ifndef ASC_ATTNSCOPE_CUTE_H
#define ASC_ATTNSCOPE_CUTE_H

#include <cute/tensor.hpp>
#include <cutlass/numeric_types.h>

#include "attnscope.h"

ASC_TYPE(cutlass::half_t, ASC_F16);
ASC_TYPE(cutlass::bfloat16_t, ASC_BF16);
ASC_TYPE(cutlass::float_e4m3_t, ASC_E4M3);
ASC_TYPE(cutlass::float_e5m2_t, ASC_E5M2);

#if ASC_MODE == 0 || defined(ASC_HOST)

#define ASC_CUTE_C(...) ((void)0)
#define ASC_CUTE_C_AT(...) ((void)0)
#define ASC_CUTE_ROWS(...) ((void)0)
#define ASC_CUTE_LANES(...) ((void)0)
#define ASC_CUTE_SHARED(...) ((void)0)

#else

/* (row, col) of each element that the thread holds of an accumulator of M x N. */
template <int M, int N, class ThrMma> ASC_DEVICE auto asc_cute_places(const ThrMma &thr_mma)
{
    return thr_mma.partition_C(cute::make_identity_tensor(cute::make_shape(cute::Int<M>{}, cute::Int<N>{})));
}

/* Of the first element of each row: an atom has two columns by two rows (mma.m16n8), and wgmma such ones side by side.
 */
template <class Places> ASC_DEVICE auto asc_cute_rows(const Places &places)
{
    if constexpr (decltype(cute::rank<0>(places.layout()))::value == 3)
        return places(cute::make_coord(0, cute::_, 0), cute::_, 0);
    else
        return places(cute::make_coord(0, cute::_), cute::_, 0);
}

template <class Values> ASC_DEVICE decltype(auto) asc_cute_value(Values &values, int i)
{
    if constexpr (std::is_array<Values>::value)
        return (values[i]);
    else
        return values(i);
}

struct asc_cute_here {
    template <class Row, class Col> ASC_DEVICE auto operator()(Row row, Col col) const
    {
        return cute::make_coord(row, col);
    }
};

template <class Place, class Places, class At, class Values>
ASC_DEVICE void asc_cute_fragment(int channel, const Place &place, int32_t kv, int line, const Places &places, At at,
                                  Values &&values)
{
    constexpr int n = decltype(cute::size(places))::value;
    const auto at_of = [&](int i) { return at(cute::get<0>(places(i)), cute::get<1>(places(i))); };
    static_assert(n == decltype(cute::size(values))::value, "M x N is not the tile that this fragment is a part of");
    auto now = asc_open(channel, place, kv, line);
    asc_record_all(
        now, n, [&](int i) { return static_cast<int>(cute::get<0>(at_of(i))); },
        [&](int i) { return static_cast<int>(cute::get<1>(at_of(i))); },
        [&](int i) -> decltype(auto) { return asc_cute_value(values, i); });
    asc_close(channel, place, kv, now);
}

/* As ASC_RECORD_ROW: the lane of the first column records, the copies of the others are fed and compared. */
template <class Place, class Rows, class Values>
ASC_DEVICE void asc_cute_row_values(int channel, const Place &place, int32_t kv, int line, const Rows &rows,
                                    Values &&values)
{
    asc_record_rows(
        channel, place, kv, line, decltype(cute::size(rows))::value, cute::get<1>(rows(0)) == 0,
        [&](int i) { return static_cast<int>(cute::get<0>(rows(i))); },
        [&](int i) -> decltype(auto) { return asc_cute_value(values, i); });
}

template <class Place, class Rows, class Values>
ASC_DEVICE void asc_cute_lane_values(int channel, const Place &place, int32_t kv, int line, const Rows &rows,
                                     Values &&values)
{
    auto now = asc_open(channel, place, kv, line);
    asc_record_all(
        now, decltype(cute::size(rows))::value, [&](int i) { return static_cast<int>(cute::get<0>(rows(i))); },
        [&](int i) { return static_cast<int>(cute::get<1>(rows(i))) / 2; },
        [&](int i) -> decltype(auto) { return asc_cute_value(values, i); });
    asc_close(channel, place, kv, now);
}

#define ASC_CUTE_RECORD(ch, function, kv_tile, ...)                                                                    \
    do {                                                                                                               \
        constexpr int asc_ch = ::asc_site(ch, __LINE__);                                                               \
        if (::asc_is_recorded(asc_here, asc_ch))                                                                       \
            function(asc_ch, asc_here, (kv_tile), __LINE__, __VA_ARGS__);                                              \
    } while (0)
#define ASC_CUTE_C(ch, kv_tile, thr_mma, M, N, ...)                                                                    \
    ASC_CUTE_RECORD(::asc_named::asc_##ch, ::asc_cute_fragment, kv_tile, (::asc_cute_places<(M), (N)>(thr_mma)),       \
                    ::asc_cute_here(), __VA_ARGS__)
#define ASC_CUTE_C_AT(ch, kv_tile, thr_mma, M, N, at, ...)                                                             \
    ASC_CUTE_RECORD(::asc_named::asc_##ch, ::asc_cute_fragment, kv_tile, (::asc_cute_places<(M), (N)>(thr_mma)), (at), \
                    __VA_ARGS__)
#define ASC_CUTE_ROWS(ch, kv_tile, thr_mma, M, N, ...)                                                                 \
    ASC_CUTE_RECORD(::asc_named::asc_##ch, ::asc_cute_row_values, kv_tile,                                             \
                    ::asc_cute_rows(::asc_cute_places<(M), (N)>(thr_mma)), __VA_ARGS__)
#define ASC_CUTE_LANES(ch, kv_tile, thr_mma, M, N, ...)                                                                \
    ASC_CUTE_RECORD(::asc_named::asc_##ch, ::asc_cute_lane_values, kv_tile,                                            \
                    ::asc_cute_rows(::asc_cute_places<(M), (N)>(thr_mma)), __VA_ARGS__)
#define ASC_CUTE_SHARED(ch, kv_tile, ...)                                                                              \
    ASC_RECORD_SHARED(ch, kv_tile, asc_row, static_cast<int>(cute::size<0>(__VA_ARGS__)), asc_col,                     \
                      static_cast<int>(cute::size<1>(__VA_ARGS__)), (__VA_ARGS__)(asc_row, asc_col))

#endif

#endif
