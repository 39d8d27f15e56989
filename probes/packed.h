/* Tiles whose rows belong to several heads (ASC_AT_ROWS): the query heads of a kv head as rows of one tile, PackGQA.
   The trace is [batch][head][q tile] all the same: each row is recorded, and fed, where its head and query are. */
#ifndef ASC_PACKED_H
#define ASC_PACKED_H

#include "probes/staging.h"

/* where(row, head, query) fills in what row 0 .. rows - 1 is; a row that is none has a query below 0. */
template <class Where> struct asc_rows {
    int32_t batch, rows;
    Where where;
};

template <class Where> ASC_DEVICE asc_rows<Where> asc_rows_of(int32_t batch, int32_t rows, Where where)
{
#ifndef ASC_NVCC
    int head = 0, query = 0;
    where(0, head, query);
    simt_place(batch, head, asc_state.br > 0 ? query / asc_state.br : 0);
#endif
    return {batch, rows, where};
}

template <class Where> ASC_DEVICE bool asc_is_recorded(const asc_rows<Where> &at, int channel)
{
    return at.rows && __builtin_expect(asc_state.batch != 0, 0) && asc_state.channel[channel].dtype >= 0;
}

struct asc_row {
    asc_place place;
    int32_t row; /* of that q tile */
};

/* Rows of the last tile that lie behind the last q tile are none; further away a map is wrong. */
ASC_CALLED asc_row asc_row_of(int32_t batch, int32_t head, int32_t query, int32_t rows)
{
    const int32_t br = asc_state.br, q_tiles = asc_state.q_tiles, q_tile = query / br;
    if (query < 0 || (q_tile >= q_tiles && query < q_tiles * br + rows))
        return {{-1}, 0};
    return {asc_slot_of(batch, head, q_tile), query - q_tile * br};
}

template <class Where> ASC_DEVICE asc_row asc_find_row(const asc_rows<Where> &at, uint32_t row)
{
    int head = 0, query = 0;
    if (row >= static_cast<uint32_t>(at.rows))
        return {{-2}, 0};
    at.where(static_cast<int>(row), head, query);
    return asc_row_of(at.batch, head, query, at.rows);
}

/* A thread's rows are those of a fragment, mostly: so many q tiles are remembered until they are stamped. */
#define ASC_TOUCHED 4

template <class Where> struct asc_rows_visit {
    const asc_rows<Where> &at;
    int32_t channel, kv, line, touched[ASC_TOUCHED]; /* slots; -1: none */
    uint32_t dropped, mistyped;
#if ASC_WRITERS
    uint32_t number; /* of the probe's next value */
#endif
#if ASC_MODE == 2
    bool fed; /* this channel is, if maybe not in each of these q tiles */
    uint32_t unfed;
#endif
};

template <class Where>
ASC_DEVICE asc_rows_visit<Where> asc_open(int channel, const asc_rows<Where> &at, int32_t kv, int line)
{
    asc_checks_pause(channel, kv);
    asc_rows_visit<Where> visit = {at, channel, kv, line, {-1, -1, -1, -1}, 0, 0};
#if ASC_MODE == 2
    visit.fed = asc_state.feed >> channel & 1u;
#endif
    return visit;
}

/* The last to be touched stands first. What has no room is stamped at once, and again where it is touched again: no
   stamp is older than the last value. */
template <class Where> ASC_DEVICE void asc_touch(asc_rows_visit<Where> &visit, int32_t slot)
{
    int32_t moved = slot;
    ASC_UNROLL for (int i = 0; i < ASC_TOUCHED; i++)
    {
        const int32_t there = visit.touched[i];
        visit.touched[i] = moved;
        moved = there;
        if (there == slot || there < 0)
            return;
    }
    asc_end(visit.channel, moved, visit.kv, asc_lost{}, true);
}

template <class Where> ASC_DEVICE void asc_take_counts(asc_rows_visit<Where> &visit, const asc_visit &one)
{
    visit.dropped += one.dropped;
    visit.mistyped += one.mistyped;
#if ASC_MODE == 2
    visit.unfed += one.unfed;
#endif
}

/* Whether the rows of a channel are keys. */
ASC_CONSTEXPR bool asc_of_keys(int channel)
{
    return channel == asc_k || channel == asc_v;
}

/* work(visit) for each of the q tiles: a row's query is the first of one, or comes behind it in the same tile. All of
   them have this tile of K or V; what is fed is that of the first. */
template <class Where, class Work> ASC_DEVICE void asc_each_tile(asc_rows_visit<Where> &visit, Work work)
{
    [[maybe_unused]] asc_visit first = {};
    for (int32_t row = 0; row < visit.at.rows; row++) {
        const asc_row there = asc_find_row(visit.at, row);
        if (there.row != 0 || there.place.slot == -1)
            continue;
        asc_visit one = asc_visit_of(visit.channel, there.place, visit.kv, visit.line);
#if ASC_MODE == 2
        if (!first.values)
            first = one;
        one.fed = nullptr;
#endif
        work(one);
        asc_take_counts(visit, one);
        if (one.values)
            asc_end(visit.channel, there.place.slot, visit.kv, asc_lost{}, true);
    }
#if ASC_MODE == 2
    if (first.fed) {
        work(first);
        visit.unfed += first.unfed;
    }
#endif
}

