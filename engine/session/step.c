/* The cursor: stepping over stages, heads, tiles and elements as they lie beside each other. */
#include "engine/session/step.h"

#include "engine/base/clock.h"
#include "engine/cursor/stop.h"
#include "engine/session/tile_values.h"
#include "engine/session/work.h"
#include "engine/verdict/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static enum lack lack_of(enum tile_values_kind kind)
{
    static const enum lack lacks[] = {[VALUES_DETAIL] = LACK_DETAIL,
                                      [VALUES_ROW] = LACK_ROW_STATE,
                                      [VALUES_OPERANDS] = LACK_OPERANDS,
                                      [VALUES_PIN] = LACK_PINS,
                                      [VALUES_STATES] = LACK_STATES};
    return lacks[kind];
}

/* What is there of another place than the cursor's goes. */
static void drop_stale(struct session *s)
{
    const struct place place = session_place(s);
    if (!place_same(s->detail_place, place))
        tile_detail_free(&s->detail);
    if (s->row_slot != place.slot || s->detail_row != s->cursor.row)
        drop_row_state(s);
    if (!place_same(s->operands_place, place) || s->operands_row != s->cursor.row || s->operands_col != s->cursor.col) {
        derivation_free(&s->operands);
        s->operands_made = false;
    }
    if (!s->wants_states || s->states_slot != place.slot)
        session_drop_states(s);
}

/* What there was no memory for at another element is tried again. */
static void drop_lacks(struct session *s)
{
    if (!cursor_same(&s->lacked_by, &s->cursor))
        s->lacks &= ~(unsigned)(LACK_DETAIL | LACK_ROW_STATE | LACK_OPERANDS | LACK_STATES);
    if (!s->wants_states)
        s->lacks &= ~(unsigned)LACK_STATES;
}

static bool element_exists(const struct session *s, struct place place)
{
    const struct asc_problem *p = &s->trace->problem;
    const int rows = channel_valid_rows(place.channel, p, &s->trace->plan, s->cursor.q_tile, place.kv);
    const int cols = channel_valid_cols(place.channel, p, &s->trace->plan, place.kv);
    return s->cursor.row >= 0 && s->cursor.row < rows && s->cursor.col >= 0 && s->cursor.col < cols;
}

static bool may_ask(const struct session *s, enum tile_values_kind kind, unsigned failed)
{
    return !((s->given_up | failed) & lack_of(kind));
}

/* The first piece that is missing; failed: set of enum lack that is not asked for again. 0: none is. */
static int next_piece(const struct session *s, unsigned failed, struct tile_values_ask *ask)
{
    const struct place place = session_place(s);
    const struct cursor *c = &s->cursor;
    if (!s->trace || !s->judgement)
        return 0;
    const bool judged = judgement_slot_done(s->judgement, place.slot);
    if (judged && trace_has(s->trace, place.channel)) {
        *ask = (struct tile_values_ask){.kind = VALUES_DETAIL, .place = place};
        if (!s->detail.got && may_ask(s, VALUES_DETAIL, failed))
            return 1;
        *ask = (struct tile_values_ask){VALUES_OPERANDS, place, c->row, c->col};
        if (!s->operands_made && may_ask(s, VALUES_OPERANDS, failed) && element_exists(s, place))
            return 1;
        *ask = (struct tile_values_ask){VALUES_ROW, {place.slot, 0, asc_m}, c->row, 0};
        if (s->detail.got && !s->row_want[asc_m] && may_ask(s, VALUES_ROW, failed))
            return 1;
    }
    const int i = pins_unknown(&s->pins, s->trace, s->judgement);
    if (i >= 0 && may_ask(s, VALUES_PIN, failed)) {
        const struct cursor *at = &s->pins.at[i].at;
        const int slot = trace_slot(s->trace, at->batch, at->head, at->q_tile);
        *ask = (struct tile_values_ask){VALUES_PIN, {slot, 0, at->channel}, at->row, at->col};
        return 1;
    }
    *ask = (struct tile_values_ask){.kind = VALUES_STATES, .place = {place.slot, 0, asc_m}};
    return judged && s->wants_states && !s->states.steps && may_ask(s, VALUES_STATES, failed);
}

static void go_due(struct session *s)
{
    const enum element_due due = s->element_due;
    s->element_due = ELEMENT_NONE;
    if (due == ELEMENT_STOP)
        stop_element(&s->due_stop, &s->detail, &s->cursor.row, &s->cursor.col);
    else if (due != ELEMENT_NONE)
        session_find_element(s, due == ELEMENT_WORST);
}

/* Takes over what is still of the cursor's place. failed: the pieces that no memory was found for: the ones after them
   are wanted all the same. */
