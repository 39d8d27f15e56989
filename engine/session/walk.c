/* The cursor in the kernel's own execution order: over bad places, steps, kv steps, elements; and from one root of NaN
   or infinity to the next. */
#include "engine/session/common.h"
#include "engine/session/tile_values.h"
#include "engine/verdict/onset.h"
#include "engine/verdict/reports.h"
#include <stdlib.h>

static bool values_bad(const struct summary *summary)
{
    if (summary->first.slot >= 0)
        return true;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (summary->stage[ch].bad_global)
            return true;
    return false;
}

/* The stage at whose tiles reports are visited: the cursor's, where it has kv tiles. */
static enum asc_channel report_stage(const struct session *s)
{
    return channel_per_kv(s->at.cursor.channel) ? s->at.cursor.channel : asc_s;
}

/* The tile of a report, as far as it is recorded; those without a kv tile stand at the first. slot -1: nowhere. */
static struct place place_of_report(const struct session *s, const struct trace_event *e)
{
    const struct trace *t = s->run.trace;
    struct place place = {.slot = -1, .kv = e->kv_tile < 0 ? 0 : e->kv_tile, .channel = report_stage(s)};
    if (event_is_mistake(e->kind) && e->batch >= 0 && e->batch < t->problem.batch && e->head >= 0 &&
        e->head < t->problem.heads && e->q_tile >= 0 && e->q_tile < t->layout.q_tiles && place.kv < t->layout.kv_tiles)
        place.slot = trace_slot(t, e->batch, e->head, e->q_tile);
    return place;
}

static struct place first_report(const struct session *s)
{
    struct place place = {.slot = -1};
    for (size_t i = 0; i < s->run.trace->info.n_events && place.slot < 0; i++)
        place = place_of_report(s, &s->run.trace->info.events[i]);
    return place;
}

static bool has_report(const struct session *s, struct place place)
{
    for (size_t i = 0; i < s->run.trace->info.n_events && place.channel == report_stage(s); i++)
        if (place_same(place_of_report(s, &s->run.trace->info.events[i]), place))
            return true;
    return false;
}

bool session_go_first_bad(struct session *s)
{
    if (!s->run.judgement)
        return session_stay(s, "nothing is judged yet");
    const struct summary *summary = &s->run.judgement->summary;
    struct place first = summary->first;
    if (first.slot < 0 && !values_bad(summary))
        first = first_report(s);
    if (first.slot < 0)
        return session_stay(s, "no bad tile so far");
    if (!s->at.follow_first) /* else nobody has asked for it */
        jumps_note(&s->at.jumps, &s->at.cursor);
    session_go(s, first);
    s->at.cursor.row = s->at.cursor.col = 0;
    session_find_element(s, 0);
    session_refresh_detail(s);
    return true;
}

bool session_go_worst(struct session *s)
{
    const bool late = !s->tile.detail.got && tile_values_under_way(s->tile.values);
    if (!s->tile.detail.got && !late)
        return session_stay(s, "nothing is judged here");
    session_find_element(s, 1);
    return late ? session_stay(s, "once the values of this tile are computed") : session_moved(s);
}

/* Where the cursor stands in its slot's sequence, or -1. */
static int find_place(const struct place *places, int n, struct place place)
{
    for (int i = 0; i < n; i++)
        if (places[i].kv == place.kv && places[i].channel == place.channel)
            return i;
    return -1;
}

/* The nearest slot at or after (before) the cursor's (batch, head, q tile); *exact says whether it is that one. */
static int nearest_slot(const struct session *s, int direction, int *exact)
{
    const struct trace *t = s->run.trace;
    int slot = session_slot(s);
    *exact = slot >= 0;
    if (*exact)
        return slot;
    for (int i = direction > 0 ? 0 : t->layout.n_slots - 1; i >= 0 && i < t->layout.n_slots; i += direction) {
        const int32_t *at = trace_slot_place(t, i);
        int64_t there = ((int64_t)at[0] * t->problem.heads + at[1]) * t->layout.q_tiles + at[2];
        int64_t here = ((int64_t)s->at.cursor.batch * t->problem.heads + s->at.cursor.head) * t->layout.q_tiles +
                       s->at.cursor.q_tile;
        if (direction > 0 ? there > here : there < here)
            return i;
    }
    return -1;
}