/* work(visit of the row's q tile, the row there). */
template <class Where, class Work>
ASC_DEVICE void asc_with_row(asc_rows_visit<Where> &visit, uint32_t row, bool records, Work work)
{
    if (asc_of_keys(visit.channel)) {
        asc_each_tile(visit, [&](asc_visit &one) { work(one, row); });
        return;
    }
    const asc_row there = asc_find_row(visit.at, row);
    if (there.place.slot == -1)
        return;
    asc_visit one = asc_visit_of(visit.channel, there.place, visit.kv, visit.line);
#if ASC_WRITERS
    one.number = visit.number;
#endif
    work(one, static_cast<uint32_t>(there.row));
#if ASC_WRITERS
    visit.number = one.number;
#endif
    asc_take_counts(visit, one);
    if (records && one.values)
        asc_touch(visit, there.place.slot);
}

template <class Element, class Where>
ASC_DEVICE void asc_record(asc_rows_visit<Where> &visit, uint32_t row, uint32_t col, const Element &value)
{
    asc_with_row(visit, row, true, [&](asc_visit &one, uint32_t at) { asc_record(one, at, col, value); });
}

template <class Element, class Where>
ASC_DEVICE void asc_record_two(asc_rows_visit<Where> &visit, uint32_t row, uint32_t col, uint32_t next_row,
                               uint32_t next_col, const Element &value, const Element &next)
{
    if (row == next_row) {
        asc_with_row(visit, row, true, [&](asc_visit &one, uint32_t at) {
            asc_record_two<Element>(one, at, col, at, next_col, value, next);
        });
        return;
    }
    asc_record(visit, row, col, value);
    asc_record(visit, next_row, next_col, next);
}

#if ASC_MODE == 2
template <class Element, class Where>
ASC_DEVICE void asc_feed(asc_rows_visit<Where> &visit, uint32_t row, uint32_t col, Element &value)
{
    if (visit.fed)
        asc_with_row(visit, row, false, [&](asc_visit &one, uint32_t at) { asc_feed(one, at, col, value); });
}
template <class Element, class Where>
ASC_DEVICE void asc_feed(asc_rows_visit<Where> &visit, uint32_t, uint32_t, const Element &)
{
    visit.unfed += visit.fed;
}
template <class Element, class Where>
ASC_DEVICE void asc_probe(asc_rows_visit<Where> &visit, uint32_t row, uint32_t col, Element &value)
{
    asc_record(visit, row, col, value);
    asc_feed(visit, row, col, value);
}
#else
template <class Element, class Where>
ASC_DEVICE void asc_feed(asc_rows_visit<Where> &, uint32_t, uint32_t, const Element &)
{
}
#endif
template <class Element, class Where>
ASC_DEVICE void asc_probe(asc_rows_visit<Where> &visit, uint32_t row, uint32_t col, const Element &value)
{
    asc_record(visit, row, col, value);
    asc_feed(visit, row, col, value);
}

template <class Element, class Where>
ASC_DEVICE void asc_compare(int channel, const asc_rows<Where> &at, int32_t kv, uint32_t row, const Element &value)
{
    const asc_row there = asc_find_row(at, row);
    asc_compare(channel, there.place, kv, there.row, value);
}

/* Values go straight to memory: those of a warp belong to several tiles, and a window of staging.h to one. */
template <class Where, class Row, class Col, class Value>
ASC_DEVICE void asc_record_all(asc_rows_visit<Where> &visit, const int n, Row row, Col col, Value value)
{
    using Element = typename asc_plain<decltype(value(0))>::type;
    if (asc_of_keys(visit.channel)) {
        asc_each_tile(visit, [&](asc_visit &one) { asc_record_all(one, n, row, col, value); });
        return;
    }
    ASC_UNROLL for (int i = 0; i + 1 < n; i += 2)
        asc_record_two<Element>(visit, row(i), col(i), row(i + 1), col(i + 1), value(i), value(i + 1));
    if (n % 2)
        asc_record(visit, row(n - 1), col(n - 1), value(n - 1));
#if ASC_MODE == 2
    ASC_UNROLL for (int i = 0; i < n; i++) asc_feed(visit, row(i), col(i), value(i));
#endif
}

template <class Where, class Value>
ASC_DEVICE void asc_record_shared(asc_rows_visit<Where> &visit, int rows, int cols, int thread, int threads,
                                  Value value)
{
    if (asc_of_keys(visit.channel))
        asc_each_tile(visit, [&](asc_visit &one) { asc_record_shared(one, rows, cols, thread, threads, value); });
    else
        asc_share(visit, rows, cols, thread, threads, value);
}

template <class Where>
ASC_DEVICE void asc_close(int channel, const asc_rows<Where> &, int32_t kv, const asc_rows_visit<Where> &visit)
{
    asc_end(channel, 0, kv, asc_lost_by(visit), false);
    ASC_UNROLL for (int i = ASC_TOUCHED - 1; i >= 0; i--)
    {
        if (visit.touched[i] >= 0)
            asc_end(channel, visit.touched[i], kv, asc_lost{}, true);
    }
    asc_checks_resume();
}

#endif
