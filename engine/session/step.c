/* The cursor: stepping over stages, heads, tiles and elements as they lie beside each other. */
#include "engine/session/step.h"

#include "engine/session/work.h"
#include "engine/verdict/case.h"

#include <stdio.h>
#include <stdlib.h>

int session_slot(const struct session *s)
{
    if (!s->trace)
        return -1;
    return trace_slot(s->trace, s->cursor.batch, s->cursor.head, s->cursor.q_tile);
}

struct place session_place(const struct session *s)
{
    int kv = channel_per_kv(s->cursor.channel) ? s->cursor.kv_tile : 0;
    return (struct place){session_slot(s), kv, s->cursor.channel};
}

const struct trace_site *session_site(const struct session *s)
{
    return s->trace ? trace_site(s->trace, s->cursor.channel) : NULL;
}

static void drop_row_state(struct session *s)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        free(s->row_want[ch]);
        s->row_want[ch] = NULL;
    }
}

/* m, alpha and l of the cursor's row, if its stage has rows of queries. */
static void refresh_row_state(struct session *s, int slot)
{
    const size_t bytes = (size_t)s->trace->layout.kv_tiles * sizeof(double);
    struct slot_case c;
    drop_row_state(s);
    session_note_lack(s, LACK_ROW_STATE, true);
    if (slot_case_make(s->trace, slot, &c) != 0)
        return;
    const int row = s->cursor.row < c.c.in_q.rows ? s->cursor.row : c.c.in_q.rows - 1;
    double *m = malloc(bytes), *alpha = malloc(bytes), *l = malloc(bytes);
    s->row_want[asc_m] = m;
    s->row_want[asc_alpha] = alpha;
    s->row_want[asc_l] = l;
    const bool failed = !m || !alpha || !l || oracle_row_state(&c.c, row, m, alpha, l) != 0;
    if (failed)
        drop_row_state(s);
    session_note_lack(s, LACK_ROW_STATE, failed);
    slot_case_free(&c);
}

static int same_place(struct place a, struct place b)
{
    return a.slot == b.slot && a.kv == b.kv && a.channel == b.channel;
}

/* What the cursor's element was made from. */
static void refresh_operands(struct session *s)
{
    const struct place place = session_place(s);
    struct derivation *d = &s->operands;
    if (d->derived && same_place(s->operands_place, place) && d->row == s->cursor.row && d->col == s->cursor.col)
        return;
    derivation_free(d);
    session_note_lack(s, LACK_OPERANDS, false);
    if (place.slot < 0 || !s->judgement || !judgement_slot_done(s->judgement, place.slot) ||
        !trace_has(s->trace, place.channel))
        return;
    const int rows = channel_valid_rows(place.channel, &s->trace->problem, &s->trace->plan, s->cursor.q_tile, place.kv);
    const int cols = channel_valid_cols(place.channel, &s->trace->problem, &s->trace->plan, place.kv);
    if (s->cursor.row < 0 || s->cursor.row >= rows || s->cursor.col < 0 || s->cursor.col >= cols)
        return;
    const int failed = operands_find(s->judgement, s->trace, place, s->cursor.row, s->cursor.col, s->scratch, d);
    session_note_lack(s, LACK_OPERANDS, failed != 0);
    s->operands_place = place;
}

void session_refresh_detail(struct session *s)
{
    if (s->unseen)
        return;
    refresh_operands(s);
    const struct place place = session_place(s);
    if (s->judgement)
        session_note_lack(s, LACK_PINS, pins_refresh(&s->pins, s->trace, s->judgement, s->scratch) != 0);
    session_refresh_states(s);
    const int known = s->detail.got && same_place(s->detail_place, place);
    if (known && s->detail_row == s->cursor.row && !(s->lacks & LACK_ROW_STATE))
        return;
    session_note_lack(s, LACK_ROW_STATE, false);
    if (!known) {
        judgement_detail_free(&s->detail);
        drop_row_state(s);
        session_note_lack(s, LACK_DETAIL, false);
        if (place.slot < 0 || !s->judgement || !judgement_slot_done(s->judgement, place.slot) ||
            !trace_has(s->trace, place.channel))
            return;
        session_note_lack(s, LACK_DETAIL, judgement_detail(s->judgement, s->trace, place, s->scratch, &s->detail) != 0);
        if (!s->detail.got)
            return;
    }
    s->detail_place = place;
    s->detail_row = s->cursor.row;
    refresh_row_state(s, place.slot);
}

void session_drop_detail(struct session *s)
{
    s->lacks = 0;
    judgement_detail_free(&s->detail);
    derivation_free(&s->operands);
    drop_row_state(s);
    session_drop_states(s);
    pins_forget(&s->pins);
}