/* From the cursor on (by < 0: back), as the kernel ran, over the places that are wanted; the last of them is *found.
   Returns how many there were, at most |by|; -1 without memory. */
static int walk(const struct session *s, int by, bool (*wanted)(const struct session *s, struct place place),
                struct place *found)
{
    const struct judgement *j = s->run.judgement;
    const int direction = by < 0 ? -1 : 1;
    struct place *places = calloc((size_t)j->kv_tiles * ASC_ALL_CHANNELS, sizeof *places);
    if (!places)
        return -1;
    int exact, left = abs(by), slot = nearest_slot(s, direction, &exact);
    for (; slot >= 0 && slot < j->n_slots && left > 0; slot += direction) {
        if (!judgement_slot_done(j, slot))
            continue;
        const int n = judgement_sequence(s->run.trace, slot, places);
        if (n < 0) {
            free(places);
            return -1;
        }
        int at = direction > 0 ? -1 : n;
        if (exact)
            at = find_place(places, n, session_place(s));
        exact = 0;
        for (at += direction; at >= 0 && at < n && left > 0; at += direction)
            if (wanted(s, places[at])) {
                *found = places[at];
                left--;
            }
    }
    free(places);
    return abs(by) - left;
}

static bool is_bad(const struct session *s, struct place place)
{
    const struct summary *summary = &s->run.judgement->summary;
    const unsigned stages = summary->culprits & ~(1u << CULPRIT_LOOP);
    return judgement_tile_bad(s->run.judgement, place, !stages) || judgement_tile_unvisited(s->run.judgement, place) ||
           (!values_bad(summary) && has_report(s, place));
}

/* What the kernel ran through, or should have. */
static bool is_step(const struct session *s, struct place place)
{
    if (channel_is_own(place.channel))
        return trace_first_stamp(s->run.trace, place.channel, place.slot, place.kv) != 0;
    return trace_has(s->run.trace, place.channel) &&
           (judgement_tile(s->run.judgement, place)->local.visited || !channel_per_kv(place.channel) ||
            judgement_tile_unvisited(s->run.judgement, place));
}

static bool is_step_of_stage(const struct session *s, struct place place)
{
    return place.channel == s->at.cursor.channel && is_step(s, place);
}

/* 1: the cursor stands on the last of them. */
static bool go_along(struct session *s, int by, bool (*wanted)(const struct session *s, struct place place),
                     const char *none_after, const char *none_before)
{
    struct place found = {.slot = -1};
    if (!s->run.judgement)
        return session_stay(s, "nothing is judged yet");
    if (walk(s, by, wanted, &found) < 0)
        return session_stay(s, "out of memory");
    if (found.slot < 0)
        return session_stay(s, by > 0 ? none_after : none_before);
    return session_go(s, found);
}

bool session_step_bad(struct session *s, int by)
{
    const struct cursor from = s->at.cursor;
    if (!go_along(s, by, is_bad, "no bad tile after this one", "no bad tile before this one"))
        return false;
    jumps_note(&s->at.jumps, &from);
    s->at.cursor.row = s->at.cursor.col = 0;
    session_find_element(s, 0);
    session_refresh_detail(s);
    return true;
}

bool session_step_order(struct session *s, int by)
{
    return go_along(s, by, is_step, "the run ends here", "the run begins here");
}

bool session_step_visit(struct session *s, int by)
{
    return go_along(s, by, is_step_of_stage, "this stage does not run again", "this stage does not run before this");
}

/* Elements of the cursor's tile, [rows][cols]; 0: none. */
static int64_t tile_elements(const struct session *s, int *cols)
{
    const int slot = session_slot(s);
    if (slot < 0)
        return 0;
    const struct tile tile = trace_tile(s->run.trace, s->at.cursor.channel, slot, s->at.cursor.kv_tile);
    *cols = tile.valid_cols;
    return (int64_t)tile.valid_rows * tile.valid_cols;
}