static void adopt(struct session *s, unsigned failed, struct tile_values_answer *a)
{
    const struct tile_values_ask *ask = &a->ask;
    struct tile_values_ask wanted;
    if (ask->kind == VALUES_PIN && !a->failed)
        pins_take(&s->pins, &a->pin);
    else if (!a->failed && next_piece(s, failed, &wanted) && tile_values_same(ask, &wanted))
        switch (ask->kind) {
        case VALUES_DETAIL:
            s->detail = a->detail;
            a->detail = (struct tile_detail){0};
            s->detail_place = ask->place;
            go_due(s);
            break;
        case VALUES_ROW:
            memcpy(s->row_want, a->row_want, sizeof s->row_want);
            memset(a->row_want, 0, sizeof a->row_want);
            s->row_slot = ask->place.slot;
            s->detail_row = ask->row;
            break;
        case VALUES_OPERANDS:
            s->operands = a->operands;
            a->operands = (struct derivation){0};
            s->operands_place = ask->place;
            s->operands_row = ask->row;
            s->operands_col = ask->col;
            s->operands_made = true;
            break;
        default:
            s->states = a->states;
            a->states = (struct row_states){0};
            s->states_slot = ask->place.slot;
            break;
        }
    tile_values_answer_free(a);
}

static void wake(void *ctx)
{
    work_wake(ctx);
}

void session_refresh_detail(struct session *s)
{
    const double begun = clock_seconds();
    unsigned failed = 0;
    struct tile_values_ask ask;
    struct tile_values_answer answer;
    if (s->unseen)
        return;
    drop_stale(s);
    drop_lacks(s);
    if (s->patience_s > 0 && begun - s->lacked_at < 1) /* a loop that is woken by each failure tries again in a while */
        failed = s->lacks;
    for (;;) {
        const struct tile_values_ask *now = tile_values_under_way(s->tile_values);
        const int wanted = next_piece(s, failed, &ask);
        if (!now) {
            if (!wanted)
                return;
            const bool lacking = !s->tile_values && tile_values_new(wake, s->work, &s->tile_values) != 0;
            session_note_lack(s, lack_of(ask.kind), lacking);
            if (lacking)
                return;
            tile_values_begin(s->tile_values, s->trace, s->judgement, &ask);
            continue;
        }
        const bool stale = !wanted || !tile_values_same(now, &ask);
        if (stale)
            tile_values_give_up(s->tile_values);
        const double waited = fmax(tile_values_seconds(s->tile_values), clock_seconds() - begun);
        if (!tile_values_take(s->tile_values, s->patience_s > 0 ? fmax(s->patience_s - waited, 0) : -1, &answer))
            return;
        if (answer.failed && !stale && !(s->given_up & lack_of(ask.kind))) {
            failed |= lack_of(ask.kind);
            s->lacked_at = clock_seconds();
            s->lacked_by = s->cursor;
            session_note_lack(s, lack_of(ask.kind), true);
            if (ask.kind == VALUES_DETAIL && s->element_due)
                session_note_lack(s, LACK_ELEMENT, true);
        }
        adopt(s, failed, &answer);
        drop_stale(s); /* the cursor may have gone to its element */
    }
}

int session_values_under_way(const struct session *s, double *share, double *seconds)
{
    if (!tile_values_under_way(s->tile_values))
        return 0;
    *share = tile_values_share(s->tile_values);
    *seconds = tile_values_seconds(s->tile_values);
    return 1;
}

int session_stop_values(struct session *s)
{
    if (!tile_values_under_way(s->tile_values))
        return 0;
    s->given_up = ~0u;
    s->element_due = ELEMENT_NONE;
    tile_values_give_up(s->tile_values);
    return 1;
}

void session_drop_detail(struct session *s)
{
    struct tile_values_answer answer;
    if (tile_values_under_way(s->tile_values)) {
        tile_values_give_up(s->tile_values);
        tile_values_take(s->tile_values, -1, &answer);
        tile_values_answer_free(&answer);
    }
    s->lacks = s->given_up = 0;
    s->element_due = ELEMENT_NONE;
    tile_detail_free(&s->detail);
    derivation_free(&s->operands);
    s->operands_made = false;
    drop_row_state(s);
    session_drop_states(s);
    pins_forget(&s->pins);
}

/* The element stays inside the tile, the judge queue turns to where the user looks. */
int session_moved(struct session *s)
{
    session_hush(s);
    s->follow_first = 0;
    s->at_event = 0;
    s->given_up = 0;
    s->element_due = ELEMENT_NONE;
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
    session_say(s, "%s", why);
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
