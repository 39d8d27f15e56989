#include "engine/session/cursor_tile.h"

#include "engine/base/clock.h"
#include "engine/session/common.h"
#include "engine/session/tile_values.h"
#include "engine/session/work.h"
#include "engine/verdict/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void drop_row_state(struct session *s)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        free(s->tile.row_want[ch]);
        s->tile.row_want[ch] = NULL;
    }
}

static enum lack lack_of(enum tile_values_kind kind)
{
    static const enum lack lacks[] = {
        [VALUES_DETAIL] = LACK_DETAIL, [VALUES_ROW] = LACK_ROW_STATE, [VALUES_OPERANDS] = LACK_OPERANDS,
        [VALUES_PIN] = LACK_PINS,      [VALUES_STATES] = LACK_STATES, [VALUES_PICTURE] = LACK_PICTURE};
    return lacks[kind];
}

static void drop_states(struct session *s)
{
    row_states_free(&s->tile.states);
}

/* What is there of another place than the cursor's goes. */
static void drop_stale(struct session *s)
{
    const struct place place = session_place(s);
    if (!place_same(s->tile.detail_place, place))
        tile_detail_free(&s->tile.detail);
    if (s->tile.row_slot != place.slot || s->tile.row != s->at.cursor.row)
        drop_row_state(s);
    if (!place_same(s->tile.operands_place, place) || s->tile.operands_row != s->at.cursor.row ||
        s->tile.operands_col != s->at.cursor.col) {
        derivation_free(&s->tile.operands);
        s->tile.operands_made = false;
    }
    if (!s->tile.wants_states || s->tile.states_slot != place.slot)
        drop_states(s);
    if (picture_is_stale(s))
        picture_free(&s->tile.picture);
}

/* What there was no memory for at another element is tried again. */
static void drop_lacks(struct session *s)
{
    if (!cursor_same(&s->tile.lacked_by, &s->at.cursor))
        s->lacks &= ~(unsigned)(LACK_DETAIL | LACK_ROW_STATE | LACK_OPERANDS | LACK_STATES | LACK_PICTURE);
    if (!s->tile.wants_states)
        s->lacks &= ~(unsigned)LACK_STATES;
}

static bool element_exists(const struct session *s, struct place place)
{
    const struct asc_problem *p = &s->run.trace->problem;
    const int rows =
        channel_valid_rows(place.channel, p, &s->run.trace->plan, s->at.cursor.batch, s->at.cursor.q_tile, place.kv);
    const int cols = channel_valid_cols(place.channel, p, &s->run.trace->plan, s->at.cursor.batch, place.kv);
    return s->at.cursor.row >= 0 && s->at.cursor.row < rows && s->at.cursor.col >= 0 && s->at.cursor.col < cols;
}

static bool may_ask(const struct session *s, enum tile_values_kind kind, unsigned failed)
{
    return !((s->tile.given_up | failed) & lack_of(kind));
}

/* The first piece that is missing; failed: set of enum lack that is not asked for again. 0: none is. */
static int next_piece(const struct session *s, unsigned failed, struct tile_values_ask *ask)
{
    const struct place place = session_place(s);
    const struct cursor *c = &s->at.cursor;
    if (!s->run.trace || !s->run.judgement)
        return 0;
    const bool judged = judgement_slot_done(s->run.judgement, place.slot);
    if (judged && trace_has(s->run.trace, place.channel)) {
        *ask = (struct tile_values_ask){.kind = VALUES_DETAIL, .place = place};
        if (!s->tile.detail.got && may_ask(s, VALUES_DETAIL, failed))
            return 1;
        *ask = (struct tile_values_ask){VALUES_OPERANDS, place, c->row, c->col};
        if (!s->tile.operands_made && may_ask(s, VALUES_OPERANDS, failed) && element_exists(s, place))
            return 1;
        *ask = (struct tile_values_ask){VALUES_ROW, {place.slot, 0, asc_m}, c->row, 0};
        if (s->tile.detail.got && !s->tile.row_want[asc_m] && may_ask(s, VALUES_ROW, failed))
            return 1;
    }
    const int i = pins_unknown(&s->at.pins, s->run.trace, s->run.judgement);
    if (i >= 0 && may_ask(s, VALUES_PIN, failed)) {
        const struct cursor *at = &s->at.pins.at[i].at;
        const int slot = trace_slot(s->run.trace, at->batch, at->head, at->q_tile);
        *ask = (struct tile_values_ask){VALUES_PIN, {slot, 0, at->channel}, at->row, at->col};
        return 1;
    }
    *ask = (struct tile_values_ask){.kind = VALUES_STATES, .place = {place.slot, 0, asc_m}};
    if (judged && s->tile.wants_states && !s->tile.states.steps && may_ask(s, VALUES_STATES, failed))
        return 1;
    const int slot = may_ask(s, VALUES_PICTURE, failed) ? picture_next_slot(s) : -1;
    *ask = (struct tile_values_ask){
        VALUES_PICTURE, {slot, 0, place.channel}, s->tile.picture_global, (int)s->tile.wants_picture};
    return slot >= 0;
}