bool session_step_element(struct session *s, int by)
{
    int cols = 0, moves = 0;
    for (int64_t left = by; left != 0;) {
        const int64_t n = tile_elements(s, &cols), at = (int64_t)s->at.cursor.row * cols + s->at.cursor.col;
        if (n == 0)
            return session_stay(s, "nothing is recorded here");
        const int64_t to = at + left;
        if (to >= 0 && to < n) {
            s->at.cursor.row = (int)(to / cols);
            s->at.cursor.col = (int)(to % cols);
            return session_moved(s);
        }
        /* Into the next tile of this stage, or the one before. */
        left = to < 0 ? to + 1 : to - n;
        if (!session_step_visit(s, to < 0 ? -1 : 1))
            return moves;
        moves = 1;
        const int64_t there = tile_elements(s, &cols);
        s->at.cursor.row = to < 0 ? (int)((there - 1) / cols) : 0;
        s->at.cursor.col = to < 0 ? (int)((there - 1) % cols) : 0;
    }
    return session_moved(s);
}

bool session_jump_to(struct session *s, const struct cursor *to)
{
    const struct cursor from = s->at.cursor;
    if (!session_go_cursor(s, to))
        return false;
    if (!cursor_same(&from, &s->at.cursor))
        jumps_note(&s->at.jumps, &from);
    return true;
}

bool session_go_mark(struct session *s, uint32_t letter)
{
    const struct cursor *mark = jumps_mark(&s->at.jumps, letter);
    if (mark) {
        const struct cursor to = *mark;
        return session_jump_to(s, &to);
    }
    session_say(s, letter == '\'' ? "there was no jump yet" : "no mark '%c'", (int)letter);
    return false;
}

bool session_set_mark(struct session *s, uint32_t letter)
{
    const bool set = jumps_set_mark(&s->at.jumps, letter, &s->at.cursor);
    if (set)
        session_say(s, "marked as %c", (int)letter);
    else
        session_say(s, "a mark is a letter, a to z or A to Z");
    return set;
}

void session_toggle_pin(struct session *s, const struct cursor *at)
{
    const int pinned = s->run.trace ? pins_toggle(&s->at.pins, at) : -1;
    if (pinned >= 0)
        session_refresh_detail(s);
    session_say(s, "%s",
                !s->run.trace ? "there is no run yet"
                : pinned < 0  ? "four elements are pinned: `:unpin N` removes one"
                : pinned      ? "pinned"
                              : "unpinned");
}

void session_unpin(struct session *s, int i)
{
    if (i < 0)
        pins_free(&s->at.pins);
    else
        pins_remove(&s->at.pins, i);
}

bool session_jump(struct session *s, int by)
{
    struct cursor to;
    int moves = 0;
    for (; moves < abs(by); moves++) {
        if (!(by < 0 ? jumps_back(&s->at.jumps, &s->at.cursor, &to) : jumps_forward(&s->at.jumps, &s->at.cursor, &to)))
            break;
        if (!session_go_cursor(s, &to)) /* a run of another shape */
            return false;
    }
    return moves ? true : session_stay(s, by < 0 ? "no jump before this one" : "no jump after this one");
}

int session_root(const struct session *s)
{
    const struct place place = session_place(s);
    return s->run.judgement && place.slot >= 0 ? run_onset_at(s->run.judgement->onset, place, s->at.cursor.row) : -1;
}

static bool go(struct session *s, const struct run_root *r)
{
    const int32_t *at = trace_slot_place(s->run.trace, r->slot);
    struct cursor to = s->at.cursor;
    to.batch = at[0];
    to.head = at[1];
    to.q_tile = at[2];
    to.channel = r->root.channel;
    to.kv_tile = channel_per_kv(r->root.channel) ? r->root.kv : to.kv_tile;
    to.row = r->root.row;
    to.col = r->root.col;
    return session_jump_to(s, &to);
}

bool session_go_root(struct session *s, int by)
{
    const struct judgement *j = s->run.judgement;
    const int at = session_root(s);
    if (!j || !j->complete)
        return session_stay(s, "not judged yet");
    if (s->run.isolation.trace)
        return session_stay(s, "NaN origin is not computed for isolated runs");
    if (!j->onset || !j->onset->n)
        return session_stay(s, "no unexpected NaN or infinity in this run");
    const struct run_root *roots = j->onset->first, *first = run_onset_first(j->onset);
    if (at < 0 && by < 0)
        return go(s, &roots[j->onset->n - 1]);
    if (at < 0 || by == 0)
        return go(s, first ? first : roots);
    if (at + by < 0 || at + by >= j->onset->n)
        return session_stay(s, by > 0 ? "this is the last root that is kept" : "this is the first root");
    return go(s, &roots[at + by]);
}
