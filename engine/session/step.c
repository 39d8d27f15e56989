/* The cursor: stepping over stages, heads, tiles and elements as they lie beside each other. */
#include "engine/session/common.h"

#include "engine/session/work.h"
#include <stdlib.h>

/* The element stays inside the tile, the judge queue turns to where the user looks. */
bool session_moved(struct session *s)
{
    session_hush(s);
    s->at.follow_first = 0;
    s->at.event = 0;
    s->tile.given_up = 0;
    s->tile.due = ELEMENT_NONE;
    session_note_lack(s, LACK_ELEMENT, false);
    if (s->run.trace) {
        struct tile tile = trace_tile(s->run.trace, s->at.cursor.channel, session_slot(s) < 0 ? 0 : session_slot(s), 0);
        if (s->at.cursor.row >= tile.rows)
            s->at.cursor.row = tile.rows - 1;
        if (s->at.cursor.col >= tile.cols)
            s->at.cursor.col = tile.cols - 1;
    }
    work_prefer(s->work, session_slot(s));
    session_refresh_detail(s);
    return true;
}

/* *value + by where that lies in [0, count); else nothing moves. */
static bool step(struct session *s, int *value, int by, int count, const char *why)
{
    if (!s->run.trace)
        return session_stay(s, "there is no run yet");
    int to = *value + by;
    if (to < 0)
        to = 0;
    if (to >= count)
        to = count - 1;
    if (to == *value)
        return session_stay(s, why);
    *value = to;
    return session_moved(s);
}

bool session_step_stage(struct session *s, int by)
{
    if (!s->run.trace)
        return session_stay(s, "there is no run yet");
    int direction = by < 0 ? -1 : 1;
    int to = (int)s->at.cursor.channel;
    for (int left = abs(by); left > 0;) {
        to += direction;
        if (to < 0 || to >= ASC_ALL_CHANNELS)
            return session_stay(s, direction > 0 ? "this is the last stage" : "this is the first stage");
        left -= trace_has(s->run.trace, to);
    }
    s->at.cursor.channel = (enum asc_channel)to;
    return session_moved(s);
}

/* The next sequence may be shorter. */
static void stay_in_sequence(struct session *s)
{
    const int q_tiles = trace_q_tiles(s->run.trace, s->at.cursor.batch);
    if (s->at.cursor.q_tile >= q_tiles)
        s->at.cursor.q_tile = q_tiles > 0 ? q_tiles - 1 : 0;
}

bool session_step_head(struct session *s, int by)
{
    if (!s->run.trace)
        return session_stay(s, "there is no run yet");
    int heads = s->run.trace->problem.heads;
    int at = s->at.cursor.batch * heads + s->at.cursor.head;
    int64_t to = (int64_t)at + by, count = (int64_t)s->run.trace->problem.batch * heads;
    if (to < 0 || to >= count)
        return session_stay(s, by > 0 ? "this is the last head" : "this is the first head");
    s->at.cursor.batch = (int)(to / heads);
    s->at.cursor.head = (int)(to % heads);
    stay_in_sequence(s);
    return session_moved(s);
}

bool session_step_q(struct session *s, int by)
{
    return step(s, &s->at.cursor.q_tile, by, s->run.trace ? trace_q_tiles(s->run.trace, s->at.cursor.batch) : 0,
                by > 0 ? "this is the last q tile" : "this is the first q tile");
}

bool session_step_kv(struct session *s, int by)
{
    if (!channel_per_kv(s->at.cursor.channel))
        return session_stay(s, "this stage exists once per q tile");
    return step(s, &s->at.cursor.kv_tile, by, s->run.trace ? s->run.trace->layout.kv_tiles : 0,
                by > 0 ? "this is the last kv tile" : "this is the first kv tile");
}

static struct tile cursor_tile(const struct session *s)
{
    int slot = session_slot(s);
    if (slot < 0)
        return (struct tile){0};
    return trace_tile(s->run.trace, s->at.cursor.channel, slot, s->at.cursor.kv_tile);
}

bool session_step_row(struct session *s, int by)
{
    int rows = cursor_tile(s).valid_rows;
    return rows ? step(s, &s->at.cursor.row, by, rows, by > 0 ? "this is the last row" : "this is the first row")
                : session_stay(s, "nothing is recorded here");
}

bool session_step_col(struct session *s, int by)
{
    int cols = cursor_tile(s).valid_cols;
    return cols ? step(s, &s->at.cursor.col, by, cols, by > 0 ? "this is the last column" : "this is the first column")
                : session_stay(s, "nothing is recorded here");
}

bool session_go(struct session *s, struct place place)
{
    if (!s->run.trace || place.slot < 0 || place.slot >= s->run.trace->layout.n_slots)
        return session_stay(s, "this place is not recorded");
    const int32_t *at = trace_slot_place(s->run.trace, place.slot);
    s->at.cursor.batch = at[0];
    s->at.cursor.head = at[1];
    s->at.cursor.q_tile = at[2];
    if (channel_per_kv(place.channel))
        s->at.cursor.kv_tile = place.kv;
    s->at.cursor.channel = place.channel;
    return session_moved(s);
}

bool session_go_cursor(struct session *s, const struct cursor *to)
{
    struct cursor at = *to;
    struct err err;
    if (!s->run.trace)
        return session_stay(s, "there is no run yet");
    if (cursor_fit(s->run.trace, &at, &err) != 0)
        return session_stay(s, err.message);
    s->at.cursor = at;
    return session_moved(s);
}

void session_cycle_shown(struct session *s)
{
    s->at.shown = (enum shown)((s->at.shown + 1) % SHOW_COUNT);
}