/* The first bad element in row order, or the worst. */
void session_find_element(struct session *s, bool worst)
{
    const struct tile_detail *d = &s->tile.detail;
    double best = -1;
    session_note_lack(s, LACK_ELEMENT, s->lacks & LACK_DETAIL);
    if (!d->got && tile_values_under_way(s->tile.values))
        s->tile.due = worst ? ELEMENT_WORST : ELEMENT_FIRST_BAD;
    for (int i = 0; d->got && i < d->rows * d->cols; i++) {
        double error = d->got[i] - d->want_local[i];
        double ratio = d->bound_local[i] > 0 ? (error < 0 ? -error : error) / d->bound_local[i] : 0;
        int bad = class_bad(d->class_local[i]);
        if (!(ratio <= 1e300) || (bad && ratio <= 1))
            ratio = bad ? 1e300 : 0;
        if (d->class_local[i] == CLASS_OK && ratio > 1) /* within what its type rounds */
            ratio = 1;
        if (ratio > best && (worst || bad)) {
            best = ratio;
            s->at.cursor.row = i / d->cols;
            s->at.cursor.col = i % d->cols;
            if (!worst)
                break;
        }
    }
}

static void go_due(struct session *s)
{
    const enum element_due due = s->tile.due;
    s->tile.due = ELEMENT_NONE;
    if (due == ELEMENT_STOP)
        stop_element(&s->tile.due_stop, &s->tile.detail, &s->at.cursor.row, &s->at.cursor.col);
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
        pins_take(&s->at.pins, &a->pin);
    else if (!a->failed && next_piece(s, failed, &wanted) && tile_values_same(ask, &wanted))
        switch (ask->kind) {
        case VALUES_DETAIL:
            s->tile.detail = a->detail;
            a->detail = (struct tile_detail){0};
            s->tile.detail_place = ask->place;
            go_due(s);
            break;
        case VALUES_ROW:
            memcpy(s->tile.row_want, a->row_want, sizeof s->tile.row_want);
            memset(a->row_want, 0, sizeof a->row_want);
            s->tile.row_slot = ask->place.slot;
            s->tile.row = ask->row;
            break;
        case VALUES_OPERANDS:
            s->tile.operands = a->operands;
            a->operands = (struct derivation){0};
            s->tile.operands_place = ask->place;
            s->tile.operands_row = ask->row;
            s->tile.operands_col = ask->col;
            s->tile.operands_made = true;
            break;
        case VALUES_PICTURE:
            if (picture_take(s, &a->picture) != 0) {
                s->tile.given_up |= LACK_PICTURE;
                session_note_lack(s, LACK_PICTURE, true);
            }
            break;
        default:
            s->tile.states = a->states;
            a->states = (struct row_states){0};
            s->tile.states_slot = ask->place.slot;
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
    if (s->tile.unseen)
        return;
    drop_stale(s);
    drop_lacks(s);
    if (s->tile.patience_s > 0 &&
        begun - s->tile.lacked_at < 1) /* a loop that is woken by each failure tries again in a while */
        failed = s->lacks;
    for (;;) {
        const struct tile_values_ask *now = tile_values_under_way(s->tile.values);
        const int wanted = next_piece(s, failed, &ask);
        if (!now) {
            if (!wanted)
                return;
            const bool lacking = !s->tile.values && tile_values_new(wake, s->work, &s->tile.values) != 0;
            session_note_lack(s, lack_of(ask.kind), lacking);
            if (lacking)
                return;
            tile_values_begin(s->tile.values, s->run.trace, s->run.judgement, &ask);
            continue;
        }
        const bool stale = !wanted || !tile_values_same(now, &ask);
        if (stale)
            tile_values_give_up(s->tile.values);
        const double waited = fmax(tile_values_seconds(s->tile.values), clock_seconds() - begun);
        if (!tile_values_take(s->tile.values, s->tile.patience_s > 0 ? fmax(s->tile.patience_s - waited, 0) : -1,
                              &answer))
            return;
        if (answer.failed && !stale && !(s->tile.given_up & lack_of(ask.kind))) {
            failed |= lack_of(ask.kind);
            s->tile.lacked_at = clock_seconds();
            s->tile.lacked_by = s->at.cursor;
            session_note_lack(s, lack_of(ask.kind), true);
            if (ask.kind == VALUES_DETAIL && s->tile.due)
                session_note_lack(s, LACK_ELEMENT, true);
        }
        adopt(s, failed, &answer);
        drop_stale(s); /* the cursor may have gone to its element */
    }
}

bool session_values_under_way(const struct session *s, double *share, double *seconds)
{
    if (!tile_values_under_way(s->tile.values))
        return false;
    *share = tile_values_share(s->tile.values);
    *seconds = tile_values_seconds(s->tile.values);
    return true;
}

bool session_stop_values(struct session *s)
{
    if (!tile_values_under_way(s->tile.values))
        return false;
    s->tile.given_up = ~0u;
    s->tile.due = ELEMENT_NONE;
    tile_values_give_up(s->tile.values);
    return true;
}

void session_drop_detail(struct session *s)
{
    struct tile_values_answer answer;
    if (tile_values_under_way(s->tile.values)) {
        tile_values_give_up(s->tile.values);
        tile_values_take(s->tile.values, -1, &answer);
        tile_values_answer_free(&answer);
    }
    s->lacks = s->tile.given_up = 0;
    s->tile.due = ELEMENT_NONE;
    tile_detail_free(&s->tile.detail);
    derivation_free(&s->tile.operands);
    s->tile.operands_made = false;
    drop_row_state(s);
    drop_states(s);
    picture_free(&s->tile.picture);
    pins_forget(&s->at.pins);
}

void session_want_states(struct session *s, bool on)
{
    const bool changed = s->tile.wants_states != on;
    s->tile.wants_states = on;
    if (changed || s->lacks)
        session_refresh_detail(s);
}

void session_want_picture(struct session *s, enum picture_scope scope, bool global)
{
    const bool changed = s->tile.wants_picture != scope || s->tile.picture_global != global;
    s->tile.wants_picture = scope;
    s->tile.picture_global = global;
    if (changed)
        session_refresh_detail(s);
}
