/* The cursor: stepping over stages, heads, tiles, elements and bad places. */
#include "engine/session/case.h"
#include "engine/session/reports.h"
#include "engine/session/session.h"
#include "engine/session/work.h"

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
    if (slot_case_make(s->trace, slot, &c) != 0)
        return;
    const int row = s->cursor.row < c.c.in_q.rows ? s->cursor.row : c.c.in_q.rows - 1;
    double *m = malloc(bytes), *alpha = malloc(bytes), *l = malloc(bytes);
    s->row_want[asc_m] = m;
    s->row_want[asc_alpha] = alpha;
    s->row_want[asc_l] = l;
    if (!m || !alpha || !l || oracle_row_state(&c.c, row, m, alpha, l) != 0)
        drop_row_state(s);
    slot_case_free(&c);
}

static int same_place(struct place a, struct place b)
{
    return a.slot == b.slot && a.kv == b.kv && a.channel == b.channel;
}

void session_refresh_detail(struct session *s)
{
    const struct place place = session_place(s);
    const int known = s->detail.got && same_place(s->detail_place, place);
    if (known && s->detail_row == s->cursor.row)
        return;
    if (!known) {
        judgement_detail_free(&s->detail);
        drop_row_state(s);
        if (place.slot < 0 || !s->judgement || !judgement_slot_done(s->judgement, place.slot) ||
            !trace_has(s->trace, place.channel) ||
            judgement_detail(s->judgement, s->trace, place, s->scratch, &s->detail) != 0)
            return;
    }
    s->detail_place = place;
    s->detail_row = s->cursor.row;
    refresh_row_state(s, place.slot);
}

void session_drop_detail(struct session *s)
{
    judgement_detail_free(&s->detail);
    drop_row_state(s);
}

