#include "engine/oracle/slot_walk.h"

#include "engine/oracle/local.h"
#include "engine/oracle/merge.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/tile.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"

struct walk {
    const struct oracle_case *c;
    const struct slot_walk *how;
    struct walk_tile tile;
};

static uint32_t bit(enum asc_channel ch)
{
    return 1u << ch;
}

static uint32_t wanted_at(const struct walk *w, int kv)
{
    return w->how->wanted ? w->how->wanted[kv] : 0;
}

int walk_next_alpha(struct walk_tile *tile, int i)
{
    const struct oracle_case *c = tile->c;
    const size_t R = (size_t)c->in_q.rows;
    double *room = tile->s->mistake.next;
    struct judge_scratch next = *tile->s;
    struct stage *m = &next.stage[asc_m], *alpha = &next.stage[asc_alpha];
    next.at.hidden = next.hidden = next.mistake.hidden;
    next.at.visible = next.visible = next.mistake.visible;
    m->got = room;
    m->loose_room = room + R;
    alpha->got = alpha->want[LOCAL] = room + 2 * R;
    alpha->loose_room = alpha->bound[LOCAL] = room + 3 * R;
    next.at.m_prev = tile->s->at.of[asc_m];
    next.at.tiles_seen++;
    while ((i = next.lists.next_visit[i]) >= 0) {
        const int kv = c->order[i];
        scratch_tile(&next, c, kv);
        if (tile_left(c, &next))
            continue;
        if (scratch_captured(&next, c, asc_alpha)->data) {
            scratch_take(&next, c, asc_alpha);
        } else if (scratch_captured(&next, c, asc_m)->data) {
            scratch_take(&next, c, asc_m);
            local_alpha(c, &next.at, scratch_local(&next, asc_alpha));
            scratch_expect(&next, asc_alpha);
        } else {
            return -1;
        }
        tile->next_alpha = next.at.of[asc_alpha].value;
        tile->next_alpha_loose = next.at.of[asc_alpha].loose;
        return 1;
    }
    return 0;
}

static void visit(const struct walk *w, enum asc_channel ch)
{
    const struct judge_scratch *s = w->tile.s;
    if (((wanted_at(w, channel_per_kv(ch) ? s->at.kv : 0) | w->how->everywhere) & bit(ch)) && s->stage[ch].recorded &&
        scratch_captured(s, w->c, ch)->data)
        w->how->visit(w->how->ctx, &w->tile, ch);
}

/* U of this tile, the i-th, as it was recorded: once the next tile has rescaled it. */
static void visit_late_u(struct walk *w, int i)
{
    const struct stage *u = &w->tile.s->stage[asc_u];
    const int has_next = u->recorded ? walk_next_alpha(&w->tile, i) : -1;
    if (has_next > 0)
        local_rescale(w->c, w->tile.next_alpha, w->tile.next_alpha_loose, u->want[LOCAL], u->bound[LOCAL]);
    if (has_next >= 0)
        visit(w, asc_u);
    w->tile.next_alpha = w->tile.next_alpha_loose = NULL;
}

/* The i-th tile. alone: nothing later is asked about, so no running state is needed. */
static void walk_tile(struct walk *w, int i, int alone)
{
    const struct oracle_case *c = w->c;
    struct judge_scratch *s = w->tile.s;
    const int kv = c->order[i], late_u = c->conventions.u_phase == ASC_U_RESCALED;
    if (alone && !wanted_at(w, kv) && !w->how->everywhere)
        return;
    scratch_tile(s, c, kv);
    operand_take(c, s, asc_k);
    operand_take(c, s, asc_v);
    visit(w, asc_k);
    visit(w, asc_v);
    if (tile_left(c, s))
        return;
    if (alone) {
        local_s(c, &s->at, &s->room, scratch_local(s, asc_s));
        tile_adopt(c, s, asc_s);
        tile_padding(c, s);
        visit(w, asc_s);
        return;
    }
    tile_local(c, s);
    padding_excuse(c, s);
    for (int j = 0; j < TILE_STAGES; j++)
        if (!(late_u && tile_stages[j] == asc_u))
            visit(w, tile_stages[j]);
    if (late_u) {
        local_keep_u(c, s);
        visit_late_u(w, i);
    }
    local_advance(c, s);
}

static void walk_end(struct walk *w)
{
    const enum asc_channel ends[] = {asc_o, asc_lse};
    local_o(w->c, &w->tile.s->at, scratch_local(w->tile.s, asc_o));
    local_lse(w->c, &w->tile.s->at, scratch_local(w->tile.s, asc_lse));
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (!w->c->captured[ends[i]].data)
            continue;
        scratch_take(w->tile.s, w->c, ends[i]);
        visit(w, ends[i]);
    }
}

static void walk_split(struct walk *w, int split, int alone)
{
    const struct oracle_case *c = w->c;
    struct judge_scratch *s = w->tile.s;
    local_begin(c, s, split);
    w->tile.is_first = true;
    for (int i = s->lists.first_visit[split]; i >= 0 && !s->stopped; i = s->lists.next_visit[i]) {
        s->seen[c->order[i]] = 1;
        walk_tile(w, i, alone);
        s->at.tiles_seen += alone; /* else local_advance() counts */
        w->tile.is_first = false;
    }
    merge_local(c, s);
}

int slot_walk(const struct oracle_case *c, const struct slot_walk *how, struct judge_scratch *s)
{
    struct walk state = {.c = c, .how = how, .tile = {.c = c, .s = s}}, *w = &state;
    const uint32_t early = bit(asc_q) | bit(asc_k) | bit(asc_v) | bit(asc_s);
    uint32_t asked = w->how->everywhere;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        asked |= wanted_at(w, kv);
    if (!asked)
        return 0;
    if (scratch_prepare(s, c) != 0)
        return -1;
    reference_inputs(c, s);
    scratch_tile(s, c, 0);
    operand_take(c, s, asc_q);
    visit(w, asc_q);
    merge_begin(c, s);
    for (int split = 0; split < s->lists.splits && !s->stopped; split++)
        walk_split(w, split, !(asked & ~early));
    if (s->stopped)
        return -1;
    merge_finish_local(c, s);
    if (asked & (bit(asc_o) | bit(asc_lse)))
        walk_end(w);
    return 0;
}