/* The element stays inside the tile, the judge queue turns to where the user looks. */
int session_moved(struct session *s)
{
    s->message[0] = '\0';
    s->follow_first = 0;
    s->at_event = 0;
    session_note_lack(s, LACK_ELEMENT, false);
    if (s->trace) {
        struct tile tile = trace_tile(s->trace, s->cursor.channel, session_slot(s) < 0 ? 0 : session_slot(s), 0);
        if (s->cursor.row >= tile.rows)
            s->cursor.row = tile.rows - 1;
        if (s->cursor.col >= tile.cols)
            s->cursor.col = tile.cols - 1;
    }
    work_prefer(s->work, session_slot(s));
    session_refresh_detail(s);
    return 1;
}

int session_stay(struct session *s, const char *why)
{
    snprintf(s->message, sizeof s->message, "%s", why);
    return 0;
}

/* *value + by where that lies in [0, count); else nothing moves. */
static int step(struct session *s, int *value, int by, int count, const char *why)
{
    if (!s->trace)
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

int session_step_stage(struct session *s, int by)
{
    if (!s->trace)
        return session_stay(s, "there is no run yet");
    int direction = by < 0 ? -1 : 1;
    int to = (int)s->cursor.channel;
    for (int left = abs(by); left > 0;) {
        to += direction;
        if (to < 0 || to >= ASC_CHANNELS)
            return session_stay(s, direction > 0 ? "this is the last stage" : "this is the first stage");
        left -= trace_has(s->trace, to);
    }
    s->cursor.channel = (enum asc_channel)to;
    return session_moved(s);
}

int session_step_head(struct session *s, int by)
{
    if (!s->trace)
        return session_stay(s, "there is no run yet");
    int heads = s->trace->problem.heads;
    int at = s->cursor.batch * heads + s->cursor.head;
    int64_t to = (int64_t)at + by, count = (int64_t)s->trace->problem.batch * heads;
    if (to < 0 || to >= count)
        return session_stay(s, by > 0 ? "this is the last head" : "this is the first head");
    s->cursor.batch = (int)(to / heads);
    s->cursor.head = (int)(to % heads);
    return session_moved(s);
}

int session_step_q(struct session *s, int by)
{
    return step(s, &s->cursor.q_tile, by, s->trace ? s->trace->layout.q_tiles : 0,
                by > 0 ? "this is the last q tile" : "this is the first q tile");
}

int session_step_kv(struct session *s, int by)
{
    if (!channel_per_kv(s->cursor.channel))
        return session_stay(s, "this stage exists once per q tile");
    return step(s, &s->cursor.kv_tile, by, s->trace ? s->trace->layout.kv_tiles : 0,
                by > 0 ? "this is the last kv tile" : "this is the first kv tile");
}

static struct tile cursor_tile(const struct session *s)
{
    int slot = session_slot(s);
    if (slot < 0)
        return (struct tile){0};
    return trace_tile(s->trace, s->cursor.channel, slot, s->cursor.kv_tile);
}

int session_step_row(struct session *s, int by)
{
    int rows = cursor_tile(s).valid_rows;
    return rows ? step(s, &s->cursor.row, by, rows, by > 0 ? "this is the last row" : "this is the first row")
                : session_stay(s, "nothing is recorded here");
}

int session_step_col(struct session *s, int by)
{
    int cols = cursor_tile(s).valid_cols;
    return cols ? step(s, &s->cursor.col, by, cols, by > 0 ? "this is the last column" : "this is the first column")
                : session_stay(s, "nothing is recorded here");
}

int session_go(struct session *s, struct place place)
{
    if (!s->trace || place.slot < 0 || place.slot >= s->trace->layout.n_slots)
        return session_stay(s, "this place is not recorded");
    const int32_t *at = trace_slot_place(s->trace, place.slot);
    s->cursor.batch = at[0];
    s->cursor.head = at[1];
    s->cursor.q_tile = at[2];
    if (channel_per_kv(place.channel))
        s->cursor.kv_tile = place.kv;
    s->cursor.channel = place.channel;
    return session_moved(s);
}

int session_go_cursor(struct session *s, const struct cursor *to)
{
    struct cursor at = *to;
    struct err err;
    if (!s->trace)
        return session_stay(s, "there is no run yet");
    if (cursor_fit(s->trace, &at, &err) != 0)
        return session_stay(s, err.message);
    s->cursor = at;
    return session_moved(s);
}

void session_cycle_shown(struct session *s)
{
    s->shown = (enum shown)((s->shown + 1) % SHOW_COUNT);
}