/* The element stays inside the tile, the judge queue turns to where the user looks. */
static int moved(struct session *s)
{
    s->message[0] = '\0';
    s->follow_first = 0;
    s->at_event = 0;
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

static int refuse(struct session *s, const char *why)
{
    snprintf(s->message, sizeof s->message, "%s", why);
    return 0;
}

/* *value + by where that lies in [0, count); else nothing moves. */
static int step(struct session *s, int *value, int by, int count, const char *why)
{
    if (!s->trace)
        return refuse(s, "there is no run yet");
    int to = *value + by;
    if (to < 0)
        to = 0;
    if (to >= count)
        to = count - 1;
    if (to == *value)
        return refuse(s, why);
    *value = to;
    return moved(s);
}

int session_step_stage(struct session *s, int by)
{
    if (!s->trace)
        return refuse(s, "there is no run yet");
    int direction = by < 0 ? -1 : 1;
    int to = (int)s->cursor.channel;
    for (int left = abs(by); left > 0;) {
        to += direction;
        if (to < 0 || to >= ASC_CHANNELS)
            return refuse(s, direction > 0 ? "this is the last stage" : "this is the first stage");
        left -= trace_has(s->trace, to);
    }
    s->cursor.channel = (enum asc_channel)to;
    return moved(s);
}

int session_step_head(struct session *s, int by)
{
    if (!s->trace)
        return refuse(s, "there is no run yet");
    int heads = s->trace->problem.heads;
    int at = s->cursor.batch * heads + s->cursor.head;
    int64_t to = (int64_t)at + by, count = (int64_t)s->trace->problem.batch * heads;
    if (to < 0 || to >= count)
        return refuse(s, by > 0 ? "this is the last head" : "this is the first head");
    s->cursor.batch = (int)(to / heads);
    s->cursor.head = (int)(to % heads);
    return moved(s);
}

int session_step_q(struct session *s, int by)
{
    return step(s, &s->cursor.q_tile, by, s->trace ? s->trace->layout.q_tiles : 0,
                by > 0 ? "this is the last q tile" : "this is the first q tile");
}

int session_step_kv(struct session *s, int by)
{
    if (!channel_per_kv(s->cursor.channel))
        return refuse(s, "this stage exists once per q tile");
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
                : refuse(s, "nothing is recorded here");
}

int session_step_col(struct session *s, int by)
{
    int cols = cursor_tile(s).valid_cols;
    return cols ? step(s, &s->cursor.col, by, cols, by > 0 ? "this is the last column" : "this is the first column")
                : refuse(s, "nothing is recorded here");
}

int session_go(struct session *s, struct place place)
{
    if (!s->trace || place.slot < 0 || place.slot >= s->trace->layout.n_slots)
        return refuse(s, "this place is not recorded");
    const int32_t *at = trace_slot_place(s->trace, place.slot);
    s->cursor.batch = at[0];
    s->cursor.head = at[1];
    s->cursor.q_tile = at[2];
    if (channel_per_kv(place.channel))
        s->cursor.kv_tile = place.kv;
    s->cursor.channel = place.channel;
    return moved(s);
}

/* The first bad element in row order, or the worst. */
static void go_element(struct session *s, int worst)
{
    const struct tile_detail *d = &s->detail;
    double best = -1;
    for (int i = 0; d->got && i < d->rows * d->cols; i++) {
        double error = d->got[i] - d->want_local[i];
        double ratio = d->bound_local[i] > 0 ? (error < 0 ? -error : error) / d->bound_local[i] : 0;
        int bad = class_bad(d->class_local[i]);
        if (!(ratio <= 1e300) || (bad && ratio <= 1))
            ratio = bad ? 1e300 : 0;
        if (ratio > best && (worst || bad)) {
            best = ratio;
            s->cursor.row = i / d->cols;
            s->cursor.col = i % d->cols;
            if (!worst)
                break;
        }
    }
}

static int values_bad(const struct summary *summary)
{
    if (summary->first.slot >= 0 || summary->unvisited)
        return 1;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (summary->stage[ch].bad_global)
            return 1;
    return 0;
}

/* The stage at whose tiles reports are visited: the cursor's, where it has kv tiles. */
static enum asc_channel report_stage(const struct session *s)
{
    return channel_per_kv(s->cursor.channel) ? s->cursor.channel : asc_s;
}

/* The tile of a report, as far as it is recorded; those without a kv tile stand at the first. slot -1: nowhere. */
static struct place place_of_report(const struct session *s, const struct trace_event *e)
{
    const struct trace *t = s->trace;
    struct place place = {.slot = -1, .kv = e->kv_tile < 0 ? 0 : e->kv_tile, .channel = report_stage(s)};
    if (event_is_mistake(e->kind) && e->batch >= 0 && e->batch < t->problem.batch && e->head >= 0 &&
        e->head < t->problem.heads && e->q_tile >= 0 && e->q_tile < t->layout.q_tiles && place.kv < t->layout.kv_tiles)
        place.slot = trace_slot(t, e->batch, e->head, e->q_tile);
    return place;
}

static struct place first_report(const struct session *s)
{
    struct place place = {.slot = -1};
    for (size_t i = 0; i < s->trace->info.n_events && place.slot < 0; i++)
        place = place_of_report(s, &s->trace->info.events[i]);
    return place;
}

static int has_report(const struct session *s, struct place place)
{
    for (size_t i = 0; i < s->trace->info.n_events && place.channel == report_stage(s); i++)
        if (same_place(place_of_report(s, &s->trace->info.events[i]), place))
            return 1;
    return 0;
}

int session_go_first_bad(struct session *s)
{
    if (!s->judgement)
        return refuse(s, "nothing is judged yet");
    const struct summary *summary = &s->judgement->summary;
    struct place first = summary->first.slot >= 0 ? summary->first : summary->first_unvisited;
    if (first.slot < 0 && !values_bad(summary))
        first = first_report(s);
    if (first.slot < 0)
        return refuse(s, "no bad tile so far");
    session_go(s, first);
    s->cursor.row = s->cursor.col = 0;
    go_element(s, 0);
    session_refresh_detail(s);
    return 1;
}

int session_go_worst(struct session *s)
{
    if (!s->detail.got)
        return refuse(s, "nothing is judged here");
    go_element(s, 1);
    return moved(s);
}

void session_cycle_shown(struct session *s)
{
    s->shown = (enum shown)((s->shown + 1) % SHOW_COUNT);
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
    const struct trace *t = s->trace;
    int slot = session_slot(s);
    *exact = slot >= 0;
    if (*exact)
        return slot;
    for (int i = direction > 0 ? 0 : t->layout.n_slots - 1; i >= 0 && i < t->layout.n_slots; i += direction) {
        const int32_t *at = trace_slot_place(t, i);
        int64_t there = ((int64_t)at[0] * t->problem.heads + at[1]) * t->layout.q_tiles + at[2];
        int64_t here =
            ((int64_t)s->cursor.batch * t->problem.heads + s->cursor.head) * t->layout.q_tiles + s->cursor.q_tile;
        if (direction > 0 ? there > here : there < here)
            return i;
    }
    return -1;
}

int session_step_bad(struct session *s, int by)
{
    if (!s->judgement)
        return refuse(s, "nothing is judged yet");
    const struct judgement *j = s->judgement;
    const int direction = by < 0 ? -1 : 1, global = !j->summary.culprits, reports = !values_bad(&j->summary);
    struct place *places = calloc((size_t)j->kv_tiles * ASC_CHANNELS, sizeof *places);
    if (!places)
        return refuse(s, "no memory");
    int exact, left = abs(by), slot = nearest_slot(s, direction, &exact);
    struct place found = {.slot = -1};
    for (; slot >= 0 && slot < j->n_slots && left > 0; slot += direction) {
        if (!judgement_slot_done(j, slot))
            continue;
        int n = judgement_sequence(s->trace, slot, places);
        int at = direction > 0 ? -1 : n;
        if (exact)
            at = find_place(places, n, session_place(s));
        exact = 0;
        for (at += direction; at >= 0 && at < n && left > 0; at += direction) {
            if (judgement_tile_bad(j, places[at], global) || (reports && has_report(s, places[at]))) {
                found = places[at];
                left--;
            }
        }
    }
    free(places);
    if (found.slot < 0)
        return refuse(s, direction > 0 ? "no bad tile after this one" : "no bad tile before this one");
    session_go(s, found);
    s->cursor.row = s->cursor.col = 0;
    go_element(s, 0);
    session_refresh_detail(s);
    return 1;
}
